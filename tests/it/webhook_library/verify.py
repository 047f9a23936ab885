"""Verifies a request with the library of Standard Webhooks, and prints the result as JSON.

Reads JSON with `headers` and `body` from standard input. Arguments: one or more secrets.
"""

import json
import sys

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

request = json.load(sys.stdin)


def verified(secret):
    try:
        return Webhook(secret).verify(request["body"], request["headers"])["event_type"]
    except WebhookVerificationError as error:
        return f"refused: {error}"


print(json.dumps([verified(secret) for secret in sys.argv[1:]]))
