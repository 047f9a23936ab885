"""Runs one plugin and talks to the gateway: one JSON message per line, over private descriptors.

Only the standard library of Python 3.10 is used. What the plugin prints goes to its log.
"""

import importlib
import importlib.util
import inspect
import json
import logging
import os
import re
import sys
import threading
import time
import types
from pathlib import Path

PROTOCOL = 1
LINE_BYTES_MAX = 1 << 20
LOG_TEXT_MAX = 4000
# Calls a second. The gateway ends a plugin that sends more than 1,000 messages a second.
CALLS_MAX = 400
# A call counts once more for each of these bytes, as for the gateway.
CALL_BYTES = 16 << 10
CALL_SECONDS_MAX = 60
# A request to the API can take this long.
API_SECONDS_MAX = 300
# The package of the modules that existing plugins import, and the action that runs a task of theirs.
COMPAT = "headwater_compat"
TASK_ACTION = "__task__"


class Gateway:
    """The connection to the gateway."""

    def __init__(self, reader, writer):
        self._reader = reader
        self._writer = writer
        self._lock = threading.Lock()
        self._next = 0
        self._waiting = {}
        self._pace = Pace()

    def lines(self):
        return self._reader

    def send(self, message, paced=False):
        message["jsonrpc"] = "2.0"
        line = json.dumps(message, default=str, separators=(",", ":")).encode()
        if len(line) >= LINE_BYTES_MAX:
            raise ValueError("a message to the gateway is larger than 1 MiB")
        if paced:
            self._pace.wait(1 + len(line) // CALL_BYTES)
        with self._lock:
            self._writer.write(line + b"\n")
            self._writer.flush()

    def notify(self, method, **params):
        self.send({"method": method, "params": params})

    def call(self, method, params, timeout=CALL_SECONDS_MAX):
        done = threading.Event()
        with self._lock:
            self._next += 1
            number = f"h{self._next}"
            self._waiting[number] = slot = [done, None]
        try:
            self.send({"id": number, "method": method, "params": params}, paced=True)
            if not done.wait(timeout):
                raise TimeoutError(f"the gateway did not answer {method} in {timeout} s")
        finally:
            with self._lock:
                self._waiting.pop(number, None)
        answer = slot[1]
        if "error" in answer:
            error = answer["error"]
            raise GatewayError(error.get("message", "error"), error.get("data"))
        return answer.get("result")

    def answered(self, message):
        with self._lock:
            slot = self._waiting.get(message.get("id"))
        if slot:
            slot[1] = message
            slot[0].set()


class Pace:
    """Spreads calls over time, so that a plugin with many threads does not count as a flood."""

    def __init__(self):
        self._lock = threading.Lock()
        self._left, self._at = CALLS_MAX, time.monotonic()

    def wait(self, calls):
        with self._lock:
            now = time.monotonic()
            self._left = min(CALLS_MAX, self._left + (now - self._at) * CALLS_MAX) - calls
            self._at = now
            pause = -self._left / CALLS_MAX
        if pause > 0:
            time.sleep(pause)


class GatewayError(Exception):
    """The gateway refused a call."""

    def __init__(self, message, data=None):
        super().__init__(message)
        self.data = data


class Storage:
    """Values that outlive the process; at most 1 MiB together."""

    def __init__(self, gateway):
        self._gateway = gateway

    def get(self, key, default=None):
        found = self._gateway.call("storage.get", {"key": key})
        return found["value"] if found["found"] else default

    def set(self, key, value):
        self._gateway.call("storage.set", {"key": key, "value": value})

    def delete(self, key):
        self._gateway.call("storage.delete", {"key": key})

    def keys(self):
        return self._gateway.call("storage.keys", {})["keys"]


class Schedule:
    """The schedules of the plugin: each runs an action at the times of a cron expression."""

    def __init__(self, gateway):
        self._gateway = gateway

    def set(self, id, cron, action, params=None):  # noqa: A002
        return self._gateway.call(
            "schedule.set", {"id": id, "cron": cron, "action": action, "params": params or {}}
        )

    def delete(self, id):  # noqa: A002
        return self._gateway.call("schedule.delete", {"id": id})

    def list(self):  # noqa: A003
        return self._gateway.call("schedule.list", {})


class LogHandler(logging.Handler):
    """Passes log records on to the gateway."""

    def __init__(self, gateway):
        super().__init__()
        self._gateway = gateway

    def emit(self, record):
        try:
            text = self.format(record)[:LOG_TEXT_MAX]
            self._gateway.notify("log", level=record.levelname.lower(), message=text)
        except Exception:
            self.handleError(record)


class Host:
    def __init__(self, gateway, folder, packages=()):
        self.gateway = gateway
        self.folder = Path(folder)
        # Folders of the packages that came with the plugin.
        self.packages = list(packages)
        self.plugin = None
        self.settings = {}
        self.actions = []
        self.key = self.folder.name
        self.data_dir = None
        self.reason = "start"
        self.runs = {}
        self.lock = threading.Lock()
        self.logger = logging.getLogger("plugin")
        self.storage = Storage(gateway)
        self.schedule = Schedule(gateway)

    def api(self, method, path, body=None, timeout=API_SECONDS_MAX):
        """Sends a request to the REST interface. Returns its status and its body."""
        params = {"method": method.upper(), "path": path}
        if body is not None:
            params["body"] = body
        return self.gateway.call("api", params, timeout)

    def publish(self, message):
        self.gateway.notify("publish", message=message)

    def serve(self):
        for line in self.gateway.lines():
            try:
                message = json.loads(line)
            except ValueError:
                self.logger.error("the gateway sent a line that is not JSON")
                continue
            if not isinstance(message, dict):
                continue
            if "method" not in message:
                self.gateway.answered(message)
            elif message["method"] == "ping":
                self.answer(message, {})
            else:
                self.handle(message)

    def handle(self, message):
        method, params = message["method"], message.get("params") or {}
        if method == "cancel":
            run = self.runs.get(params.get("run"))
            if run:
                run.set()
        elif method == "settings_changed":
            self.settings.clear()
            self.settings.update(params.get("settings") or {})
            self.in_thread(message, self.changed)
        elif method == "initialize":
            self.in_thread(message, lambda: self.initialize(params))
        elif method == "run":
            self.in_thread(message, lambda: self.run(params))
        elif method == "stop":
            self.in_thread(message, lambda: self.stop(params), ends=True)
        elif "id" in message:
            self.gateway.send(
                {"id": message["id"], "error": {"code": -32601, "message": f"unknown method {method}"}}
            )

    def in_thread(self, message, work, ends=False):
        def run():
            try:
                self.answer(message, work())
            except BaseException as error:  # noqa: BLE001, a plugin may raise anything
                self.logger.exception("%s failed", message["method"])
                self.fail(message, error)
            if ends:
                os._exit(0)

        threading.Thread(target=run, name=message["method"], daemon=True).start()

    def answer(self, message, result):
        if "id" in message:
            self.gateway.send({"id": message["id"], "result": result})

    def fail(self, message, error):
        if "id" in message:
            text = str(error) or type(error).__name__
            error = {"code": -32000, "message": text[:LOG_TEXT_MAX], "data": {"type": type(error).__name__}}
            self.gateway.send({"id": message["id"], "error": error})

    # What the gateway asks for.

    def initialize(self, params):
        if params.get("protocol") != PROTOCOL:
            raise RuntimeError(f"this host speaks protocol {PROTOCOL}")
        self.key = params.get("key", self.key)
        self.settings.update(params.get("settings") or {})
        self.actions[:] = params.get("actions") or []
        self.data_dir = params.get("data_dir")
        self.reason = params.get("reason", "start")
        self.logger.name = f"plugins.{self.key}"
        beside = importlib.import_module(f"{COMPAT}.beside").FolderBesideCode(self.folder, self.data_dir, self.logger)
        beside.update()
        sys.path_hooks.insert(0, beside.importer)
        # Its packages are beside its files.
        real = [str(Path(self.data_dir).parent), *self.packages, *(params.get("folders") or [])]
        importlib.import_module(f"{COMPAT}.data_paths").install(self.data_dir, real)
        self.plugin = load(beside, self.packages)
        return {
            "protocol": PROTOCOL,
            "name": attribute(self.plugin, "name", str),
            "version": attribute(self.plugin, "version", str),
            "description": attribute(self.plugin, "description", str),
            "fields": attribute(self.plugin, "fields", list) or [],
            "actions": attribute(self.plugin, "actions", list) or [],
        }

    def run(self, params):
        if self.plugin is None:
            raise RuntimeError("the plugin is not initialized")
        run = params["run"]
        self.runs[run] = cancelled = threading.Event()
        try:
            if params.get("settings") is not None:
                self.settings.clear()
                self.settings.update(params["settings"])
            context = self.context(run, cancelled, params.get("cause"))
            if params["action"] == TASK_ACTION:
                given = params.get("params") or {}
                tasks = importlib.import_module(f"{COMPAT}.tasks")
                result = tasks.run_task(given["task"], given.get("args") or (), given.get("kwargs") or {})
                return {"status": "ok", "result": result}
            result = call(self.plugin.run, params["action"], params.get("params") or {}, context)
        finally:
            self.runs.pop(run, None)
        if isinstance(result, dict):
            return result
        return {"status": "ok", "result": result}

    def changed(self):
        hook = getattr(self.plugin, "settings_changed", None)
        if callable(hook):
            call(hook, dict(self.settings), self.context(None, threading.Event(), "settings"))
        return {}

    def stop(self, params):
        self.reason = params.get("reason", "stop")
        for cancelled in list(self.runs.values()):
            cancelled.set()
        context = self.context(None, threading.Event(), "stop")
        hook = getattr(self.plugin, "stop", None)
        if callable(hook):
            call(hook, context)
        elif self.plugin is not None and any(it.get("id") == "stop" for it in self.all_actions()):
            call(self.plugin.run, "stop", {}, context)
        return {}

    def all_actions(self):
        listed = self.actions or attribute(self.plugin, "actions", list) or []
        return [it for it in listed if isinstance(it, dict)]

    def context(self, run, cancelled, cause):
        gateway = self.gateway
        return Context(
            settings=dict(self.settings),
            logger=self.logger,
            actions={it["id"]: it for it in self.all_actions() if "id" in it},
            api=self.api,
            storage=self.storage,
            schedule=self.schedule,
            publish=self.publish,
            progress=lambda percent=None, message=None: gateway.notify(
                "progress", run=run, percent=percent, message=message
            ),
            cancelled=cancelled.is_set,
            data_dir=self.data_dir,
            plugin_key=self.key,
            reason=self.reason,
            cause=cause,
        )


class Context(dict):
    """The context of a run. Its members are also attributes."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def serve_compat(sources, host):
    """Serves the modules that existing plugins import. Each source begins with the name of its module."""
    sources = dict(it.split("\n", 1) for it in sources)
    loader = {"__name__": "loader"}
    exec(sources["loader"], loader)  # noqa: S102, a file of this program
    loader["serve"](sources)
    importlib.import_module(f"{COMPAT}.finder").install(host)


def call(function, *arguments):
    """Calls with as many arguments as the function takes."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return function(*arguments)
    if not any(it.kind is it.VAR_POSITIONAL for it in parameters):
        positional = [it for it in parameters if it.kind in (it.POSITIONAL_ONLY, it.POSITIONAL_OR_KEYWORD)]
        arguments = arguments[: len(positional)]
    return function(*arguments)


def attribute(plugin, name, kind):
    value = getattr(plugin, name, None)
    return value if isinstance(value, kind) else None


def load(beside, packages):
    """Imports the plugin and creates it. Hyphens in the name of its folder and relative imports work."""
    folder, shown = beside.code, str(beside.folder)
    sys.path[:0] = [shown, *packages]
    name = re.sub(r"\W", "_", folder.name)
    name = f"_{name}" if name[0].isdigit() else name
    if (folder / "__init__.py").is_file():
        module = load_file(beside.spec(name, "__init__.py", [str(folder)]))
        if not hasattr(module, "Plugin") and (folder / "plugin.py").is_file():
            module = load_file(beside.spec(f"{name}.plugin", "plugin.py"))
    else:
        parent = types.ModuleType(name)
        parent.__path__ = [shown]
        sys.modules[name] = parent
        if not (folder / "plugin.py").is_file():
            raise ImportError("the plugin has neither plugin.py nor __init__.py")
        module = load_file(beside.spec(f"{name}.plugin", "plugin.py"))
    plugin = getattr(module, "Plugin", None)
    if plugin is None:
        if callable(getattr(module, "run", None)):
            return module
        raise ImportError("the plugin has no class Plugin")
    return plugin()


def load_file(spec):
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def main():
    # The protocol moves to private descriptors; standard output becomes the log, standard input is empty.
    reader = os.fdopen(os.dup(0), "rb", buffering=1 << 16)
    writer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    sys.stdout = os.fdopen(1, "w", buffering=1, errors="replace", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="replace", closefd=False)
    gateway = Gateway(reader, writer)
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    root.addHandler(LogHandler(gateway))
    folder, packages, *sources = sys.argv[1:]
    host = Host(gateway, folder, [packages])
    serve_compat(sources, host)
    # A plugin that reads its arguments finds none.
    del sys.argv[1:]
    threading.Thread(target=serve_then_end, args=(host,), daemon=True).start()
    # Signals reach only the main thread, which waits for them.
    while True:
        time.sleep(3600)


def serve_then_end(host):
    try:
        host.serve()
    except BaseException:  # noqa: BLE001
        logging.lastResort.handle(logging.makeLogRecord({"msg": "the host of the plugin failed", "exc_info": sys.exc_info()}))
    # The gateway has closed the connection, or the host has failed: the process must not stay.
    os._exit(70 if sys.exc_info()[0] else 0)


main()
