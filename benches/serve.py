#!/usr/bin/env python3
"""What does the whole program cost with half a million streams, measured over HTTP?

Starts the program on a new data folder, creates fifty channels, imports a list from a server of its own while a channel
is edited repeatedly, refreshes it without a change, requests pages, stops and restarts. Prints one line for each step.

    cargo build --release && benches/serve.py target/release/headwater [ENTRIES]
"""

import http.server
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

PROGRAM = os.path.abspath(sys.argv[1])
ENTRIES = int(sys.argv[2]) if len(sys.argv) > 2 else 500_000
API, PLAYER = "127.0.0.1:18000", "127.0.0.1:19191"
ROUNDS = 200


class ListServer(http.server.BaseHTTPRequestHandler):
    """Sends the playlist for every path."""

    body = b""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_):
        pass


def playlist():
    lines = ["#EXTM3U\n"]
    for it in range(ENTRIES):
        lines.append(f'#EXTINF:-1 tvg-id="ch{it}" tvg-logo="http://logos.example/{it}.png" group-title="Group {it // 250}",')
        lines.append(f"Channel {it} HD\nhttp://provider.example:8080/live/user/pass/{it}.ts\n")
    return "".join(lines).encode()


class Gateway:
    def __init__(self, folder):
        begun = time.monotonic()
        arguments = [PROGRAM, "serve", "--data-dir", folder, "--api-listen", API, "--player-listen", PLAYER]
        self.process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            try:
                urllib.request.urlopen(f"http://{API}/healthz", timeout=1).read()
                break
            except OSError:
                time.sleep(0.01)
        self.start_seconds = time.monotonic() - begun
        self.token = None

    def ask(self, path, body=None, method=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://{API}/api{path}", data=data, method=method)
        request.add_header("Content-Type", "application/json")
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        return json.load(urllib.request.urlopen(request, timeout=120))

    def memory_mib(self, key="VmRSS"):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) / 1024 for line in status if line.startswith(key + ":"))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait()


def timed(action):
    begun = time.monotonic()
    action()
    return (time.monotonic() - begun) * 1000


def spread(times):
    ordered = sorted(times)
    at = lambda part: ordered[min(int(len(ordered) * part), len(ordered) - 1)]
    return f"first {times[0]:.1f}, p50 {at(0.5):.1f}, p99 {at(0.99):.1f} ms (n = {len(times)})"


def refreshed(gateway, account, meanwhile=lambda: time.sleep(0.02)):
    while True:
        meanwhile()
        refresh = gateway.ask(f"/m3u/refresh/{account}/")
        if refresh["phase"] == "done":
            return refresh


def main():
    ListServer.body = playlist()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), ListServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, HEADWATER_PASSWORD="a password for a bench")
        add = [PROGRAM, "--data-dir", folder, "user", "add", "admin", "--superuser"]
        subprocess.run(add, env=environment, check=True, stdout=subprocess.DEVNULL)
        login = {"username": "admin", "password": environment["HEADWATER_PASSWORD"]}

        gateway = Gateway(folder)
        print(f"start of an empty store {gateway.start_seconds:.2f} s")
        gateway.token = gateway.ask("/accounts/token/", login)["access"]
        for it in range(50):
            gateway.ask("/channels/channels/", {"name": f"Channel {it}"})
        print(f"50 channels, {gateway.memory_mib():.1f} MiB")

        names = iter(range(10**9))
        change = lambda: gateway.ask("/channels/channels/1/", {"name": f"Name {next(names)}"}, "PATCH")
        address = f"http://127.0.0.1:{server.server_port}/list.m3u"
        changes = []
        begun = time.monotonic()
        account = gateway.ask("/m3u/accounts/", {"name": "Large", "server_url": address})["id"]
        refresh = refreshed(gateway, account, lambda: changes.append(timed(change)))
        took = time.monotonic() - begun
        print(f"import of {refresh['entries']} entries {took:.2f} s, peak {gateway.memory_mib('VmHWM'):.0f} MiB")
        print(f"a channel changed meanwhile: {spread(changes)}")

        begun = time.monotonic()
        gateway.ask(f"/m3u/refresh/{account}/", {})
        refresh = refreshed(gateway, account)
        print(f"refresh without a change {time.monotonic() - begun:.2f} s: {refresh['message']}")

        for query in ["name=9999", "search=group+77", "ordering=name", "hide_stale=true"]:
            path = f"/channels/streams/?page_size=50&{query}"
            times = [timed(lambda: gateway.ask(path)) for _ in range(ROUNDS)]
            print(f"a page of 50, {query}, of {gateway.ask(path)['count']}: {spread(times)}")
        print(f"a channel changed: {spread([timed(change) for _ in range(ROUNDS)])}")
        print(f"after all that {gateway.memory_mib():.0f} MiB")
        gateway.stop()

        gateway = Gateway(folder)
        print(f"start with {ENTRIES} streams {gateway.start_seconds:.2f} s")
        time.sleep(5)
        print(f"five seconds later {gateway.memory_mib():.0f} MiB, peak {gateway.memory_mib('VmHWM'):.0f} MiB")
        sys.exit(gateway.stop())


if __name__ == "__main__":
    main()
