"""Counts its runs in Redis, and lets only one run at a time."""

import json

from core.utils import RedisClient
from django.core.cache import cache


class Plugin:
    name = "Redis keys"
    actions = [{"id": "main", "label": "Count"}]

    def run(self, action, params, context):
        redis = RedisClient.get_client()
        if not redis.set("demo:lock", "1", nx=True, ex=60):
            return {"status": "error", "message": "busy"}
        runs = redis.incr("demo:runs")
        redis.hset("demo:last", mapping={"run": runs, "by": "plugin"})
        redis.rpush("demo:log", json.dumps({"run": runs}))
        redis.ltrim("demo:log", -2, -1)
        redis.delete("demo:lock")
        cache.set("answer", 42, timeout=60)
        log = [json.loads(it)["run"] for it in redis.lrange("demo:log", 0, -1)]
        last = {key.decode(): value.decode() for key, value in redis.hgetall("demo:last").items()}
        keys = sorted(it.decode() for it in redis.scan_iter("demo:*"))
        try:
            redis.get("ts_proxy:channel:1:metadata")
            foreign = "read"
        except Exception as error:
            foreign = type(error).__name__
        return {"status": "ok", "runs": runs, "log": log, "last": last, "keys": keys, "cache": cache.get("answer"), "foreign": foreign}
