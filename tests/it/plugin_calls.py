#!/usr/bin/python3
"""A plugin without the Python host, whose action makes the calls that its parameters list."""

import json
import sys
import threading
import urllib.error
import urllib.request

lock = threading.Lock()
waiting = {}
started = {}


def send(message):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def over_pipes(method, path, body):
    answered = threading.Event()
    with lock:
        number = f"h{len(waiting)}"
        slot = waiting[number] = [answered, None]
    send({"id": number, "method": "api", "params": {"method": method, "path": path, "body": body}})
    answered.wait(120)
    return slot[1]


def over_http(method, path, body):
    api = started["api"]
    request = urllib.request.Request(api["url"] + path, method=method)
    request.add_header("Authorization", f"Bearer {api['token']}")
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            status, text = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read()
    return {"status": status, "body": json.loads(text or "null")}


def make(call):
    way = over_http if call.get("http") else over_pipes
    return way(call["method"], call["path"], call.get("body"))


def run(message):
    params = message["params"]["params"]
    calls = params.get("calls", [])
    answers = [None] * len(calls)

    def work(index):
        answers[index] = make(calls[index])

    threads = [threading.Thread(target=work, args=(index,), daemon=True) for index in range(len(calls))]
    for thread in threads:
        thread.start()
        if not params.get("at_once"):
            thread.join()
    for thread in threads:
        thread.join()
    sizes = [len(json.dumps(answer)) for answer in answers]
    shown = [answer if size < 100_000 else None for answer, size in zip(answers, sizes)]
    if params.get("print_token"):
        print("the token is", started["api"]["token"], file=sys.stderr, flush=True)
    send({"id": message["id"], "result": {"status": "ok", "answers": shown, "sizes": sizes, "api": started["api"]}})


for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        started.update(message["params"])
        send({"id": message["id"], "result": {"protocol": 1}})
    elif method == "run":
        threading.Thread(target=run, args=(message,), daemon=True).start()
    elif method == "stop":
        send({"id": message["id"], "result": {}})
        break
    elif method:
        if "id" in message:
            send({"id": message["id"], "result": {}})
    elif message.get("id") in waiting:
        slot = waiting[message["id"]]
        slot[1] = message.get("result", message.get("error"))
        slot[0].set()
