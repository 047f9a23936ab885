"""`django.utils.timezone`: aware times."""

import datetime as _datetime
import os
from datetime import datetime, timedelta, tzinfo  # noqa: F401, plugins import them from here
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

utc = _datetime.timezone.utc
timezone = _datetime.timezone


def get_default_timezone():
    try:
        return ZoneInfo(os.environ.get("TZ") or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return utc


def get_default_timezone_name():
    return str(get_default_timezone())


get_current_timezone = get_default_timezone
get_current_timezone_name = get_default_timezone_name


def now():
    return datetime.now(utc)


def is_aware(value):
    return value.utcoffset() is not None


def is_naive(value):
    return value.utcoffset() is None


def make_aware(value, timezone=None, is_dst=None):
    if is_aware(value):
        raise ValueError(f"make_aware expects a naive datetime, got {value}")
    zone = timezone or get_current_timezone()
    if hasattr(zone, "localize"):
        return zone.localize(value)
    return value.replace(tzinfo=zone)


def make_naive(value, timezone=None):
    if is_naive(value):
        raise ValueError("make_naive cannot be applied to a naive datetime")
    return value.astimezone(timezone or get_current_timezone()).replace(tzinfo=None)


def localtime(value=None, timezone=None):
    return (value or now()).astimezone(timezone or get_current_timezone())


def localdate(value=None, timezone=None):
    return localtime(value, timezone).date()


def template_localtime(value, use_tz=None):
    return localtime(value)


def get_fixed_timezone(offset):
    if isinstance(offset, timedelta):
        offset = offset.total_seconds() // 60
    return _datetime.timezone(timedelta(minutes=offset))


def parse_datetime(text):
    """Returns the time that a text in ISO 8601 means, or None."""
    if not isinstance(text, str):
        return None
    text = text.strip()
    if text.endswith(("Z", "z")):
        text = text[:-1] + "+00:00"
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return _lenient(text)


def _lenient(text):
    # Python 3.10 reads fractions of three or six digits only.
    import re

    found = re.fullmatch(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?)(?:\.(\d+))?([+-]\d\d:?\d\d)?", text)
    if not found:
        return None
    head, fraction, zone = found.groups()
    zone = zone or ""
    if zone and ":" not in zone:
        zone = f"{zone[:3]}:{zone[3:]}"
    fraction = f".{(fraction or '0')[:6]:0<6}"
    if len(head) == 16:
        head += ":00"
    try:
        return datetime.fromisoformat(head + fraction + zone)
    except ValueError:
        return None


def parse_date(text):
    try:
        return _datetime.date.fromisoformat(text)
    except (TypeError, ValueError):
        return None


def parse_time(text):
    try:
        return _datetime.time.fromisoformat(text)
    except (TypeError, ValueError):
        return None


def parse_duration(text):
    import re

    found = re.fullmatch(r"(?:(-?\d+) )?(?:(\d+):)?(\d+):(\d+)(?:\.\d+)?", text or "")
    if not found:
        return None
    days, hours, minutes, seconds = (int(it or 0) for it in found.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
