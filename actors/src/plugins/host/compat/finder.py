"""The modules that plugins import, and where their names are."""

import importlib
import importlib.abc
import importlib.machinery
import sys
import types

from . import link
from .errors import NotSupportedImport

# Packages whose modules are served, unless they are installed.
ROOTS = {
    "apps", "asgiref", "celery", "channels", "core", "dispatcharr", "django", "django_celery_beat", "redis", "version",
}  # fmt: skip

TIMEZONE = (
    "now utc timezone datetime timedelta tzinfo get_default_timezone get_default_timezone_name get_current_timezone "
    "get_current_timezone_name is_aware is_naive make_aware make_naive localtime localdate template_localtime "
    "get_fixed_timezone"
)
AGGREGATES = "Q F Value Count Max Min Sum Avg Prefetch"
ERRORS = "DatabaseError OperationalError IntegrityError DataError ProgrammingError"
CHANNELS = (
    "Channel ChannelGroup ChannelGroupM3UAccount ChannelProfile ChannelProfileMembership ChannelStream Logo Recording "
    "Stream"
)

# Module: names by the module that has them. A module without names has only modules.
MODULES = {
    "apps": {},
    "apps.accounts": {},
    "apps.accounts.models": {"tables": "User"},
    "apps.channels": {},
    "apps.channels.models": {"tables": CHANNELS},
    "apps.channels.tasks": {
        "services": "match_epg_channels match_selected_channels_epg match_single_channel_epg",
    },
    "apps.epg": {},
    "apps.epg.models": {"tables": "EPGSource EPGData ProgramData"},
    "apps.epg.tasks": {
        "services": "refresh_epg_data refresh_all_epg_data parse_programs_for_tvg_id parse_programs_for_source",
    },
    "apps.m3u": {},
    "apps.m3u.models": {"tables": "M3UAccount M3UAccountProfile"},
    "apps.m3u.tasks": {
        "services": "refresh_single_m3u_account refresh_m3u_groups refresh_m3u_accounts refresh_account_info",
    },
    "apps.plugins": {},
    "apps.plugins.models": {"tables": "PluginConfig"},
    "apps.proxy": {},
    "apps.proxy.ts_proxy": {},
    "apps.proxy.ts_proxy.services": {},
    "apps.proxy.ts_proxy.services.channel_service": {"services": "ChannelService"},
    "apps.proxy.live_proxy": {},
    "apps.proxy.live_proxy.services": {},
    "apps.proxy.live_proxy.services.channel_service": {"services": "ChannelService"},
    "apps.vod": {},
    "apps.vod.models": {"tables": "Movie Series Episode"},
    "apps.vod.tasks": {"services": "refresh_vod_content"},
    "asgiref": {},
    "asgiref.sync": {"services": "async_to_sync sync_to_async"},
    "celery": {"tasks": "shared_task current_app Celery Task"},
    "celery.app": {},
    "celery.app.task": {"tasks": "Task"},
    "celery.result": {"tasks": "AsyncResult"},
    "celery.schedules": {"tasks": "crontab"},
    "celery.utils": {},
    "celery.utils.log": {"services": "get_logger get_task_logger"},
    "channels": {},
    "channels.db": {"services": "database_sync_to_async"},
    "channels.layers": {"services": "get_channel_layer"},
    "core": {},
    "core.models": {"tables": "StreamProfile CoreSettings UserAgent OutputProfile SystemNotification"},
    "core.scheduling": {"tasks": "create_or_update_periodic_task delete_periodic_task"},
    "core.tasks": {"services": "rehash_streams"},
    "core.utils": {
        "keys": "RedisClient acquire_task_lock release_task_lock",
        "services": "send_websocket_update send_websocket_event log_system_event natural_sort_key",
    },
    "dispatcharr": {},
    "dispatcharr.celery": {"tasks": "app"},
    "django": {"finder": "VERSION setup"},
    "django.apps": {"services": "apps"},
    "django.conf": {"services": "settings"},
    "django.contrib": {},
    "django.contrib.auth": {"services": "get_user_model"},
    "django.core": {},
    "django.core.cache": {"keys": "cache caches"},
    "django.core.exceptions": {
        "errors": "ObjectDoesNotExist MultipleObjectsReturned ValidationError PermissionDenied ImproperlyConfigured "
        "FieldError FieldDoesNotExist"
    },
    "django.db": {
        "errors": ERRORS,
        "services": "connection connections close_old_connections DEFAULT_DB_ALIAS",
    },
    "django.db.models": {
        "lookups": AGGREGATES,
        "query": "QuerySet Manager",
        "errors": "ObjectDoesNotExist",
    },
    "django.db.models.functions": {"lookups": "Lower Upper Trim Length Coalesce"},
    "django.db.models.query": {"query": "QuerySet"},
    "django.db.models.signals": {"services": "post_save pre_save post_delete pre_delete m2m_changed"},
    "django.db.transaction": {"model": "atomic on_commit Atomic", "services": "get_connection set_rollback"},
    "django.db.utils": {"errors": ERRORS},
    "django.dispatch": {"services": "receiver Signal"},
    "django.shortcuts": {"services": "get_object_or_404"},
    "django.utils": {},
    "django.utils.dateparse": {"clock": "parse_datetime parse_date parse_time parse_duration"},
    "django.utils.text": {"services": "slugify"},
    "django.utils.timezone": {"clock": TIMEZONE},
    "django_celery_beat": {},
    "django_celery_beat.models": {"tasks": "PeriodicTask PeriodicTasks CrontabSchedule IntervalSchedule"},
    "redis": {
        "keys": "Redis StrictRedis ConnectionPool from_url RedisError ConnectionError TimeoutError ResponseError",
    },
    "redis.exceptions": {"keys": "RedisError ConnectionError TimeoutError ResponseError LockError"},
    "redis.lock": {"keys": "Lock"},
    "version": {"finder": "__version__"},
}

VERSION = (5, 2, 0, "final", 0)
__version__ = "0.29.0"


def setup(*_, **__):
    pass


class Served(types.ModuleType):
    """A module whose names are read when they are used."""

    def __getattr__(self, name):
        if name.startswith("__") and name != "__version__":
            raise AttributeError(name)
        for source, names in MODULES[self.__name__].items():
            if name in names.split():
                value = getattr(importlib.import_module(f"{__package__}.{source}"), name)
                self.__dict__[name] = value
                return value
        if f"{self.__name__}.{name}" in MODULES:
            return importlib.import_module(f"{self.__name__}.{name}")
        if name == "__version__":
            # It is asked for by `getattr` with a default.
            raise AttributeError(name)
        raise NotSupportedImport(f"{self.__name__}.{name}")

    def __dir__(self):
        return sorted(names_of(self.__name__))


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Comes last, so that installed packages and modules of the plugin have priority."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in ROOTS:
            return None
        parent = name.rpartition(".")[0]
        if parent in sys.modules and not isinstance(sys.modules[parent], Served):
            return None
        if name not in MODULES:
            raise NotSupportedImport(name)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Served(spec.name)

    def exec_module(self, module):
        module.__path__ = []
        if "*" not in module.__dict__:
            module.__all__ = sorted(it for it in names_of(module.__name__) if not it.startswith("_"))


def names_of(module):
    return {it for names in MODULES[module].values() for it in names.split()}


def install(host):
    """Serves the modules to the plugin of this host."""
    link.connect(host)
    sys.meta_path.append(Finder())


