"""The models, and the resources and fields of the gateway behind them."""

import uuid

from . import clock, link
from .errors import NotFound, NotSupported, NotSupportedAttribute, ValidationError
from .model import BUFFERS, MANY, REVERSE_SETS, Model, Related, to_json
from .query import QuerySet

TIME = clock.parse_datetime
# Owned guide sources, in the storage of the plugin.
OWNED = "compat:guide_sources"


def field(key, convert=None):
    return (key, convert, True)


def shown(key, convert=None):
    """A field that cannot be changed."""
    return (key, convert, False)


def same(*names):
    return {name: name for name in names}


def only_shown(*names):
    return {name: shown(name) for name in names}


def as_json(value):
    return value


def as_object(value):
    return value if isinstance(value, (dict, list)) else {}


class StreamProfile(Model):
    app, path = "core", "/api/core/streamprofiles/"
    fields = {
        "id": shown("id"),
        **same("name", "command", "parameters", "is_active", "user_agent"),
        **only_shown("locked"),
    }
    reverse = {"channels": ("Channel", "stream_profile")}


class OutputProfile(Model):
    app, path = "core", "/api/core/outputprofiles/"
    fields = {"id": shown("id"), **same("name", "command", "parameters", "is_active"), **only_shown("locked")}


class UserAgent(Model):
    app, path = "core", "/api/core/useragents/"
    fields = {
        "id": shown("id"),
        **same("name", "user_agent", "description", "is_active"),
        "created_at": shown("created_at", TIME),
        "updated_at": shown("updated_at", TIME),
    }


class CoreSettings(Model):
    app, path = "core", "/api/core/settings/"
    fields = {"id": shown("id"), **only_shown("key", "name"), "value": field("value", as_json)}

    @classmethod
    def _group(cls, key):
        found = cls.objects.filter(key=key).first()
        return found.value if found is not None and isinstance(found.value, dict) else {}

    @classmethod
    def get_stream_settings(cls):
        return cls._group("stream_settings")

    @classmethod
    def get_proxy_settings(cls):
        return cls._group("proxy_settings")

    @classmethod
    def get_dvr_settings(cls):
        return cls._group("dvr_settings")

    @classmethod
    def get_epg_settings(cls):
        return cls._group("epg_settings")

    @classmethod
    def get_system_settings(cls):
        return cls._group("system_settings")

    @classmethod
    def get_system_time_zone(cls):
        return cls._group("system_settings").get("time_zone") or clock.get_default_timezone_name()

    @classmethod
    def get_default_stream_profile_id(cls):
        return cls._group("stream_settings").get("default_stream_profile")

    @classmethod
    def get_default_user_agent_id(cls):
        return cls._group("stream_settings").get("default_user_agent")


class SystemNotification(Model):
    app, path = "core", "/api/core/notifications/"
    names = ("notification_key", "notification_type", "priority", "title", "message", "is_active", "admin_only")
    fields = {
        "id": shown("id"),
        **same(*names),
        "action_data": field("action_data", as_json),
        "expires_at": field("expires_at", TIME),
        "created_at": shown("created_at", TIME),
        "source": shown("source"),
    }

    @classmethod
    def read(cls, plan):
        found = link.get(cls.path, {"include_dismissed": True})
        rows = found.get("notifications", []) if isinstance(found, dict) else found
        yield from cls.batch(it for it in rows if plan.ids is None or it["id"] in plan.ids)

    @classmethod
    def count(cls, conditions):
        return None


class User(Model):
    app, path = "accounts", "/api/accounts/users/"
    fields = {
        "id": shown("id"),
        **same("username", "email", "first_name", "last_name", "user_level", "stream_limit"),
        "custom_properties": field("custom_properties", as_object),
        **only_shown("is_staff", "is_superuser"),
    }


class ChannelGroup(Model):
    app, path = "channels", "/api/channels/groups/"
    fields = {"id": shown("id"), **same("name")}
    reverse = {
        "channels": ("Channel", "channel_group"),
        "streams": ("Stream", "channel_group"),
        "m3u_accounts": ("ChannelGroupM3UAccount", "channel_group"),
    }
    filters = {"name": "name", "name__iexact": "name", "name__icontains": "name", "name__contains": "name",
               "name__startswith": "name", "name__istartswith": "name"}  # fmt: skip
    counts = {"channels": "channel_count"}
    kept = ("channel_count",)


class Logo(Model):
    app, path, has_ids = "channels", "/api/channels/logos/", True
    fields = {"id": shown("id"), **same("name", "url"), "cache_url": shown("cache_url")}
    reverse = {"channels": ("Channel", "logo")}
    filters = {"name": "name", "name__iexact": "name", "name__icontains": "name", "url": "search",
               "url__icontains": "search", "url__startswith": "search", "url__iexact": "search"}  # fmt: skip
    counts = {"channels": "channel_count"}
    kept = ("channel_count",)

    @classmethod
    def send_deletion(cls, ids):
        for some in link.chunks(ids, 1000):
            link.request("POST", f"{cls.path}bulk-delete/", {"ids": some})


class M3UAccount(Model):
    app, path = "m3u", "/api/m3u/accounts/"
    fields = {
        "id": shown("id"),
        **same(
            "name", "server_url", "file_path", "max_streams", "is_active", "refresh_interval", "cron_expression",
            "account_type", "username", "password", "stale_stream_days", "priority", "server_group", "user_agent",
        ),
        "custom_properties": field("custom_properties", as_object),
        "exp_date": field("exp_date", TIME),
        **only_shown("locked", "status", "last_message", "stream_count"),
        "created_at": shown("created_at", TIME),
        "updated_at": shown("updated_at", TIME),
    }  # fmt: skip
    reverse = {
        "streams": ("Stream", "m3u_account"),
        "profiles": ("M3UAccountProfile", "m3u_account"),
        "channel_group": ("ChannelGroupM3UAccount", "m3u_account"),
    }
    filters = {"is_active": "=is_active", "name": "name", "name__icontains": "name", "name__iexact": "name"}
    counts = {"streams": "stream_count"}
    kept = ("profiles", "channel_groups")

    @classmethod
    def get_custom_account(cls):
        """Returns the account that streams without a provider belong to."""
        return cls.objects.get(name__iexact="custom")

    class Types:
        STD = "STD"
        XC = "XC"

    class Status:
        IDLE, FETCHING, PARSING, ERROR = "idle", "fetching", "parsing", "error"
        SUCCESS, PENDING_SETUP, DISABLED = "success", "pending_setup", "disabled"


class EPGSource(Model):
    app, path = "epg", "/api/epg/sources/"
    fields = {
        "id": shown("id"),
        **same(
            "name", "source_type", "url", "username", "password", "is_active", "refresh_interval", "cron_expression",
            "priority",
        ),
        "custom_properties": field("custom_properties", as_object),
        **only_shown("file_path", "status", "last_message", "epg_data_count"),
        "created_at": shown("created_at", TIME),
        "updated_at": shown("updated_at", TIME),
    }  # fmt: skip
    reverse = {"epgs": ("EPGData", "epg_source")}
    filters = {"is_active": "=is_active"}
    counts = {"epgs": "epg_data_count"}

    STATUS_IDLE, STATUS_FETCHING, STATUS_PARSING = "idle", "fetching", "parsing"
    STATUS_ERROR, STATUS_SUCCESS, STATUS_DISABLED = "error", "success", "disabled"

    def send_new(self, body):
        # A source without an address is one whose programmes the plugin writes.
        is_fetched = body.get("url") or body.get("source_type") in ("schedules_direct", "panel", "stream")
        if not is_fetched and not body.get("custom_properties"):
            names = ("name", "is_active", "priority")
            body = {**{it: body[it] for it in names if it in body}, "source_type": "written"}
        answer = super().send_new(body)
        if answer.get("source_type") == "written":
            own(answer["id"])
        return answer

    def changes(self, names=None):
        body = super().changes(names)
        if self._raw("source_type") == "written":
            # The others are of sources that are fetched.
            body = {key: value for key, value in body.items() if key in ("name", "is_active", "priority")}
        return body


class EPGData(Model):
    app, path, has_ids = "epg", "/api/epg/epgdata/", True
    fields = {"id": shown("id"), **same("tvg_id", "name", "icon_url")}
    links = {"epg_source": ("epg_source", "EPGSource", "epg_source")}
    reverse = {"programs": ("ProgramData", "epg"), "channels": ("Channel", "epg_data")}
    filters = {
        "epg_source": "=epg_source", "tvg_id": "tvg_id", "tvg_id__iexact": "tvg_id", "tvg_id__icontains": "tvg_id",
        "tvg_id__startswith": "tvg_id", "name": "name", "name__iexact": "name", "name__icontains": "name",
        "name__startswith": "name", "name__istartswith": "name", "name__contains": "name",
    }  # fmt: skip

    def save(self, force_insert=False, force_update=False, using=None, update_fields=None):
        if not self.is_new() and not self.changes(update_fields):
            return
        type(self).write([self])

    @classmethod
    def create_many(cls, rows, ignore_conflicts=False):
        cls.write(rows)

    @classmethod
    def save_many(cls, rows, names):
        cls.write(rows)

    @classmethod
    def write(cls, rows):
        """Writes guide channels of sources whose programmes the plugin writes."""
        by_source = {}
        for row in rows:
            source = row.id_of("epg_source")
            source = own_source() if source is None else source
            by_source.setdefault(source, []).append(row)
        for source, some in by_source.items():
            check_owned(source)
            channels = [
                {"tvg_id": it.tvg_id or it.name, "name": it.name or it.tvg_id, "icon_url": it.icon_url}
                for it in some
            ]
            for start in range(0, len(channels), BULK_MAX):
                answer = write_programs(source, channels=channels[start : start + BULK_MAX])
                for row, data in zip(some[start : start + BULK_MAX], answer["channels"]):
                    row._take(data)

    @classmethod
    def send_deletion(cls, ids):
        raise NotSupported("the deletion of EPGData: delete its EPGSource")


# A request writes at most this many programmes.
BULK_MAX = 2_000


def own(source):
    sources = link.storage().get(OWNED, [])
    if source not in sources:
        link.storage().set(OWNED, [*sources, source])


def check_owned(source):
    found = EPGSource.objects.filter(pk=source).first()
    if found is None or found.source_type != "written":
        raise NotSupported(f"writing into guide source {source}, whose programmes are fetched")


def own_source():
    """Returns the guide source of this plugin, which is new if there is none."""
    host = link.host()
    sources = link.storage().get(OWNED, [])
    for source in sources:
        try:
            if link.get(f"{EPGSource.path}{source}/").get("source_type") == "written":
                return source
        except NotFound:
            continue
    name = f"Plugin {host.key}"
    found = EPGSource.objects.filter(name=name, source_type="written").first()
    if found is None:
        found = EPGSource.objects.create(name=name, source_type="written")
    own(found.pk)
    return found.pk


def write_programs(source, programs=(), channels=(), delete=()):
    body = {"epg_source": source, "programs": list(programs), "channels": list(channels), "delete": list(delete)}
    return link.request("POST", f"{ProgramData.path}bulk/", body)


class ProgramData(Model):
    app, path, has_ids = "epg", "/api/epg/programs/", False
    ordering, is_ordered = (), False
    fields = {
        "id": shown("id"),
        "start_time": field("start_time", TIME),
        "end_time": field("end_time", TIME),
        **same("title", "sub_title", "description", "tvg_id"),
        "custom_properties": field("custom_properties", as_object),
    }
    links = {"epg": ("epg", "EPGData", None)}
    filters = {
        "tvg_id": "tvg_id", "tvg_id__iexact": "tvg_id", "epg__tvg_id": "tvg_id", "epg__epg_source": "epg_source",
        "start_time__gte": "start_after", "start_time__gt": "start_after", "start_time__lte": "start_before",
        "start_time__lt": "start_before", "end_time__gte": "end_after", "end_time__gt": "end_after",
        "end_time__lte": "end_before", "end_time__lt": "end_before",
    }  # fmt: skip

    @classmethod
    def plan(cls, required):
        required = list(required)
        plan = super().plan(required)
        plan.guide_channels = None
        for leaf in required:
            path, value = leaf
            if path in ("epg", "epg_id", "epg__id", "epg__pk") and value is not None:
                found = {value.pk if isinstance(value, Model) else value}
            elif path in ("epg__in", "epg_id__in", "epg__id__in"):
                values = value.as_values() if hasattr(value, "as_values") else value
                found = {it.pk if isinstance(it, Model) else it for it in values}
            else:
                continue
            plan.guide_channels = found if plan.guide_channels is None else plan.guide_channels & found
        return plan

    @classmethod
    def read(cls, plan):
        BUFFERS.flush()
        if plan.ids is not None:
            for pk in plan.ids:
                try:
                    yield from cls.batch([link.get(f"{cls.path}{pk}/")])
                except NotFound:
                    continue
            return
        if plan.guide_channels is None:
            sources = EPGSource.objects.all() if "epg_source" not in plan.params else [None]
            for source in sources:
                params = dict(plan.params) if source is None else {**plan.params, "epg_source": source.pk}
                yield from cls.of_source(params)
            return
        for channel in EPGData.read_ids(plan.guide_channels):
            params = {**plan.params, "tvg_id": channel.tvg_id}
            found = {channel.id_of("epg_source")}
            if found - set(owned()):
                # Programmes that the plugin wrote for a guide channel of another source.
                found |= set(owned())
            for source in found:
                for rows in link.pages(cls.path, {**params, "epg_source": source}, cls.page_size):
                    yield from cls.batch({**it, "epg": channel.pk} for it in rows if it["tvg_id"] == channel.tvg_id)

    @classmethod
    def of_source(cls, params):
        channels = None
        for rows in link.pages(cls.path, params, cls.page_size):
            if channels is None and rows:
                found = link.pages(EPGData.path, {"epg_source": params["epg_source"]}, EPGData.page_size)
                channels = {it["tvg_id"]: it["id"] for some in found for it in some}
            yield from cls.batch({**it, "epg": channels.get(it["tvg_id"])} for it in rows)

    @classmethod
    def count(cls, conditions):
        return None

    def save(self, force_insert=False, force_update=False, using=None, update_fields=None):
        buffer = BUFFERS.current()
        if buffer is not None and self.is_new():
            buffer.collect(ProgramData, self)
        else:
            type(self).write([self])

    @classmethod
    def send_late(cls, rows):
        cls.write(rows)

    @classmethod
    def create_many(cls, rows, ignore_conflicts=False):
        cls.write(rows)

    @classmethod
    def save_many(cls, rows, names):
        cls.write(rows)

    @classmethod
    def write(cls, rows):
        """Writes programmes into guide sources of the plugin, up to BULK_MAX in a request."""
        by_source = {}
        channels = {it: None for it in (row.id_of("epg") for row in rows) if it is not None}
        for it in EPGData.read_ids(channels):
            channels[it.pk] = it
        written = {it.pk for it in EPGSource.objects.filter(source_type="written")}
        for row in rows:
            channel = row._set.get("epg") or channels.get(row.id_of("epg"))
            source = channel.id_of("epg_source") if channel is not None else None
            if source not in written:
                source = own_source()
                link.say_once(f"ProgramData of fetched guide sources is written to guide source {source}")
            tvg_id = (channel.tvg_id if channel is not None else None) or row.tvg_id
            if not tvg_id:
                raise ValidationError("ProgramData needs an epg or a tvg_id")
            by_source.setdefault(source, []).append((row, cls.body(row, tvg_id)))
        for source, pairs in by_source.items():
            for some in link.portions(pairs, BULK_MAX, lambda it: it[1]):
                replaced = [row.pk for row, body in some if row.pk is not None and row._moved()]
                answer = write_programs(source, programs=[body for _, body in some], delete=replaced)
                for (row, body), pk in zip(some, answer["ids"]):
                    epg = row.id_of("epg")
                    row._take({**body, "id": pk, "epg": epg, "custom_properties": row._raw("custom_properties")})

    def _moved(self):
        return "start_time" in self._set and to_json(self._set["start_time"]) != self._raw("start_time")

    @staticmethod
    def body(row, tvg_id):
        extra = row.custom_properties or {}
        body = {
            "tvg_id": tvg_id,
            "start_time": to_json(row.start_time),
            "end_time": to_json(row.end_time),
            "title": (row.title or "")[:255],
            "sub_title": (row.sub_title or "")[:255],
            "description": row.description or "",
        }
        categories = extra.get("categories")
        if isinstance(categories, list):
            body["categories"] = [str(it)[:255] for it in categories if it][:50]
        for key, name in (("season", "season"), ("episode", "episode")):
            if isinstance(extra.get(name), int) and extra[name] > 0:
                body[key] = extra[name]
        icon = extra.get("icon")
        if isinstance(icon, str) and icon.startswith(("http://", "https://")):
            body["icon"] = icon
        body["is_new"], body["is_live"] = bool(extra.get("new")), bool(extra.get("live"))
        return body

    @classmethod
    def delete_many(cls, rows):
        BUFFERS.flush()
        by_source, written = {}, {it.pk for it in EPGSource.objects.filter(source_type="written")}
        sources = {}
        for row in rows:
            detail = sources.get(row.id_of("epg"))
            if detail is None:
                channel = row.epg
                detail = sources[row.id_of("epg")] = channel.id_of("epg_source") if channel is not None else None
            by_source.setdefault(detail, []).append(row.pk)
        for source, ids in by_source.items():
            if source not in written:
                link.say_once("ProgramData of fetched guide sources is not deleted")
                continue
            for some in link.chunks(ids, BULK_MAX):
                write_programs(source, delete=some)


def owned():
    return link.storage().get(OWNED, [])


class Stream(Model):
    app, path, has_ids = "channels", "/api/channels/streams/", True
    fields = {
        "id": shown("id"),
        **same("name", "url", "tvg_id", "logo_url"),
        **only_shown("stream_hash", "is_custom", "is_stale", "is_catchup", "catchup_days", "stream_chno", "local_file"),
        "stream_stats": shown("stream_stats", as_json),
        "stream_stats_updated_at": shown("stream_stats_updated_at", TIME),
        "last_seen": shown("last_seen", TIME),
        "updated_at": shown("updated_at", TIME),
        "channel_group_name": shown("channel_group_name"),
    }
    links = {
        "m3u_account": ("m3u_account", "M3UAccount", None),
        "channel_group": ("channel_group", "ChannelGroup", "channel_group"),
        "stream_profile": ("stream_profile_id", "StreamProfile", "stream_profile_id"),
    }
    # The gateway keeps none.
    custom_properties = property(lambda self: {})
    reverse = {"channels": ("Channel", "streams"), "channelstream": ("ChannelStream", "stream")}
    filters = {
        "m3u_account": "=m3u_account", "m3u_account__in": "=m3u_account", "channel_group": "=channel_group",
        "channel_group__in": "=channel_group", "channel_group__name": "channel_group_name", "name": "name",
        "name__iexact": "name", "name__icontains": "name", "name__contains": "name", "name__startswith": "name",
        "name__istartswith": "name", "name__endswith": "name", "tvg_id": "tvg_id", "tvg_id__iexact": "tvg_id",
        "tvg_id__icontains": "tvg_id", "channels": "=assigned", "m3u_account__is_active": "=m3u_account_is_active",
    }  # fmt: skip

    @classmethod
    def narrow(cls, plan, leaf, name, lookup, value):
        if name in ("channels", "channelstream") and lookup == "isnull" and value:
            plan.params["unassigned"] = True
            plan.done.add(id(leaf))
        elif name == "is_stale" and lookup == "exact" and value is False:
            plan.params["hide_stale"] = True
            plan.done.add(id(leaf))
        elif name == "channel_group__name" and "," in str(value):
            return
        else:
            super().narrow(plan, leaf, name, lookup, value)

    @classmethod
    def read(cls, plan):
        # Without a filter by account, the list leaves out streams of inactive accounts.
        chosen = {"m3u_account", "m3u_account_is_active", "assigned"} & plan.params.keys()
        if plan.ids is None and not chosen:
            for is_active in (True, False):
                some = type(plan)()
                some.params = {**plan.params, "m3u_account_is_active": is_active}
                yield from super().read(some)
            return
        yield from super().read(plan)

    @classmethod
    def read_ids(cls, ids, params=None):
        for some in link.chunks(sorted(it for it in ids if isinstance(it, int))):
            yield from cls.batch(link.request("POST", f"{cls.path}by-ids/", {"ids": some}))

    @classmethod
    def count(cls, conditions):
        plan = cls.plan([it for condition in conditions for it in condition.required()])
        if plan.ids is not None or not all(it.is_within(plan.done) for it in conditions):
            return None
        BUFFERS.flush()
        if {"m3u_account", "m3u_account_is_active", "assigned"} & plan.params.keys():
            return link.count(cls.path, plan.params)
        return sum(link.count(cls.path, {**plan.params, "m3u_account_is_active": it}) for it in (True, False))

    def send_new(self, body):
        body.pop("m3u_account", None)
        return super().send_new(body)

    @classmethod
    def send_deletion(cls, ids):
        for some in link.chunks(ids, 1000):
            link.request("POST", f"{cls.path}bulk-delete/", {"ids": some})


class Channel(Model):
    app, path, has_ids = "channels", "/api/channels/channels/", True
    ordering, is_ordered = ("channel_number",), True
    fields = {
        "id": shown("id"),
        "uuid": shown("uuid", uuid.UUID),
        "channel_number": field("channel_number", float),
        **same("name", "tvg_id", "tvc_guide_stationid", "user_level", "is_adult", "hidden_from_output"),
        "custom_properties": field("custom_properties", as_object),
        **only_shown("auto_created", "is_catchup", "catchup_days", "channel_group_name", "logo_url"),
        **only_shown("effective_name", "effective_channel_number", "effective_tvg_id"),
        "created_at": shown("created_at", TIME),
        "updated_at": shown("updated_at", TIME),
    }
    links = {
        "channel_group": ("channel_group_id", "ChannelGroup", "channel_group_id"),
        "logo": ("logo_id", "Logo", "logo_id"),
        "epg_data": ("epg_data_id", "EPGData", "epg_data_id"),
        "stream_profile": ("stream_profile_id", "StreamProfile", "stream_profile_id"),
        "auto_created_by": ("auto_created_by", "M3UAccount", None),
    }
    many = {"streams": "Stream"}
    reverse = {
        "channelstream": ("ChannelStream", "channel"),
        "channelprofilemembership": ("ChannelProfileMembership", "channel"),
        "recordings": ("Recording", "channel"),
    }
    filters = {
        "channel_group": "=channel_group", "channel_group__in": "=channel_group", "name": "name",
        "name__iexact": "name", "name__icontains": "name", "name__contains": "name", "name__startswith": "name",
        "name__istartswith": "name", "name__endswith": "name", "tvg_id": "tvg_id", "tvg_id__iexact": "tvg_id",
        "tvg_id__icontains": "tvg_id", "logo": "=logo_id", "stream_profile": "=stream_profile_id",
        "streams": "=stream_id", "is_adult": "=is_adult", "user_level": "=user_level",
    }  # fmt: skip

    @classmethod
    def narrow(cls, plan, leaf, name, lookup, value):
        if name == "streams" and lookup == "isnull" and value:
            plan.params["only_streamless"] = True
            plan.done.add(id(leaf))
        elif name == "uuid":
            return
        else:
            super().narrow(plan, leaf, name, lookup, value)

    @classmethod
    def send_many(cls, changes):
        bodies = [{**body, "id": pk} for pk, body in changes.items()]
        for some in link.portions(bodies, 1000):
            link.request("PATCH", f"{cls.path}edit/bulk/", some)

    @classmethod
    def save_many(cls, rows, names):
        changes = {it.pk: it.changes(names) for it in rows if not it.is_new()}
        changes = {pk: body for pk, body in changes.items() if body}
        buffer = BUFFERS.current()
        if buffer is not None:
            for pk, body in changes.items():
                buffer.change(cls, pk, body)
        elif changes:
            cls.send_many(changes)
        for row in rows:
            if row.pk in changes:
                row._keep(changes[row.pk])

    def send_one(self, body):
        try:
            return super().send_one(body)
        except Exception as error:
            occupants = self._occupants(error, body)
            if not occupants:
                raise
            # Numbers are unique here. Another channel with the number gets the one that this channel had.
            before = self._raw("channel_number")
            swapped = [{"id": it, "channel_number": before} for it in occupants]
            link.request("PATCH", f"{self.path}edit/bulk/", [*swapped, {**body, "id": self.pk}])
            return link.get(f"{self.path}{self.pk}/")

    def _occupants(self, error, body):
        number, refused = body.get("channel_number"), getattr(error, "body", None)
        if number is None or getattr(error, "status", None) != 400 or "channel_number" not in (refused or {}):
            return []
        found = link.get(f"{self.path}numbers-in-range/", {"start": number, "end": number})
        return [it["id"] for it in found.get("occupants", []) if it["id"] != self.pk][:1]

    @classmethod
    def send_deletion(cls, ids):
        for some in link.chunks(ids, 1000):
            link.request("POST", f"{cls.path}bulk-delete/", {"ids": some})

    @classmethod
    def get_next_available_channel_number(cls, starting_from=1):
        taken = set(cls.objects.values_list("channel_number", flat=True))
        number = starting_from
        while number in taken:
            number += 1
        return number

    def get_stream_profile(self):
        return self.stream_profile or StreamProfile.objects.filter(
            pk=CoreSettings.get_default_stream_profile_id()
        ).first()


class ChannelStreams(Related):
    """`channel.streams`, in the order in which they are tried."""

    def __init__(self, owner):
        self.owner = owner
        self.through = ChannelStream

    def ids(self):
        return list(self.owner._raw("streams") or [])

    def get_queryset(self):
        if self.owner.pk is None:
            raise ValueError("the channel needs to be saved before its streams can be used")
        return OrderedStreams(Stream, self.owner)

    def iterate_related(self):
        found = self.owner._siblings_many(Stream, self.ids())
        return iter(it for it in found if it is not None)

    def _write(self, ids):
        body = {"streams": list(dict.fromkeys(ids))}
        self.owner.send_changes(body)
        if self.owner._raw("streams") != body["streams"]:
            self.owner._keep(body)

    def add(self, *objects, through_defaults=None):
        self._write([*self._now(), *(as_pk(it) for it in objects)])

    def remove(self, *objects):
        gone = {as_pk(it) for it in objects}
        self._write([it for it in self._now() if it not in gone])

    def set(self, objects, clear=False, through_defaults=None):
        self._write([as_pk(it) for it in objects])

    def clear(self):
        self._write([])

    def create(self, **members):
        stream = Stream.create(members)
        self.add(stream)
        return stream

    def _now(self):
        """Returns the streams as the gateway has them now."""
        if BUFFERS.current() is None:
            self.owner.__dict__["_data"] = Channel.of(link.get(f"{Channel.path}{self.owner.pk}/"))._data
        return self.ids()


class OrderedStreams(QuerySet):
    """The streams of a channel."""

    def __init__(self, model, channel):
        super().__init__(model)
        self._channel = channel

    def _clone(self):
        other = OrderedStreams(self.model, self._channel)
        members = {**self.__dict__, "_results": None}
        other.__dict__.update(members)
        for name in ("_where", "_having", "_late", "_order"):
            other.__dict__[name] = list(members[name])
        other._annotations = dict(self._annotations)
        return other

    def _read(self, conditions):
        for row in self._channel._siblings_many(Stream, ChannelStreams(self._channel).ids()):
            if row is not None and all(condition.matches(row) for condition in conditions):
                yield row

    def order_by(self, *fields):
        if fields and fields[0] in ("channelstream__order", "channelstream"):
            return self._clone()
        if fields and fields[0] == "-channelstream__order":
            raise NotSupported("the reverse order of streams")
        return super().order_by(*fields)

    def count(self):
        return len(self._fetch())

    def first(self):
        return next(iter(self[:1]), None)

    def last(self):
        found = list(self)
        return found[-1] if found else None


def siblings_many(self, model, ids):
    for it in ids:
        self._siblings(model, it, lambda row: row._raw("streams") or [])
    cache = self._batch.related.get(model.__name__, {}) if self._batch is not None else {}
    return [cache.get(it) for it in ids]


Channel._siblings_many = siblings_many
MANY[("Channel", "streams")] = ChannelStreams


def as_pk(value):
    return value.pk if isinstance(value, Model) else int(value)


class Recording(Model):
    app, path = "channels", "/api/channels/recordings/"
    fields = {
        "id": shown("id"),
        "start_time": field("start_time", TIME),
        "end_time": field("end_time", TIME),
        "task_id": shown("task_id"),
        "status": shown("status"),
        "custom_properties": field("custom_properties", as_object),
    }
    links = {"channel": ("channel", "Channel", "channel")}
    filters = {"channel": "=channel_id", "status": "=status"}


TITLE = {
    "id": shown("id"),
    "uuid": shown("uuid", uuid.UUID),
    **same("name", "description", "year", "rating", "genre", "tmdb_id", "imdb_id"),
    "custom_properties": field("custom_properties", as_object),
    "created_at": shown("created_at", TIME),
    "updated_at": shown("updated_at", TIME),
}
TITLE_FILTERS = {
    "name": "name", "name__iexact": "name", "name__icontains": "name", "year": "=year", "year__gte": "=year_gte",
    "year__lte": "=year_lte", "genre__icontains": "genre",
}  # fmt: skip


class Movie(Model):
    app, path, has_ids = "vod", "/api/vod/movies/", True
    fields = {**TITLE, **same("duration_secs", "is_adult")}
    filters = {**TITLE_FILTERS, "is_adult": "=is_adult"}


class Series(Model):
    app, path, has_ids, fields, filters = "vod", "/api/vod/series/", True, TITLE, TITLE_FILTERS
    reverse = {"episodes": ("Episode", "series")}
    counts = {"episodes": "episode_count"}
    kept = ("episode_count",)


class Episode(Model):
    app, path = "vod", "/api/vod/episodes/"
    fields = {
        "id": shown("id"),
        "uuid": shown("uuid", uuid.UUID),
        **only_shown("name", "description", "air_date", "rating", "duration_secs", "season_number", "episode_number"),
        **only_shown("tmdb_id", "imdb_id"),
        "custom_properties": shown("custom_properties", as_object),
    }
    links = {"series": ("series", "Series", None)}
    filters = {"series": "=series", "season_number": "=season_number", "episode_number": "=episode_number"}


class ChannelProfile(Model):
    app, path = "channels", "/api/channels/profiles/"
    fields = {"id": shown("id"), **same("name")}
    kept = ("channels",)
    reverse = {"channelprofilemembership": ("ChannelProfileMembership", "channel_profile")}
    many = {"channels": "Channel"}
    filters = {"name": "name", "name__icontains": "name", "name__iexact": "name"}


class ProfileChannels(Related):
    """`profile.channels`: the channels that are enabled in a profile."""

    def __init__(self, owner):
        self.owner = owner

    def ids(self):
        return list(self.owner._raw("channels") or [])

    def get_queryset(self):
        return QuerySet(Channel).filter(pk__in=self.ids())


MANY[("ChannelProfile", "channels")] = ProfileChannels


# Rows that the gateway keeps as a part of other objects.


class Part(Model):
    """A row of a relation, which is a part of another object."""

    parent, child = "", ""

    @classmethod
    def count(cls, conditions):
        return None

    @classmethod
    def wanted(cls, required, name):
        """Returns the ids that a link can have, or None."""
        found = None
        for path, value in required:
            if path in (name, f"{name}_id", f"{name}__id", f"{name}__pk"):
                ids = {value.pk if isinstance(value, Model) else value}
            elif path in (f"{name}__in", f"{name}_id__in", f"{name}__id__in"):
                values = value.as_values() if hasattr(value, "as_values") else value
                ids = {it.pk if isinstance(it, Model) else it for it in values}
            else:
                continue
            found = ids if found is None else found & ids
        return found

    @classmethod
    def plan(cls, required):
        required = list(required)
        plan = super().plan(required)
        plan.parents = cls.wanted(required, cls.parent)
        plan.children = cls.wanted(required, cls.child)
        return plan

    @classmethod
    def read(cls, plan):
        BUFFERS.flush()
        for rows in cls.read_parts(plan):
            yield from cls.batch(it for it in rows if plan.ids is None or it["id"] in plan.ids)

    @classmethod
    def read_ids(cls, ids, params=None):
        return (it for it in cls.read(cls.plan([])) if it.pk in ids)

    @classmethod
    def create_many(cls, rows, ignore_conflicts=False):
        cls.put(rows)

    @classmethod
    def save_many(cls, rows, names):
        cls.put(rows)

    def save(self, force_insert=False, force_update=False, using=None, update_fields=None):
        type(self).put([self])

    def saved(self, data):
        self._take(data)

    @classmethod
    def delete_many(cls, rows):
        cls.remove(rows)


class ChannelStream(Part):
    """A stream of a channel. Its id is made of both ids."""

    app, parent, child = "channels", "channel", "stream"
    fields = {"id": shown("id"), **same("order")}
    links = {"channel": ("channel", "Channel", "channel"), "stream": ("stream", "Stream", "stream")}
    ordering, is_ordered = ("order",), False

    @staticmethod
    def rows_of(channel, streams):
        return [
            {"id": (channel << 32) + stream, "channel": channel, "stream": stream, "order": n}
            for n, stream in enumerate(streams)
        ]

    @classmethod
    def read_parts(cls, plan):
        parents = plan.parents
        if parents is None and plan.ids is not None:
            parents = {it >> 32 for it in plan.ids}
        if parents is None and plan.children is not None and len(plan.children) == 1:
            found = link.pages(Channel.path, {"stream_id": next(iter(plan.children))}, Channel.page_size)
            channels = (it for rows in found for it in rows)
        elif parents is not None:
            channels = ({"id": it.pk, "streams": it._raw("streams")} for it in Channel.read_ids(parents))
        else:
            channels = (it for rows in link.pages(Channel.path, {}, Channel.page_size) for it in rows)
        some = []
        for channel in channels:
            some.extend(cls.rows_of(channel["id"], channel["streams"] or []))
            if len(some) >= cls.page_size:
                yield some
                some = []
        yield some

    @classmethod
    def put(cls, rows):
        by_channel = {}
        for row in rows:
            by_channel.setdefault(row.id_of("channel"), []).append(row)
        cls.change(by_channel, cls.with_rows)

    @classmethod
    def with_rows(cls, streams, rows):
        order = {stream: (n, 0) for n, stream in enumerate(streams)}
        for n, row in enumerate(rows):
            place = row.order if row.order is not None else len(streams) + n
            # A new row comes before an old one with the same place, as it is written later.
            order[row.id_of("stream")] = (place, -1)
        return sorted(order, key=order.get)

    @classmethod
    def remove(cls, rows):
        by_channel = {}
        for row in rows:
            by_channel.setdefault(row.id_of("channel"), []).append(row)
        gone = lambda streams, some: [it for it in streams if it not in {row.id_of("stream") for row in some}]
        cls.change(by_channel, gone)

    @classmethod
    def change(cls, by_channel, streams_of):
        BUFFERS.flush()
        present = {it.pk: it._raw("streams") or [] for it in Channel.read_ids(by_channel)}
        changes = {}
        for channel, rows in by_channel.items():
            streams = streams_of(list(present.get(channel, [])), rows)
            changes[channel] = {"streams": streams}
            for row in rows:
                # A channel in the hands of the plugin shows the change.
                owner = row._set.get("channel")
                if isinstance(owner, Channel) and owner._data is not None:
                    owner._keep({"streams": streams})
                at = {stream: n for n, stream in enumerate(streams)}
                stream = row.id_of("stream")
                kept = {"id": (channel << 32) + stream, "channel": channel, "stream": stream}
                row.saved({**kept, "order": at.get(stream, row.order)})
        Channel.send_many(changes)


class ChannelProfileMembership(Part):
    """Whether a channel is enabled in a profile. Each profile has a row for each channel."""

    app, parent, child = "channels", "channel_profile", "channel"
    fields = {"id": shown("id"), **same("enabled")}
    links = {
        "channel_profile": ("channel_profile", "ChannelProfile", "channel_profile"),
        "channel": ("channel", "Channel", "channel"),
    }
    defaults = {"enabled": True}

    @classmethod
    def read_parts(cls, plan):
        profiles = [it for rows in link.pages(ChannelProfile.path, {}, 500) for it in rows]
        if plan.parents is not None:
            profiles = [it for it in profiles if it["id"] in plan.parents]
        channels = plan.children
        if channels is None:
            summaries = link.get(f"{Channel.path}ids/")
            channels = summaries if isinstance(summaries, list) else summaries.get("ids", [])
        for profile in profiles:
            enabled = set(profile["channels"])
            for some in link.chunks(sorted(it for it in channels if it is not None)):
                yield [
                    {
                        "id": (profile["id"] << 32) + channel,
                        "channel_profile": profile["id"],
                        "channel": channel,
                        "enabled": channel in enabled,
                    }
                    for channel in some
                ]

    @classmethod
    def put(cls, rows):
        by_profile = {}
        for row in rows:
            entry = {"channel_id": row.id_of("channel"), "enabled": bool(row.enabled)}
            by_profile.setdefault(row.id_of("channel_profile"), []).append(entry)
        for profile, entries in by_profile.items():
            for some in link.chunks(entries, 5000):
                path = f"{ChannelProfile.path}{profile}/channels/bulk-update/"
                link.request("PATCH", path, {"memberships": some})
        for row in rows:
            profile, channel = row.id_of("channel_profile"), row.id_of("channel")
            kept = {"id": (profile << 32) + channel, "channel_profile": profile, "channel": channel}
            row.saved({**kept, "enabled": bool(row.enabled)})

    @classmethod
    def remove(cls, rows):
        for row in rows:
            row.enabled = False
        cls.put(rows)


class ChannelGroupM3UAccount(Part):
    """A group of an account."""

    app, parent, child = "channels", "m3u_account", "channel_group"
    fields = {
        "id": shown("id"),
        **same("enabled", "auto_channel_sync", "auto_sync_channel_start", "auto_sync_channel_end"),
        "custom_properties": field("custom_properties", as_object),
        **only_shown("is_stale", "stream_count"),
        "last_seen": shown("last_seen", TIME),
    }
    links = {
        "m3u_account": ("m3u_account", "M3UAccount", None),
        "channel_group": ("channel_group", "ChannelGroup", "channel_group"),
    }

    @classmethod
    def read_parts(cls, plan):
        for rows in link.pages(M3UAccount.path, {}, 100):
            for account in rows:
                if plan.parents is None or account["id"] in plan.parents:
                    groups = account.get("channel_groups") or []
                    kept = (it for it in groups if plan.children is None or it["channel_group"] in plan.children)
                    yield [
                        {**it, "id": (account["id"] << 32) + it["channel_group"], "m3u_account": account["id"]}
                        for it in kept
                    ]

    @classmethod
    def put(cls, rows):
        by_account = {}
        for row in rows:
            entry = {**row.changes(), "channel_group": row.id_of("channel_group")}
            by_account.setdefault(row.id_of("m3u_account"), []).append(entry)
        for account, entries in by_account.items():
            path = f"{M3UAccount.path}{account}/group-settings/"
            link.request("PATCH", path, {"group_settings": entries})
        for row, entry in zip(rows, (it for entries in by_account.values() for it in entries)):
            if row._data is not None:
                row._keep(entry)

    @classmethod
    def remove(cls, rows):
        raise NotSupported("the deletion of ChannelGroupM3UAccount")


class M3UAccountProfile(Part):
    """A log-in of an account."""

    app, parent, child = "m3u", "m3u_account", "-"
    fields = {
        "id": shown("id"),
        **same("name", "max_streams", "is_active", "search_pattern", "replace_pattern"),
        "custom_properties": field("custom_properties", as_object),
        "exp_date": field("exp_date", TIME),
        **only_shown("is_default", "current_viewers"),
    }
    links = {"m3u_account": ("m3u_account", "M3UAccount", None)}

    @classmethod
    def read_parts(cls, plan):
        for rows in link.pages(M3UAccount.path, {}, 100):
            for account in rows:
                if plan.parents is None or account["id"] in plan.parents:
                    yield [{**it, "m3u_account": account["id"]} for it in account.get("profiles") or []]

    @classmethod
    def put(cls, rows):
        for row in rows:
            account = row.id_of("m3u_account")
            path = f"{M3UAccount.path}{account}/profiles/"
            if row.is_new():
                body = {key: value for key, value in row.changes().items() if value is not None}
                answer = link.request("POST", path, body)
            else:
                body = row.changes()
                answer = link.request("PATCH", f"{path}{row.pk}/", body) if body else None
            if answer is not None:
                row.saved({**answer, "m3u_account": account})

    @classmethod
    def remove(cls, rows):
        for row in rows:
            link.request("DELETE", f"{M3UAccount.path}{row.id_of('m3u_account')}/profiles/{row.pk}/")


REVERSE_SETS.update(
    channelstream=("ChannelStream", "channel"),
    channelprofilemembership=("ChannelProfileMembership", "channel"),
    channel=("Channel", "channel_group"),
    stream=("Stream", "channel_group"),
)


class PluginConfig(Part):
    """A plugin. The settings of this one are at hand, those of others come from the gateway."""

    app = "plugins"
    fields = {
        "id": shown("id"),
        **only_shown("key", "name", "version", "description", "enabled", "ever_enabled"),
        "settings": field("settings", as_object),
    }

    @classmethod
    def read_parts(cls, plan):
        host = link.host()
        yield [
            {
                "id": host.key, "key": host.key, "name": host.key, "version": "", "description": "", "enabled": True,
                "ever_enabled": True, "settings": dict(host.settings),
            }
        ]  # fmt: skip
        if plan.own_only:
            return
        found = link.get("/api/plugins/plugins/").get("plugins", [])
        yield [{**it, "id": it["key"]} for it in found if it["key"] != host.key]

    @classmethod
    def plan(cls, required):
        required = list(required)
        plan = super().plan(required)
        plan.own_only = False
        for leaf in required:
            path, value = leaf
            if path in ("key", "key__iexact", "name", "pk", "id") and is_own_key(value):
                plan.own_only, plan.ids = True, None
                plan.done.add(id(leaf))
        return plan

    @classmethod
    def put(cls, rows):
        for row in rows:
            settings = to_json(row.settings or {})
            path = f"/api/plugins/plugins/{row.key}/settings/"
            link.request("POST", path, {"settings": settings})
            if row.key == link.host().key:
                link.host().settings.clear()
                link.host().settings.update(settings)
            row._set.clear()

    @classmethod
    def create(cls, members):
        raise NotSupportedAttribute("PluginConfig.objects.create")

    @classmethod
    def remove(cls, rows):
        raise NotSupportedAttribute("PluginConfig.delete")


def is_own_key(value):
    plain = lambda it: str(it).lower().replace("-", "_").replace(" ", "_")
    return plain(value) == plain(link.host().key)
