"""Celery: tasks run in threads of the plugin's process; periodic ones are schedules of the gateway."""

import functools
import hashlib
import json
import re
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

from . import clock, link
from .errors import MultipleObjectsReturned, NotSupported, NotSupportedAttribute, ObjectDoesNotExist
from .lookups import Q

# The action of schedules that run a task.
ACTION = "__task__"
# The periodic tasks of the plugin, in its storage.
STORED = "compat:periodic_tasks"
# At most this many tasks wait.
WAITING_MAX = 1_000
THREADS = 4

TASKS = {}


class Result:
    """The result of a task."""

    def __init__(self, future=None, id=None):  # noqa: A002
        self.id = self.task_id = id or str(uuid.uuid4())
        self._future = future

    def get(self, timeout=None, propagate=True, **_):
        if self._future is None:
            return None
        try:
            return self._future.result(timeout)
        except Exception as error:
            if propagate:
                raise
            return error

    def wait(self, timeout=None, **_):
        return self.get(timeout)

    @property
    def result(self):
        return self.get(propagate=False) if self.ready() else None

    def ready(self):
        return self._future is None or self._future.done()

    def successful(self):
        return self.ready() and (self._future is None or self._future.exception() is None)

    def failed(self):
        return self.ready() and not self.successful()

    @property
    def state(self):
        return ("SUCCESS" if self.successful() else "FAILURE") if self.ready() else "PENDING"

    status = state

    def revoke(self, *_, **__):
        if self._future is not None:
            self._future.cancel()

    def forget(self):
        pass


AsyncResult = Result


class Workers:
    def __init__(self):
        self.lock, self.pool, self.waiting = threading.Lock(), None, 0

    def submit(self, task, args, kwargs, delay=0):
        with self.lock:
            if self.waiting >= WAITING_MAX:
                raise RuntimeError(f"{WAITING_MAX} tasks are waiting")
            self.waiting += 1
            if self.pool is None:
                self.pool = ThreadPoolExecutor(THREADS, thread_name_prefix="task")
        result = Result()
        begin = functools.partial(self.run, task, args, kwargs, result.id)
        if delay > 0:
            from concurrent.futures import Future

            result._future = Future()

            def later():
                try:
                    result._future.set_result(begin())
                except BaseException as error:
                    result._future.set_exception(error)

            timer = threading.Timer(delay, lambda: self.pool.submit(later))
            timer.daemon = True
            timer.start()
        else:
            result._future = self.pool.submit(begin)
        return result

    def run(self, task, args, kwargs, number):
        try:
            return task.call(args, kwargs, number)
        except BaseException:
            link.logger.exception("the task %s failed", task.name)
            raise
        finally:
            with self.lock:
                self.waiting -= 1


WORKERS = Workers()


class Request:
    def __init__(self, number, retries=0):
        self.id, self.retries, self.called_directly = number, retries, number is None


class Retry(Exception):
    pass


class Task:
    """A function that can run later."""

    def __init__(self, function, name=None, bind=False, max_retries=3, **options):
        functools.update_wrapper(self, function)
        self.function, self.bind, self.max_retries, self.options = function, bind, max_retries, options
        self.name = name or f"{function.__module__}.{function.__name__}"
        self.request = Request(None)
        TASKS[self.name] = self

    def call(self, args, kwargs, number=None):
        if not self.bind:
            return self.function(*args, **kwargs)
        bound = object.__new__(Task)
        bound.__dict__.update(self.__dict__)
        bound.request = Request(number)
        return self.function(bound, *args, **kwargs)

    def __call__(self, *args, **kwargs):
        return self.call(args, kwargs)

    run = __call__

    def delay(self, *args, **kwargs):
        return WORKERS.submit(self, args, kwargs)

    def apply_async(self, args=None, kwargs=None, countdown=None, eta=None, **_):
        delay = countdown or 0
        if eta is not None:
            delay = max(0, (eta - (clock.now() if clock.is_aware(eta) else clock.datetime.now())).total_seconds())
        return WORKERS.submit(self, tuple(args or ()), dict(kwargs or {}), delay)

    def apply(self, args=None, kwargs=None, **_):
        from concurrent.futures import Future

        future = Future()
        try:
            future.set_result(self.call(tuple(args or ()), dict(kwargs or {})))
        except Exception as error:
            future.set_exception(error)
        return Result(future)

    def s(self, *args, **kwargs):
        return Signature(self, args, kwargs)

    si = signature = s

    def retry(self, exc=None, countdown=None, **_):
        raise exc or Retry("the task asks to be run again")

    def update_state(self, *_, **__):
        pass


class Signature:
    def __init__(self, task, args, kwargs):
        self.task, self.args, self.kwargs = task, args, kwargs

    def __call__(self, *args, **kwargs):
        return self.task(*self.args, *args, **{**self.kwargs, **kwargs})

    def delay(self, *args, **kwargs):
        return self.task.delay(*self.args, *args, **{**self.kwargs, **kwargs})

    def apply_async(self, args=None, kwargs=None, **options):
        return self.task.apply_async((*self.args, *(args or ())), {**self.kwargs, **(kwargs or {})}, **options)


def shared_task(*args, **options):
    if len(args) == 1 and callable(args[0]) and not options:
        return Task(args[0])
    return lambda function: Task(function, **options)


def run_task(name, args=(), kwargs=None):
    """Runs a task by its name, as schedules do."""
    task = TASKS.get(name)
    if task is None:
        same = [it for it in TASKS.values() if it.name.rsplit(".", 1)[-1] == name.rsplit(".", 1)[-1]]
        if len(same) != 1:
            raise NotSupported(f"the task {name}, which no module of the plugin defines")
        task = same[0]
    return task(*args, **(kwargs or {}))


class App:
    """`celery.current_app`, `celery.Celery`."""

    def __init__(self, *args, **kwargs):
        pass

    task = staticmethod(shared_task)

    @property
    def tasks(self):
        return TASKS

    def send_task(self, name, args=None, kwargs=None, countdown=None, **_):
        task = TASKS.get(name)
        if task is None:
            raise NotSupported(f"the task {name}")
        return task.apply_async(args, kwargs, countdown)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotSupportedAttribute(f"celery.Celery.{name}")


current_app = app = App()
Celery = App


class crontab:  # noqa: N801, its name in Celery
    """`celery.schedules.crontab`."""

    def __init__(self, minute="*", hour="*", day_of_week="*", day_of_month="*", month_of_year="*", **_):
        self.minute, self.hour, self.day_of_week = str(minute), str(hour), str(day_of_week)
        self.day_of_month, self.month_of_year = str(day_of_month), str(month_of_year)


# Schedules of periodic tasks. They are values: the same members are the same schedule.


class Objects:
    """The objects of a small model whose rows are all at hand."""

    def __init__(self, model, condition=None):
        self.model, self._condition = model, condition or Q()

    def _found(self):
        return [it for it in self.model.all_rows() if self._condition.matches(it)]

    def all(self):
        return self

    def filter(self, *args, **kwargs):
        return Objects(self.model, condition=self._condition & Q(*args, **kwargs))

    def exclude(self, *args, **kwargs):
        return Objects(self.model, condition=self._condition & Q(*args, _negated=True, **kwargs))

    order_by = select_related = lambda self, *_: self

    def __iter__(self):
        return iter(self._found())

    def __len__(self):
        return len(self._found())

    count = __len__

    def exists(self):
        return bool(self._found())

    def first(self):
        return next(iter(self._found()), None)

    def values_list(self, *names, flat=False):
        rows = [tuple(getattr(it, name) for name in names) for it in self]
        return [it[0] for it in rows] if flat else rows

    def get(self, *args, **kwargs):
        found = self.filter(*args, **kwargs)._found()
        if not found:
            raise self.model.DoesNotExist(f"{self.model.__name__} matching query does not exist.")
        if len(found) > 1:
            raise self.model.MultipleObjectsReturned(f"get() returned more than one {self.model.__name__}.")
        return found[0]

    def create(self, **members):
        row = self.model(**members)
        row.save()
        return row

    def get_or_create(self, defaults=None, **members):
        found = self.filter(**members).first()
        return (found, False) if found else (self.create(**{**members, **(defaults or {})}), True)

    def update_or_create(self, defaults=None, **members):
        found = self.filter(**members).first()
        if found is None:
            return self.create(**{**members, **(defaults or {})}), True
        for name, value in (defaults or {}).items():
            setattr(found, name, value)
        found.save()
        return found, False

    def update(self, **members):
        rows = self._found()
        for row in rows:
            for name, value in members.items():
                setattr(row, name, value)
            row.save()
        return len(rows)

    def delete(self):
        rows = self._found()
        for row in rows:
            row.delete()
        return len(rows), {}


class Row:
    """An object of a small model."""

    app = "django_celery_beat"
    members = {}

    def __init_subclass__(cls):
        cls.objects = Objects(cls)
        cls.DoesNotExist = type("DoesNotExist", (ObjectDoesNotExist,), {})
        cls.MultipleObjectsReturned = type("MultipleObjectsReturned", (MultipleObjectsReturned,), {})

    def __init__(self, **members):
        for name in members:
            if name not in self.members:
                raise NotSupported(f"the field {name} of {type(self).__name__}")
        self.__dict__.update({**self.members, **members})

    def value_of(self, name, is_end=False):
        if name in ("id", "pk"):
            return self.pk
        if name not in self.members:
            raise NotSupported(f"the field {name} of {type(self).__name__} in a query")
        return getattr(self, name)

    @property
    def pk(self):
        return json.dumps(self.to_json(), sort_keys=True)

    id = pk

    def __eq__(self, other):
        return type(self) is type(other) and self.pk == other.pk

    def __hash__(self):
        return hash(self.pk)

    def to_json(self):
        return {name: str(getattr(self, name)) for name in self.members}

    @classmethod
    def all_rows(cls):
        return {it.pk: it for it in (getattr(task, cls.used_as) for task in PeriodicTask.all_rows()) if it}.values()

    def save(self, *args, **kwargs):
        pass

    def delete(self, *args, **kwargs):
        pass


NOTED = set()


def note_once(text, *values):
    """Logs a difference from the reference, but not at each save."""
    if (text, values) not in NOTED and len(NOTED) < WAITING_MAX:
        NOTED.add((text, values))
        link.logger.warning(text, *values)


def hours_between(name):
    """Returns by how many hours the gateway's clock is ahead of that of a time zone; None if it is not whole hours."""
    now = clock.now()
    try:
        theirs = now.astimezone(clock.ZoneInfo(name)).utcoffset()
    except (clock.ZoneInfoNotFoundError, ValueError, OSError):
        raise NotSupported(f"the time zone {name}") from None
    hours, rest = divmod(now.astimezone(clock.get_default_timezone()).utcoffset() - theirs, clock.timedelta(hours=1))
    return None if rest else hours


class CrontabSchedule(Row):
    used_as = "crontab"
    members = {
        "minute": "*", "hour": "*", "day_of_week": "*", "day_of_month": "*", "month_of_year": "*", "timezone": "UTC",
    }  # fmt: skip

    def cron(self):
        """Returns the cron expression in the time zone of the gateway."""
        hour, zone = str(self.hour), str(self.timezone)
        days = (str(self.day_of_month), str(self.month_of_year), str(self.day_of_week))
        hours = hours_between(zone)
        if hours and hour != "*":
            if days == ("*", "*", "*") and re.fullmatch(r"\d+(,\d+)*", hour):
                hour = ",".join(str(it) for it in sorted((int(it) + hours) % 24 for it in hour.split(",")))
                note_once("a schedule in the time zone %s is %d hours later by the gateway's clock, as now", zone, hours)
            else:
                hours = None
        if hours is None:
            note_once("the schedule %s in the time zone %s runs by the gateway's clock", str(self), zone)
        return " ".join((str(self.minute), hour, *days))

    def __str__(self):
        return f"{self.minute} {self.hour} {self.day_of_month} {self.month_of_year} {self.day_of_week}"


class IntervalSchedule(Row):
    DAYS, HOURS, MINUTES, SECONDS, MICROSECONDS = "days", "hours", "minutes", "seconds", "microseconds"
    used_as = "interval"
    members = {"every": 1, "period": "hours"}

    def cron(self):
        """Returns the cron expression that comes closest: at least every minute, at most every month."""
        every, period = int(self.every), str(self.period)
        minutes = {"microseconds": 0, "seconds": every / 60, "minutes": every, "hours": every * 60}.get(
            period, every * 1440
        )
        # A step that does not divide the hour or the day would leave a shorter one at its end.
        steps = [it for it in range(1, 61) if 60 % it == 0] + [it * 60 for it in range(2, 25) if 24 % it == 0]
        steps += [it * 1440 for it in range(2, 29)]
        step = min(steps, key=lambda it: abs(it - minutes))
        if step != minutes:
            note_once("a schedule of every %s %s runs every %d minutes", every, period, step)
        if step < 60:
            return "* * * * *" if step == 1 else f"*/{step} * * * *"
        if step < 1440:
            return "0 * * * *" if step == 60 else f"0 */{step // 60} * * *"
        return "0 0 * * *" if step == 1440 else f"0 0 */{step // 1440} * *"

    def __str__(self):
        return f"every {self.every} {self.period}"


class PeriodicTask(Row):
    """A task with a schedule. It is kept in the storage of the plugin, and is a schedule of the gateway while enabled."""

    members = {
        "name": "", "task": "", "crontab": None, "interval": None, "args": "[]", "kwargs": "{}", "enabled": True,
        "one_off": False, "description": "", "queue": None, "expires": None, "start_time": None, "priority": None,
    }  # fmt: skip
    last_run_at, total_run_count = None, 0

    @property
    def pk(self):
        return self.name

    id = pk

    def to_json(self):
        shown = {it: getattr(self, it) for it in ("name", "task", "args", "kwargs", "enabled", "description")}
        for it in ("crontab", "interval"):
            value = getattr(self, it)
            shown[it] = {name: str(getattr(value, name)) for name in value.members} if value else None
        return shown

    @classmethod
    def of(cls, stored):
        kinds = (("crontab", CrontabSchedule), ("interval", IntervalSchedule))
        schedules = {name: kind(**stored[name]) for name, kind in kinds if stored.get(name)}
        return cls(**{**stored, "crontab": None, "interval": None, **schedules})

    @classmethod
    def all_rows(cls):
        return [cls.of(it) for it in link.storage().get(STORED, {}).values()]

    def save(self, *args, **kwargs):
        schedule = self.crontab or self.interval
        if schedule is None:
            raise NotSupported("a PeriodicTask without crontab or interval")
        for name in ("one_off", "expires", "start_time"):
            if getattr(self, name):
                raise NotSupported(f"PeriodicTask.{name}")
        host, number = link.host(), schedule_id(self.name)
        if self.enabled:
            args, kwargs = json.loads(self.args or "[]"), json.loads(self.kwargs or "{}")
            params = {"task": self.task, "args": args, "kwargs": kwargs}
            host.schedule.set(number, schedule.cron(), ACTION, params)
        else:
            host.schedule.delete(number)
        stored = link.storage().get(STORED, {})
        link.storage().set(STORED, {**stored, self.name: self.to_json()})

    def delete(self, *args, **kwargs):
        link.host().schedule.delete(schedule_id(self.name))
        stored = link.storage().get(STORED, {})
        stored.pop(self.name, None)
        link.storage().set(STORED, stored)
        return 1, {}


def create_or_update_periodic_task(
    task_name, celery_task_path, kwargs=None, interval_hours=0, cron_expression="", enabled=True
):
    """`core.scheduling`: a cron expression comes before hours; without either, the task is disabled."""
    schedule = {"crontab": None, "interval": None}
    if cron_expression:
        names = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
        parts = cron_expression.split()
        if len(parts) != len(names):
            raise ValueError(f"{cron_expression!r} has not the five parts of a cron expression")
        zone = clock.get_default_timezone_name()
        schedule["crontab"] = CrontabSchedule(**dict(zip(names, parts)), timezone=zone)
    else:
        schedule["interval"] = IntervalSchedule(every=int(interval_hours or 1), period=IntervalSchedule.HOURS)
    is_enabled = bool(enabled and (cron_expression or interval_hours))
    members = {"task": celery_task_path, "kwargs": json.dumps(kwargs or {}), "enabled": is_enabled, **schedule}
    return PeriodicTask.objects.update_or_create(name=task_name, defaults=members)[0]


def delete_periodic_task(task_name):
    """`core.scheduling`: returns whether there was one."""
    return PeriodicTask.objects.filter(name=task_name).delete()[0] > 0


class PeriodicTasks:
    @staticmethod
    def changed(*args, **kwargs):
        pass

    update_changed = changed


def schedule_id(name):
    """Returns the id of the schedule of a periodic task."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:48]
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
