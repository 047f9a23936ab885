"""Functions of the reference: refreshes, playback, messages, notifications, signals."""

import asyncio
import functools
import json
import re
import threading
import time
import unicodedata

from . import clock, link, model
from .errors import DatabaseError, NotSupported, NotSupportedAttribute
from .model import BUFFERS
from .tables import EPGSource, M3UAccount
from .tasks import Task

# Seconds between two looks at the guide sources, while the plugin waits for their changes.
LOOK_SECONDS = 30
MESSAGE_BYTES_MAX = 16 << 10


def task(name):
    return lambda function: Task(function, name=name)


# Refreshes.


@task("apps.m3u.tasks.refresh_single_m3u_account")
def refresh_single_m3u_account(account_id, *args, **kwargs):
    return link.request("POST", f"/api/m3u/refresh/{account_id}/", {})


@task("apps.m3u.tasks.refresh_m3u_groups")
def refresh_m3u_groups(account_id, *args, **kwargs):
    return link.request("POST", f"/api/m3u/refresh/{account_id}/", {})


@task("apps.m3u.tasks.refresh_m3u_accounts")
def refresh_m3u_accounts(*args, **kwargs):
    return link.request("POST", "/api/m3u/refresh/", {})


@task("apps.m3u.tasks.refresh_account_info")
def refresh_account_info(profile_id, *args, **kwargs):
    return link.request("POST", f"/api/m3u/refresh-account-info/{profile_id}/", {})


@task("apps.epg.tasks.refresh_epg_data")
def refresh_epg_data(source_id, *args, force=False, **kwargs):
    return link.request("POST", "/api/epg/import/", {"id": source_id, "force": bool(force)})


@task("apps.epg.tasks.refresh_all_epg_data")
def refresh_all_epg_data(*args, **kwargs):
    for source in EPGSource.objects.filter(is_active=True):
        if source.source_type not in ("dummy", "written", "stream"):
            refresh_epg_data(source.pk)


@task("apps.epg.tasks.parse_programs_for_tvg_id")
def parse_programs_for_tvg_id(epg_id, *args, **kwargs):
    # All programmes of a guide are read when it is refreshed.
    return None


@task("apps.epg.tasks.parse_programs_for_source")
def parse_programs_for_source(epg_source, tvg_id=None, *args, **kwargs):
    return None


@task("apps.channels.tasks.match_epg_channels")
def match_epg_channels(*args, **kwargs):
    return link.request("POST", "/api/channels/channels/match-epg/", {})


@task("apps.channels.tasks.match_selected_channels_epg")
def match_selected_channels_epg(channel_ids, *args, **kwargs):
    return link.request("POST", "/api/channels/channels/match-epg/", {"ids": list(channel_ids)})


@task("apps.channels.tasks.match_single_channel_epg")
def match_single_channel_epg(channel_id, *args, **kwargs):
    return link.request("POST", f"/api/channels/channels/{channel_id}/match-epg/", {})


@task("core.tasks.rehash_streams")
def rehash_streams(*args, **kwargs):
    return link.request("POST", "/api/core/rehash-streams/", {})


@task("apps.vod.tasks.refresh_vod_content")
def refresh_vod_content(account_id, *args, **kwargs):
    return link.request("POST", f"/api/m3u/accounts/{account_id}/refresh-vod/", {})


# Playback.


class ChannelService:
    """`apps.proxy.ts_proxy.services.channel_service.ChannelService`."""

    @staticmethod
    def stop_channel(channel_id):
        return answered("POST", f"/proxy/ts/stop/{channel_id}", {})

    @staticmethod
    def stop_client(channel_id, client_id):
        return answered("POST", f"/proxy/ts/stop_client/{channel_id}", {"client_id": client_id})

    @staticmethod
    def change_stream_url(channel_id, new_url=None, user_agent=None, target_stream_id=None, *args, **kwargs):
        wanted = {"url": new_url, "user_agent": user_agent, "stream_id": target_stream_id}
        body = {name: value for name, value in wanted.items() if value is not None}
        return answered("POST", f"/proxy/ts/change_stream/{channel_id}", body)


def answered(method, path, body):
    try:
        answer = link.request(method, path, body)
    except DatabaseError as error:
        return {"status": "error", "message": str(error)}
    return {"status": "success", **(answer if isinstance(answer, dict) else {})}


# Messages to the interface.


def send_websocket_update(group_name, event_type, data, collect_garbage=False):
    publish({"group": group_name, "type": event_type, "data": data})


def send_websocket_event(event, success, data):
    publish({"type": event, "success": success, "data": data})


def publish(message):
    if len(json.dumps(message, default=str)) > MESSAGE_BYTES_MAX:
        link.say_once("a message to the interface was larger than 16 KiB, and is left out")
        return
    link.publish(json.loads(json.dumps(message, default=str)))


class ChannelLayer:
    async def group_send(self, group, message):
        publish({"group": group, **message})

    async def group_add(self, group, channel):
        pass

    async def group_discard(self, group, channel):
        pass


def get_channel_layer(alias="default"):
    return ChannelLayer()


def async_to_sync(function, *_, **__):
    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        return asyncio.run(function(*args, **kwargs))

    return wrapped


def sync_to_async(function=None, **_):
    if function is None:
        return sync_to_async

    @functools.wraps(function)
    async def wrapped(*args, **kwargs):
        return await asyncio.to_thread(function, *args, **kwargs)

    return wrapped


database_sync_to_async = sync_to_async


def create_notification(key, title, message, notification_type="info", priority="normal", **_):
    body = {"notification_key": key, "title": title, "message": message}
    return link.request(
        "POST", "/api/core/notifications/", {**body, "notification_type": notification_type, "priority": priority}
    )


def log_system_event(event_type, channel_id=None, channel_name=None, **details):
    shown = {"channel_id": channel_id, "channel_name": channel_name, **details}
    shown = {name: value for name, value in shown.items() if value is not None}
    link.logger.info("event %s: %s", event_type, json.dumps(shown, default=str))


# Signals.


class Signal:
    """A signal of Django. Changes by others are found by looking at the objects now and then."""

    def __init__(self, name=""):
        self.name = name

    def connect(self, receiver, sender=None, weak=True, dispatch_uid=None):
        if self.name != "post_save" or sender not in (EPGSource, M3UAccount):
            shown = getattr(sender, "__name__", sender)
            raise NotSupported(f"the signal {self.name or 'of the plugin'} of {shown}")
        found = model.RECEIVERS.setdefault(sender.__name__, [])
        if receiver not in found:
            found.append(receiver)
        WATCH.begin(sender)

    def disconnect(self, receiver=None, sender=None, dispatch_uid=None):
        found = model.RECEIVERS.get(getattr(sender, "__name__", None), [])
        if receiver in found:
            found.remove(receiver)
            return True
        return False

    def send(self, *args, **kwargs):
        return []


class Watch:
    """Looks for changed objects of the models that have receivers."""

    def __init__(self):
        self.seen, self.lock, self.thread = {}, threading.Lock(), None

    def begin(self, sender):
        with self.lock:
            self.seen.setdefault(sender, None)
            if self.thread is None:
                self.thread = threading.Thread(target=self.look_on, name="signals", daemon=True)
                self.thread.start()

    def look_on(self):
        while True:
            for sender in list(self.seen):
                try:
                    self.look(sender)
                except Exception:
                    link.logger.exception("the changes of %s cannot be read", sender.__name__)
            time.sleep(LOOK_SECONDS)

    def look(self, sender):
        if not model.RECEIVERS.get(sender.__name__):
            return
        now = {it.pk: it for it in sender.objects.all()}
        marks = {pk: (it._raw("updated_at"), it._raw("status")) for pk, it in now.items()}
        before, self.seen[sender] = self.seen[sender], marks
        for pk, mark in marks.items():
            if before is not None and before.get(pk) != mark:
                now[pk]._notify(pk not in before)


WATCH = Watch()
post_save, pre_save, post_delete, pre_delete, m2m_changed = (
    Signal(it) for it in ("post_save", "pre_save", "post_delete", "pre_delete", "m2m_changed")
)


def receiver(signal, **options):
    def connected(function):
        for it in signal if isinstance(signal, (list, tuple)) else [signal]:
            it.connect(function, **options)
        return function

    return connected


# Django's connection, settings and texts.


class Connection:
    """The gateway has no database that plugins may use."""

    vendor, in_atomic_block = "gateway", False

    def close(self):
        pass

    close_if_unusable_or_obsolete = ensure_connection = close

    def cursor(self, *_, **__):
        raise NotSupported("django.db.connection.cursor")

    def __getattr__(self, name):
        raise NotSupportedAttribute(f"django.db.connection.{name}")


class Connections:
    def __getitem__(self, alias):
        return connection

    def all(self, *_, **__):
        return [connection]

    def close_all(self):
        pass


connection, connections = Connection(), Connections()
DEFAULT_DB_ALIAS = "default"


def close_old_connections(**_):
    pass


def get_connection(using=None):
    return connection


def set_rollback(rollback, using=None):
    if rollback and BUFFERS.current() is not None:
        BUFFERS.current().changes.clear()


class Settings:
    """`django.conf.settings`."""

    USE_TZ, DEBUG = True, False

    @property
    def TIME_ZONE(self):  # noqa: N802
        return clock.get_default_timezone_name()

    @property
    def MEDIA_ROOT(self):  # noqa: N802
        return link.host().data_dir

    BASE_DIR = DATA_DIR = MEDIA_ROOT

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotSupportedAttribute(f"django.conf.settings.{name}")


settings = Settings()


def natural_sort_key(text):
    return [int(it) if it.isdigit() else it.lower() for it in re.split(r"(\d+)", str(text))]


def slugify(value, allow_unicode=False):
    value = str(value)
    if not allow_unicode:
        value = unicodedata.normalize("NFKD", value).encode("ascii", "ignore").decode("ascii")
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", value.lower())).strip("-_")


def get_object_or_404(found, *args, **kwargs):
    return (found.objects if hasattr(found, "objects") else found).get(*args, **kwargs)


def get_user_model():
    return model.MODELS["User"]


def get_model(app_label, model_name=None):
    name = (model_name or app_label.rpartition(".")[2]).lower()
    for known in model.MODELS.values():
        if known.__name__.lower() == name:
            return known
    raise LookupError(f"no model {model_name or app_label}")


class apps:  # noqa: N801, its name in Django
    get_model = staticmethod(get_model)


def get_logger(name=None):
    import logging

    return logging.getLogger(name)


get_task_logger = get_logger
