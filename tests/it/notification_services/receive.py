"""Receives notifications with the libraries of the services, and prints its port.

`/notify` passes a message on to the address in the argument, as the server of Apprise does. `/events` reads an event
in the form of CloudEvents, and answers with its attributes and data.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import apprise
from cloudevents.core.bindings.http import HTTPMessage, from_http_event


def notify(headers, body):
    message = json.loads(body)
    if message["type"] not in apprise.NOTIFY_TYPES:
        raise ValueError(f"the type {message['type']} is unknown")
    targets = apprise.Apprise()
    if not targets.add(sys.argv[1]):
        raise ValueError("Apprise does not know the address")
    if not targets.notify(body=message["body"], title=message["title"], notify_type=message["type"]):
        raise ValueError("Apprise did not deliver the message")
    return {"delivered": True}


def read_event(headers, body):
    event = from_http_event(HTTPMessage(dict(headers), body))
    attributes = {name: str(value) for name, value in event.get_attributes().items()}
    return {"attributes": attributes, "data": event.get_data()}


SERVICES = {"/notify": notify, "/events": read_event}


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            status, answer = 200, SERVICES[self.path](self.headers, body)
        except Exception as error:
            status, answer = 400, {"error": f"{type(error).__name__}: {error}"}
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
print(server.server_address[1], flush=True)
server.serve_forever()
