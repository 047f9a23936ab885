"""Models: objects of the gateway with fields, related objects, and writes."""

import datetime
import decimal
import threading
import uuid

from . import clock, link
from .errors import (
    FieldDoesNotExist,
    IntegrityError,
    MultipleObjectsReturned,
    NotFound,
    NotSupported,
    NotSupportedAttribute,
    ObjectDoesNotExist,
)
from .lookups import split
from .query import Manager, QuerySet

MODELS = {}
# Receivers of post_save by the name of the model.
RECEIVERS = {}


class Plan:
    """How the objects of a query are read."""

    def __init__(self):
        # Filters of the REST interface.
        self.params = {}
        # The only ids that can match; None for any.
        self.ids = None
        # The conditions that these fulfil, by their ids.
        self.done = set()


class Batch:
    """Objects that were read together. Their related objects are read together, too."""

    __slots__ = ("rows", "related")

    def __init__(self, rows, related):
        self.rows, self.related = rows, related


class Meta:
    """Facts about a model."""

    def __init__(self, model):
        self.model = model
        self.object_name = model.__name__
        self.model_name = model.__name__.lower()
        self.app_label = model.app
        self.label = f"{model.app}.{model.__name__}"
        self.db_table = f"{model.app}_{self.model_name}"
        self.verbose_name = self.model_name
        self.verbose_name_plural = f"{self.model_name}s"

    @property
    def fields(self):
        return [FieldInfo(self.model, name) for name in [*self.model.fields, *self.model.links]]

    concrete_fields = fields

    def get_fields(self, *args, **kwargs):
        return self.fields

    def get_field(self, name):
        if name not in self.model.fields and name not in self.model.links and name not in self.model.many:
            raise FieldDoesNotExist(f"{self.object_name} has no field named '{name}'")
        return FieldInfo(self.model, name)


class FieldInfo:
    def __init__(self, model, name):
        self.model, self.name = model, name
        self.attname = f"{name}_id" if name in model.links else name
        self.column = self.attname
        self.is_relation = name in model.links or name in model.many
        self.many_to_many = name in model.many
        self.concrete = True
        self.primary_key = name == "id"


class Kind(type):
    """The type of models."""

    def __new__(mcs, name, bases, members):
        cls = super().__new__(mcs, name, bases, members)
        if name == "Model":
            return cls
        keys = [*cls.fields.values()]
        keys = [it[0] if isinstance(it, tuple) else it for it in keys]
        cls.keys = list(dict.fromkeys([*keys, *(it[0] for it in cls.links.values()), *cls.many, *cls.kept]))
        cls.index = {key: n for n, key in enumerate(cls.keys)}
        cls.objects = cls._default_manager = cls._base_manager = cls.manager(cls)
        cls._meta = Meta(cls)
        cls.DoesNotExist = type("DoesNotExist", (ObjectDoesNotExist,), {"__qualname__": f"{name}.DoesNotExist"})
        cls.MultipleObjectsReturned = type(
            "MultipleObjectsReturned", (MultipleObjectsReturned,), {"__qualname__": f"{name}.MultipleObjectsReturned"}
        )
        MODELS[name] = cls
        return cls

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name in cls.many:
            return Through(cls, name)
        raise NotSupportedAttribute(f"{cls.__name__}.{name}")


class Through:
    """`Model.relation.through`."""

    def __init__(self, model, name):
        self.model, self.name = model, name

    @property
    def through(self):
        names = {("Channel", "streams"): "ChannelStream", ("ChannelProfile", "channels"): "ChannelProfileMembership"}
        found = names.get((self.model.__name__, self.name))
        if not found:
            raise NotSupportedAttribute(f"{self.model.__name__}.{self.name}.through")
        return MODELS[found]


class Model(metaclass=Kind):
    """An object of the gateway."""

    app = ""
    # The list of the resource.
    path = ""
    page_size = 500
    # The order of objects without order_by, and whether the gateway's list has it.
    ordering = ()
    is_ordered = False
    # Name: the key in an answer, or (key, converter, is_writable).
    fields = {}
    # Name: (the key in an answer, the model, the key in a request or None).
    links = {}
    # Name: the model of the ids in an answer.
    many = {}
    # Name: (the model, the link that leads back).
    reverse = {}
    # Keys of an answer that are used otherwise.
    kept = ()
    # Path with its lookup: the parameter of the REST interface, with "=" if it is exact.
    filters = {}
    # Whether the list has the filter `ids`.
    has_ids = False
    # Counted relation: the key in an answer.
    counts = {}
    # Values of new objects.
    defaults = {}
    manager = Manager
    method = "PATCH"

    def __init__(self, *args, **members):
        self.__dict__.update(_data=None, _set={}, _batch=None)
        for name, value in zip(["id", *list(self.fields)[1:]], args):
            members[name] = value
        for name, value in {**self.defaults, **members}.items():
            name = "id" if name == "pk" else name
            if not self.has_field(name) and not hasattr(type(self), name):
                raise NotSupported(f"the field {name} of {type(self).__name__}")
            setattr(self, name, value)

    # Fields.

    @classmethod
    def has_field(cls, name):
        if name in cls.fields or name in cls.links or name in cls.many or name in ("pk", "id"):
            return True
        return name.endswith("_id") and name[:-3] in cls.links

    @classmethod
    def columns(cls):
        return [*cls.fields, *(f"{it}_id" for it in cls.links)]

    @classmethod
    def check_path(cls, parts):
        name = parts[0]
        known = cls.has_field(name) or name in cls.reverse or name in cls.counts
        if not known:
            raise NotSupported(f"the field {name} of {cls.__name__} in a query")

    def _raw(self, key):
        return None if self._data is None else self._data[self.index[key]]

    def __getattr__(self, name):
        # Called for anything but a plain attribute.
        if name.startswith("__") or name in ("_data", "_set", "_batch"):
            raise AttributeError(name)
        cls = type(self)
        if name == "pk":
            return self.__getattr__("id")
        if name in self._set:
            return self._set[name]
        if name in cls.fields:
            spec = cls.fields[name]
            key, convert = spec[:2] if isinstance(spec, tuple) else (spec, None)
            value = self._raw(key)
            if convert is not None and value is not None:
                value = convert(value)
                if isinstance(value, (dict, list)):
                    # A change inside is a change of the object.
                    self.__dict__.setdefault("_inner", {})[name] = (value, repr(value))
                    self.__dict__[name] = value
            return value
        if name in cls.links:
            return self._related(name)
        if name.endswith("_id") and name[:-3] in cls.links:
            return self.id_of(name[:-3])
        if name in cls.many:
            return MANY[(cls.__name__, name)](self)
        if name in cls.reverse:
            return ReverseManager(self, *cls.reverse[name])
        if name.endswith("_set") and name[:-4] in REVERSE_SETS:
            return ReverseManager(self, *REVERSE_SETS[name[:-4]])
        raise NotSupportedAttribute(f"{cls.__name__}.{name}")

    def __setattr__(self, name, value):
        cls = type(self)
        if name == "pk":
            name = "id"
        if name in cls.many:
            raise TypeError(f"Direct assignment to {name} is prohibited. Use {name}.set() instead.")
        if name in cls.fields or name in cls.links:
            self.__dict__.pop(name, None)
            self._set.pop(f"{name}_id", None)
            self._set[name] = value
        elif name.endswith("_id") and name[:-3] in cls.links:
            if self.id_of(name[:-3]) != value:
                self._set.pop(name[:-3], None)
            self._set[name] = value
        else:
            self.__dict__[name] = value

    def id_of(self, name):
        """Returns the id of a related object."""
        if name in self._set:
            value = self._set[name]
            return value.pk if isinstance(value, Model) else value
        if f"{name}_id" in self._set:
            return self._set[f"{name}_id"]
        value = self._raw(type(self).links[name][0])
        return value.get("id") if isinstance(value, dict) else value

    def _related(self, name):
        value = self._set.get(name)
        if isinstance(value, Model):
            return value
        wanted = self.id_of(name)
        if wanted is None:
            return None
        model = MODELS[type(self).links[name][1]]
        return self._siblings(model, wanted, lambda it: [it.id_of(name)])

    def _siblings(self, model, wanted, ids_of):
        """Returns a related object, which is read together with those of the objects of the same batch."""
        batch = self._batch or Batch([self], {})
        self.__dict__["_batch"] = batch
        cache = batch.related.setdefault(model.__name__, {})
        if wanted not in cache:
            ids = {it for row in batch.rows for it in ids_of(row) if it is not None} - cache.keys()
            ids.add(wanted)
            for it in model.read_ids(ids):
                cache[it.pk] = it
            for it in ids:
                cache.setdefault(it, None)
        return cache[wanted]

    def value_of(self, name, is_end=False):
        cls = type(self)
        if name in self.__dict__:
            return self.__dict__[name]
        if is_end and name in cls.links:
            return self.id_of(name)
        if is_end and name in cls.many:
            return Ids(getattr(self, name).ids())
        return getattr(self, name)

    def known_count(self, name):
        if name in self.many:
            return len(getattr(self, name).ids())
        key = self.counts.get(name)
        return self._raw(key) if key and self._data is not None else None

    def __eq__(self, other):
        if not isinstance(other, Model) or type(self) is not type(other):
            return NotImplemented
        return self is other if self.pk is None else self.pk == other.pk

    def __hash__(self):
        if self.pk is None:
            raise TypeError("Model instances without primary key value are unhashable")
        return hash((type(self).__name__, self.pk))

    def __str__(self):
        name = getattr(self, "name", None) if "name" in self.fields else None
        return str(name) if name else f"{type(self).__name__} object ({self.pk})"

    def __repr__(self):
        return f"<{type(self).__name__}: {self}>"

    @property
    def _state(self):
        return State(self._data is None)

    def get_deferred_fields(self):
        return set()

    # Reading.

    @classmethod
    def of(cls, data):
        row = cls.__new__(cls)
        row.__dict__.update(_data=tuple(data.get(key) for key in cls.keys), _set={}, _batch=None)
        return row

    @classmethod
    def batch(cls, records, related=None):
        rows = [cls.of(it) for it in records]
        batch = Batch(rows, {} if related is None else related)
        for row in rows:
            row.__dict__["_batch"] = batch
        return rows

    @classmethod
    def plan(cls, required):
        """Decides which conditions the gateway can filter by."""
        plan = Plan()
        for leaf in required:
            path, value = leaf
            if hasattr(value, "of") or (isinstance(value, Model) and value.pk is None):
                continue
            parts, lookups = split(path)
            if len(parts) > 1 and parts[-1] in ("id", "pk") and parts[0] in cls.links:
                parts = parts[:-1]
            if parts[-1].endswith("_id") and parts[-1][:-3] in cls.links:
                parts = [*parts[:-1], parts[-1][:-3]]
            lookup = "__".join(lookups) or "exact"
            name = "__".join(parts)
            if name in ("id", "pk") and lookup in ("exact", "in"):
                ids = [value] if lookup == "exact" else _items(value)
                ids = {it.pk if isinstance(it, Model) else it for it in ids}
                plan.ids = ids if plan.ids is None else plan.ids & ids
                continue
            cls.narrow(plan, leaf, name, lookup, value)
        return plan

    @classmethod
    def narrow(cls, plan, leaf, name, lookup, value):
        for found in (f"{name}__{lookup}", name if lookup == "exact" else None):
            param = cls.filters.get(found)
            if param is None:
                continue
            is_exact = param.startswith("=")
            param = param.lstrip("=")
            if param in plan.params:
                return
            if lookup == "in":
                values = [it.pk if isinstance(it, Model) else it for it in _items(value)]
                if not values or len(values) > link.IDS_MAX or any(it is None for it in values):
                    return
                value = values
            elif isinstance(value, Model):
                value = value.pk
            if value is None or value == "":
                return
            plan.params[param] = to_json(value)
            if is_exact:
                plan.done.add(id(leaf))
            return

    @classmethod
    def read(cls, plan):
        """Reads the objects of a plan, page by page."""
        BUFFERS.flush()
        if plan.ids is not None:
            yield from cls.read_ids(plan.ids, plan.params)
            return
        related = {}
        for rows in link.pages(cls.path, {**cls.params(), **plan.params}, cls.page_size):
            yield from cls.batch(rows, related)

    @classmethod
    def params(cls):
        return {}

    @classmethod
    def read_ids(cls, ids, params=None):
        ids = sorted({it for it in map(as_id, ids) if it is not None})
        if not cls.has_ids and len(ids) == 1:
            try:
                yield from cls.batch([link.get(f"{cls.path}{ids[0]}/")])
            except NotFound:
                pass
            return
        if not cls.has_ids:
            for rows in link.pages(cls.path, cls.params(), cls.page_size):
                yield from (it for it in cls.batch(rows) if it.pk in ids)
            return
        for some in link.chunks(ids):
            found = {**cls.params(), **(params or {}), "ids": some}
            for rows in link.pages(cls.path, found, cls.page_size):
                yield from cls.batch(rows)

    @classmethod
    def count(cls, conditions):
        """Returns the number of matching objects if the gateway knows it."""
        plan = cls.plan([it for condition in conditions for it in condition.required()])
        if plan.ids is not None or not all(it.is_within(plan.done) for it in conditions):
            return None
        BUFFERS.flush()
        return link.count(cls.path, {**cls.params(), **plan.params})

    def refresh_from_db(self, using=None, fields=None):
        BUFFERS.flush()
        self._take(link.get(f"{self.path}{self.pk}/"))

    # Writing.

    def _take(self, data):
        """Becomes the object of an answer."""
        for name in self.__dict__.pop("_inner", {}):
            self.__dict__.pop(name, None)
        self._set.clear()
        self.__dict__["_data"] = tuple(data.get(key) for key in type(self).keys)
        if self._batch is not None:
            self.__dict__["_batch"] = None

    def changes(self, names=None):
        """Returns the members of a request that changes the object."""
        cls = type(self)
        for name, (value, before) in self.__dict__.get("_inner", {}).items():
            if repr(value) != before:
                self._set[name] = value
        body = {}
        for name in list(names) if names is not None else list(self._set):
            base = name[:-3] if name.endswith("_id") and name[:-3] in cls.links else name
            if base in cls.links:
                key = cls.links[base][2]
                value = self.id_of(base)
            elif name in cls.fields:
                spec = cls.fields[name]
                if isinstance(spec, tuple) and len(spec) > 2 and not spec[2]:
                    continue
                key = spec[0] if isinstance(spec, tuple) else spec
                value = getattr(self, name)
            else:
                raise NotSupported(f"the field {name} of {cls.__name__}")
            if key and key != "id":
                body[key] = to_json(value)
        return body

    def is_new(self):
        return self._data is None

    def save(self, force_insert=False, force_update=False, using=None, update_fields=None):
        created = self.is_new()
        if created:
            body = {key: value for key, value in self.changes().items() if value is not None}
            self._take(self.send_new(body))
        else:
            self.send_changes(self.changes(update_fields))
        self._notify(created, update_fields)

    def _notify(self, created, update_fields=None):
        for receiver in RECEIVERS.get(type(self).__name__, ()):
            receiver(sender=type(self), instance=self, created=created, update_fields=update_fields, raw=False)

    def send_new(self, body):
        return link.request("POST", self.path, body)

    def send_changes(self, body):
        if not body:
            return
        buffer = BUFFERS.current()
        if buffer is not None:
            buffer.change(type(self), self.pk, body)
            self._keep(body)
            return
        answer = self.send_one(body)
        if isinstance(answer, dict) and "id" in answer:
            self._take(answer)

    def send_one(self, body):
        return link.request(self.method, f"{self.path}{self.pk}/", body)

    def _keep(self, body):
        """Shows a change that is sent later."""
        data = list(self._data)
        for key, value in body.items():
            if key in self.index:
                data[self.index[key]] = value
        self.__dict__["_data"] = tuple(data)
        for name in self.__dict__.pop("_inner", {}):
            self.__dict__.pop(name, None)
        self._set.clear()

    @classmethod
    def create(cls, members):
        row = cls(**members)
        row.save(force_insert=True)
        return row

    @classmethod
    def create_many(cls, rows, ignore_conflicts=False):
        for row in rows:
            try:
                row.save()
            except IntegrityError:
                if not ignore_conflicts:
                    raise

    @classmethod
    def save_many(cls, rows, names):
        for row in rows:
            if not row.is_new():
                row.send_changes(row.changes(names))

    @classmethod
    def send_many(cls, changes):
        """Sends the changes of several objects, by their ids."""
        for pk, body in changes.items():
            link.request(cls.method, f"{cls.path}{pk}/", body)

    def delete(self, using=None, keep_parents=False):
        type(self).delete_many([self])
        return 1, {self._meta.label: 1}

    @classmethod
    def delete_many(cls, rows):
        BUFFERS.flush()
        ids = [it.pk for it in rows if it.pk is not None]
        if ids:
            cls.send_deletion(ids)

    @classmethod
    def send_deletion(cls, ids):
        for pk in ids:
            link.request("DELETE", f"{cls.path}{pk}/")

    def full_clean(self, *args, **kwargs):
        pass

    clean = validate_unique = full_clean


class State:
    def __init__(self, adding):
        self.adding, self.db = adding, "default"


class Ids:
    """The ids of related objects."""

    def __init__(self, ids):
        self.found = ids

    def iterate_related(self):
        return iter(self.found)


class Related:
    """Related objects of one, which can be searched like all objects of their model."""

    def get_queryset(self):
        raise NotImplementedError

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.get_queryset(), name)

    def iterate_related(self):
        return iter(self.get_queryset())


class ReverseManager(Related):
    """The objects that refer to one."""

    def __init__(self, owner, model, name):
        self.owner, self.model, self.name = owner, MODELS[model], name

    def get_queryset(self):
        return QuerySet(self.model).filter(**{self.name: self.owner.pk})

    def create(self, **members):
        return self.model.create({**members, self.name: self.owner})

    def get_or_create(self, defaults=None, **members):
        return self.get_queryset().get_or_create({**(defaults or {}), self.name: self.owner}, **members)

    def update_or_create(self, defaults=None, **members):
        return self.get_queryset().update_or_create({**(defaults or {}), self.name: self.owner}, **members)

    def add(self, *objects, bulk=True):
        for it in objects:
            setattr(it, self.name, self.owner)
            it.save(update_fields=[self.name])


# (Model, relation): the manager of a relation to many; and the owners of `…_set`.
MANY = {}
REVERSE_SETS = {}


class Buffer:
    """Changes within `atomic`, by model and id, in their order."""

    def __init__(self):
        self.changes = {}
        self.after = []
        self.late = {}

    def change(self, model, pk, body):
        self.changes.setdefault(model, {}).setdefault(pk, {}).update(body)

    def collect(self, model, row):
        """Keeps a new object that is sent together with others."""
        self.late.setdefault(model, []).append(row)

    def send(self):
        changes, self.changes = self.changes, {}
        for model, some in changes.items():
            model.send_many(some)
        late, self.late = self.late, {}
        for model, rows in late.items():
            model.send_late(rows)


class Buffers(threading.local):
    """The writes of this thread that are sent at the end of `atomic`."""

    def __init__(self):
        self.buffer, self.depth = None, 0

    def current(self):
        return self.buffer

    def flush(self):
        if self.buffer is not None:
            self.buffer.send()


BUFFERS = Buffers()


class Atomic:
    """`transaction.atomic`: changes are sent together at the end, one request per resource where there is one."""

    def __init__(self, using=None, savepoint=True, durable=False):
        pass

    def __call__(self, function):
        import functools

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with Atomic():
                return function(*args, **kwargs)

        return wrapped

    def __enter__(self):
        if BUFFERS.depth == 0:
            link.say_once("transaction.atomic sends its writes together at its end, and does not isolate them")
            BUFFERS.buffer = Buffer()
        BUFFERS.depth += 1
        return self

    def __exit__(self, kind, error, trace):
        BUFFERS.depth -= 1
        if BUFFERS.depth > 0:
            return False
        buffer, BUFFERS.buffer = BUFFERS.buffer, None
        if kind is None:
            buffer.send()
            for function in buffer.after:
                function()
        return False


def atomic(using=None, savepoint=True, durable=False):
    if callable(using):
        return Atomic()(using)
    return Atomic()


def on_commit(function, using=None, robust=False):
    buffer = BUFFERS.current()
    if buffer is None:
        function()
    else:
        buffer.after.append(function)


def _items(value):
    if hasattr(value, "as_values"):
        return value.as_values()
    return list(value)


def as_id(value):
    """Returns an id as the gateway writes it; None for anything else."""
    if isinstance(value, Model):
        value = value.pk
    if isinstance(value, str) and value.isdigit():
        return int(value)
    return value


def to_json(value):
    if isinstance(value, Model):
        return value.pk
    if isinstance(value, datetime.datetime):
        return (clock.make_aware(value) if clock.is_naive(value) else value).isoformat()
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, (list, tuple, set)):
        return [to_json(it) for it in value]
    if isinstance(value, dict):
        return {str(name): to_json(it) for name, it in value.items()}
    return value
