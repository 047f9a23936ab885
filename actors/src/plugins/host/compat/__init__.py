"""Names of Dispatcharr, Django and Celery that existing plugins import, served by the gateway's REST interface.

Written from the names that plugins use. What is not here raises NotSupported, which says its name.
"""
