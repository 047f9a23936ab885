"""The Redis client and the cache. Keys of a plugin are in its storage, which outlives the process."""

import base64
import fnmatch
import json
import threading
import time
import uuid

from . import link
from .errors import NotSupported, NotSupportedAttribute

PREFIX = "redis:"
# Keys of the reference's own processes, which this gateway does not have.
FOREIGN = ("ts_proxy:", "vod_proxy:", "live:channel", "timeshift:", "celery", "_kombu", "m3u_refresh", "epg_refresh")
# The cache has at most this many entries.
CACHE_MAX = 10_000


class RedisError(Exception):
    pass


class ConnectionError(RedisError):  # noqa: A001, its name in the client
    pass


class TimeoutError(RedisError):  # noqa: A001
    pass


class ResponseError(RedisError):
    pass


class LockError(RedisError):
    pass


def text(key):
    key = key.decode() if isinstance(key, bytes) else str(key)
    if key.startswith(FOREIGN):
        raise NotSupported(f"the Redis key {key}")
    return key


def packed(value):
    """Returns a value as text; bytes that are not text are encoded."""
    if isinstance(value, bool) or value is None or not isinstance(value, (bytes, str, int, float)):
        raise TypeError(f"a Redis value is bytes, text or a number, not {type(value).__name__}")
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"b": base64.b64encode(value).decode()}
    return str(value)


def unpacked(value):
    if value is None:
        return None
    return base64.b64decode(value["b"]) if isinstance(value, dict) else value.encode()


class Client:
    """A Redis client for the plugin's own keys. Values are bytes."""

    def __init__(self, decode_responses=False, **_):
        self._decode = decode_responses

    _lock = threading.RLock()

    def _out(self, value):
        value = unpacked(value)
        return value.decode() if self._decode and value is not None else value

    def _entry(self, key, kind=None):
        found = link.storage().get(PREFIX + text(key))
        if not isinstance(found, dict):
            return None
        if found.get("until") is not None and found["until"] <= time.time():
            link.storage().delete(PREFIX + text(key))
            return None
        if kind is not None and found["kind"] != kind:
            raise ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value")
        return found

    def _put(self, key, kind, value, until=None):
        if not value and kind != "string":
            return self.delete(key)
        link.storage().set(PREFIX + text(key), {"kind": kind, "value": value, "until": until})
        return True

    def _change(self, key, kind, empty, change):
        with self._lock:
            found = self._entry(key, kind) or {"value": empty, "until": None}
            answer = change(found["value"])
            self._put(key, kind, found["value"], found["until"])
            return answer

    # Texts.

    def get(self, key):
        found = self._entry(key, "string")
        return self._out(found["value"]) if found else None

    def set(self, key, value, ex=None, px=None, nx=False, xx=False, keepttl=False, get=False, **_):
        with self._lock:
            found = self._entry(key)
            if (nx and found) or (xx and not found):
                return None
            until = found["until"] if found and keepttl else None
            if ex is not None:
                until = time.time() + seconds(ex)
            elif px is not None:
                until = time.time() + seconds(px) / 1000
            self._put(key, "string", packed(value), until)
            return True

    def setex(self, key, time, value):  # noqa: A002
        return self.set(key, value, ex=time)

    def psetex(self, key, time_ms, value):
        return self.set(key, value, px=time_ms)

    def setnx(self, key, value):
        return bool(self.set(key, value, nx=True))

    def getset(self, key, value):
        with self._lock:
            before = self.get(key)
            self.set(key, value)
            return before

    def getdel(self, key):
        with self._lock:
            before = self.get(key)
            self.delete(key)
            return before

    def mget(self, keys, *more):
        keys = [keys, *more] if isinstance(keys, (str, bytes)) else [*keys, *more]
        return [self.get(it) for it in keys]

    def mset(self, mapping):
        for key, value in mapping.items():
            self.set(key, value)
        return True

    def append(self, key, value):
        with self._lock:
            whole = (self.get(key) or b"") + (value if isinstance(value, bytes) else str(value).encode())
            self.set(key, whole, keepttl=True)
            return len(whole)

    def incr(self, key, amount=1):
        with self._lock:
            number = int(self.get(key) or 0) + amount
            self.set(key, number, keepttl=True)
            return number

    incrby = incr

    def decr(self, key, amount=1):
        return self.incr(key, -amount)

    decrby = decr

    # Keys.

    def delete(self, *keys):
        n = 0
        for key in keys:
            if self._entry(key) is not None:
                link.storage().delete(PREFIX + text(key))
                n += 1
        return n

    unlink = delete

    def exists(self, *keys):
        return sum(self._entry(it) is not None for it in keys)

    def expire(self, key, time_s):
        with self._lock:
            found = self._entry(key)
            if not found:
                return False
            return self._put(key, found["kind"], found["value"], time.time() + seconds(time_s))

    def persist(self, key):
        with self._lock:
            found = self._entry(key)
            return bool(found) and self._put(key, found["kind"], found["value"])

    def ttl(self, key):
        found = self._entry(key)
        if not found:
            return -2
        return -1 if found["until"] is None else max(0, round(found["until"] - time.time()))

    def pttl(self, key):
        seconds = self.ttl(key)
        return seconds if seconds < 0 else seconds * 1000

    def type(self, key):  # noqa: A003
        found = self._entry(key)
        name = found["kind"] if found else "none"
        return name if self._decode else name.encode()

    def keys(self, pattern="*"):
        pattern = pattern.decode() if isinstance(pattern, bytes) else pattern
        own = (it[len(PREFIX) :] for it in link.storage().keys() if it.startswith(PREFIX))
        found = [it for it in own if fnmatch.fnmatchcase(it, pattern) and self._entry(it) is not None]
        return found if self._decode else [it.encode() for it in found]

    def scan_iter(self, match="*", count=None, _type=None):
        return iter(self.keys(match or "*"))

    def scan(self, cursor=0, match="*", count=None, _type=None):
        return 0, self.keys(match or "*")

    # Hashes.

    def hget(self, name, key):
        return self._out((self._hash(name)).get(packed(key)))

    def _hash(self, name):
        found = self._entry(name, "hash")
        return found["value"] if found else {}

    def hgetall(self, name):
        shown = (lambda it: it) if self._decode else str.encode
        return {shown(key): self._out(value) for key, value in self._hash(name).items()}

    def hset(self, name, key=None, value=None, mapping=None, items=None):
        new = {packed(it): packed(that) for it, that in (mapping or {}).items()}
        if key is not None:
            new[packed(key)] = packed(value)

        def change(members):
            n = len(new.keys() - members.keys())
            members.update(new)
            return n

        return self._change(name, "hash", {}, change)

    def hmset(self, name, mapping):
        self.hset(name, mapping=mapping)
        return True

    def hmget(self, name, keys, *more):
        members = self._hash(name)
        keys = [keys, *more] if isinstance(keys, (str, bytes)) else [*keys, *more]
        return [self._out(members.get(packed(it))) for it in keys]

    def hdel(self, name, *keys):
        return self._change(
            name, "hash", {}, lambda members: sum(members.pop(packed(it), None) is not None for it in keys)
        )

    def hexists(self, name, key):
        return packed(key) in self._hash(name)

    def hkeys(self, name):
        return list(self.hgetall(name))

    def hvals(self, name):
        return list(self.hgetall(name).values())

    def hlen(self, name):
        return len(self._hash(name))

    def hincrby(self, name, key, amount=1):
        def change(members):
            number = int(members.get(packed(key), 0)) + amount
            members[packed(key)] = str(number)
            return number

        return self._change(name, "hash", {}, change)

    # Sets and lists.

    def sadd(self, name, *values):
        def change(members):
            new = [it for it in dict.fromkeys(map(packed, values)) if it not in members]
            members.extend(new)
            return len(new)

        return self._change(name, "set", [], change)

    def srem(self, name, *values):
        def change(members):
            gone = [it for it in map(packed, values) if it in members]
            for it in gone:
                members.remove(it)
            return len(gone)

        return self._change(name, "set", [], change)

    def _list(self, name, kind):
        found = self._entry(name, kind)
        return found["value"] if found else []

    def smembers(self, name):
        return {self._out(it) for it in self._list(name, "set")}

    def sismember(self, name, value):
        return packed(value) in self._list(name, "set")

    def scard(self, name):
        return len(self._list(name, "set"))

    def rpush(self, name, *values):
        def change(members):
            members.extend(map(packed, values))
            return len(members)

        return self._change(name, "list", [], change)

    def lpush(self, name, *values):
        def change(members):
            members[:0] = [packed(it) for it in reversed(values)]
            return len(members)

        return self._change(name, "list", [], change)

    def lpop(self, name, count=None):
        return self._change(name, "list", [], lambda it: self._out(it.pop(0)) if it else None)

    def rpop(self, name, count=None):
        return self._change(name, "list", [], lambda it: self._out(it.pop()) if it else None)

    def lrange(self, name, start, end):
        found = self._list(name, "list")
        return [self._out(it) for it in found[place(start, found) : place(end, found) + 1]]

    def ltrim(self, name, start, end):
        def change(members):
            members[:] = members[place(start, members) : place(end, members) + 1]
            return True

        return self._change(name, "list", [], change)

    def llen(self, name):
        return len(self._list(name, "list"))

    def lrem(self, name, count, value):
        def change(members):
            n = members.count(packed(value))
            members[:] = [it for it in members if it != packed(value)]
            return n

        return self._change(name, "list", [], change)

    # The rest.

    def ping(self):
        return True

    def close(self):
        pass

    def time(self):
        now = time.time()
        return int(now), int(now % 1 * 1_000_000)

    def pipeline(self, transaction=True, shard_hint=None):
        return Pipeline(self)

    def lock(self, name, timeout=None, sleep=0.1, blocking=True, blocking_timeout=None, **_):
        return Lock(self, name, timeout, sleep, blocking, blocking_timeout)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotSupportedAttribute(f"Redis.{name}")

    @classmethod
    def from_url(cls, url, **options):
        return cls(**options)


Redis = StrictRedis = Client


def from_url(url, **options):
    return Client(**options)


class ConnectionPool:
    def __init__(self, **_):
        pass

    from_url = classmethod(lambda cls, url, **_: cls())


class Pipeline:
    """Commands that run one after another at the end."""

    def __init__(self, client):
        self._client, self._commands = client, []

    def __getattr__(self, name):
        method = getattr(self._client, name)

        def queued(*args, **kwargs):
            self._commands.append((method, args, kwargs))
            return self

        return queued

    def execute(self, raise_on_error=True):
        commands, self._commands = self._commands, []
        return [method(*args, **kwargs) for method, args, kwargs in commands]

    def watch(self, *keys):
        return True

    def multi(self):
        pass

    def reset(self):
        self._commands = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.reset()


class Lock:
    def __init__(self, client, name, timeout, sleep, blocking, blocking_timeout):
        self.client, self.name, self.timeout, self.sleep = client, name, timeout, sleep
        self.blocking, self.blocking_timeout, self.token = blocking, blocking_timeout, None

    def acquire(self, blocking=None, blocking_timeout=None, **_):
        blocking = self.blocking if blocking is None else blocking
        limit = self.blocking_timeout if blocking_timeout is None else blocking_timeout
        until = None if limit is None else time.time() + limit
        token = uuid.uuid4().hex
        while not self.client.set(self.name, token, nx=True, ex=self.timeout):
            if not blocking or (until is not None and time.time() >= until):
                return False
            time.sleep(self.sleep)
        self.token = token
        return True

    def release(self):
        if self.token is None or self.client.get(self.name) not in (self.token, self.token.encode()):
            raise LockError("Cannot release a lock that's no longer owned")
        self.client.delete(self.name)
        self.token = None

    def locked(self):
        return bool(self.client.exists(self.name))

    def owned(self):
        return self.token is not None

    def __enter__(self):
        if not self.acquire():
            raise LockError("Unable to acquire lock within the time specified")
        return self

    def __exit__(self, *_):
        self.release()


class RedisClient:
    """`core.utils.RedisClient`."""

    @classmethod
    def get_client(cls, *args, **kwargs):
        return Client()

    @classmethod
    def get_text_client(cls, *args, **kwargs):
        return Client(decode_responses=True)

    @classmethod
    def get_buffer(cls, *args, **kwargs):
        return Client()

    get_pubsub_client = get_text_client


def seconds(value):
    return value.total_seconds() if hasattr(value, "total_seconds") else float(value)


def place(index, found):
    return max(0, len(found) + index) if index < 0 else index


class Cache:
    """`django.core.cache`: values of this process."""

    def __init__(self):
        self._values, self._lock = {}, threading.RLock()

    def get(self, key, default=None, version=None):
        with self._lock:
            found = self._values.get(key)
            if found is None or (found[0] is not None and found[0] <= time.time()):
                self._values.pop(key, None)
                return default
            return found[1]

    def set(self, key, value, timeout=300, version=None):
        with self._lock:
            self._values.pop(key, None)
            while len(self._values) >= CACHE_MAX:
                del self._values[next(iter(self._values))]
            self._values[key] = (None if timeout is None else time.time() + timeout, value)

    def add(self, key, value, timeout=300, version=None):
        with self._lock:
            missing = object()
            if self.get(key, missing) is not missing:
                return False
            self.set(key, value, timeout)
            return True

    def get_or_set(self, key, default, timeout=300, version=None):
        missing = object()
        found = self.get(key, missing)
        if found is missing:
            found = default() if callable(default) else default
            self.set(key, found, timeout)
        return found

    def delete(self, key, version=None):
        with self._lock:
            return self._values.pop(key, None) is not None

    def touch(self, key, timeout=300, version=None):
        missing = object()
        found = self.get(key, missing)
        if found is missing:
            return False
        self.set(key, found, timeout)
        return True

    def incr(self, key, delta=1, version=None):
        with self._lock:
            found = self.get(key)
            if found is None:
                raise ValueError(f"Key '{key}' not found")
            self._values[key] = (self._values[key][0], found + delta)
            return found + delta

    def decr(self, key, delta=1, version=None):
        return self.incr(key, -delta)

    def get_many(self, keys, version=None):
        missing = object()
        found = {it: self.get(it, missing) for it in keys}
        return {key: value for key, value in found.items() if value is not missing}

    def set_many(self, data, timeout=300, version=None):
        for key, value in data.items():
            self.set(key, value, timeout)
        return []

    def delete_many(self, keys, version=None):
        for key in keys:
            self.delete(key)

    def has_key(self, key, version=None):
        missing = object()
        return self.get(key, missing) is not missing

    __contains__ = has_key

    def clear(self):
        with self._lock:
            self._values.clear()

    def close(self):
        pass


cache = Cache()
caches = {"default": cache}


def acquire_task_lock(task_name, id):  # noqa: A002
    return bool(Client().set(f"task_lock_{task_name}_{id}", json.dumps(time.time()), nx=True, ex=300))


def release_task_lock(task_name, id):  # noqa: A002
    Client().delete(f"task_lock_{task_name}_{id}")
