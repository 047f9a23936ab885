"""The connection between these modules and the host that runs the plugin."""

import json
import logging
import threading
import time
from urllib.parse import urlencode

from .errors import DatabaseError, error_of

# A request to the gateway has at most this many ids, so that its address stays short.
IDS_MAX = 500
# The status of an answer that does not fit into a message.
TOO_LARGE = 413
# A request has at most this many bytes of members of a list, so that it fits into a message.
BYTES_MAX = 512 << 10
# More rows than this in memory would exceed the memory of a plugin.
ROWS_MAX = 200_000

logger = logging.getLogger("compat")

_host = None
_said = set()
_lock = threading.Lock()


def connect(host):
    global _host
    _host = host


def host():
    if _host is None:
        raise RuntimeError("the plugin is not connected with the gateway")
    return _host


def say_once(text):
    """Logs a text once per process."""
    with _lock:
        if text in _said:
            return
        _said.add(text)
    logger.info(text)


def path_of(path, params=None):
    if not params:
        return path
    pairs = []
    for name, value in params.items():
        if isinstance(value, bool):
            value = "true" if value else "false"
        elif isinstance(value, (list, tuple, set)):
            value = ",".join(str(it) for it in value)
        pairs.append((name, str(value)))
    return f"{path}?{urlencode(pairs)}"


def request(method, path, body=None, params=None):
    """Sends a request and returns the body of the answer. Refusals are exceptions."""
    answer = host().api(method, path_of(path, params), body)
    status, body = answer.get("status", 0), answer.get("body")
    if 200 <= status < 300:
        return body
    raise error_of(status, body, f"{method} {path}")


def get(path, params=None):
    return request("GET", path, None, params)


def pages(path, params, page_size):
    """Returns the rows of a list, one page at a time."""
    number = 1
    while True:
        try:
            answer = get(path, {**params, "page": number, "page_size": page_size})
        except DatabaseError as error:
            if error.status != TOO_LARGE or page_size < 10:
                raise
            # The same place in the list, with smaller pages.
            page_size, number = page_size // 10, (number - 1) * 10 + 1
            continue
        if isinstance(answer, list):
            yield answer
            return
        rows = answer.get("results", [])
        yield rows
        if not answer.get("next") or not rows:
            return
        number += 1


def count(path, params):
    """Returns the number of rows of a list, without reading them."""
    answer = get(path, {**params, "page": 1, "page_size": 1})
    return len(answer) if isinstance(answer, list) else answer.get("count", 0)


def chunks(values, size=IDS_MAX):
    values = list(values)
    for start in range(0, len(values), size):
        yield values[start : start + size]


def portions(items, count, body=lambda it: it):
    """Splits a list into parts that fit into a request."""
    part, size = [], 0
    for item in items:
        length = len(json.dumps(body(item), default=str))
        if part and (len(part) >= count or size + length > BYTES_MAX):
            yield part
            part, size = [], 0
        part.append(item)
        size += length
    if part:
        yield part


def storage():
    return host().storage


def publish(message):
    host().publish(message)


def now():
    return time.time()
