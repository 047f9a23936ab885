"""Query sets. The gateway filters what its REST interface can filter; the rest is filtered here, page by page."""

import itertools

from . import link
from .errors import FieldError, NotSupported, NotSupportedAttribute
from .lookups import Aggregate, Expression, Q, first_value, order_of, resolve, sort, split, values

# The answer of repr shows this many objects.
SHOWN_MAX = 20


class QuerySet:
    def __init__(self, model, where=None):
        self.model = model
        self._where = list(where or [])
        self._order = []
        self._has_order = False
        self._low, self._high = 0, None
        self._is_distinct = False
        self._distinct_on = ()
        self._is_empty = False
        self._columns = None
        self._form = "objects"
        self._annotations = {}
        # The columns by which aggregates are grouped, and the conditions on the groups.
        self._groups = None
        self._having = []
        self._late = []
        self._results = None
        self._related = None

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotSupportedAttribute(f"QuerySet.{name}")

    # Building.

    def _clone(self):
        other = QuerySet(self.model)
        other.__dict__.update(self.__dict__)
        other._where, other._having, other._late = list(self._where), list(self._having), list(self._late)
        other._order, other._annotations = list(self._order), dict(self._annotations)
        other._results = None
        return other

    def _changed(self, **members):
        other = self._clone()
        other.__dict__.update(members)
        return other

    def all(self):
        return self._clone()

    def _filtered(self, condition):
        if self._low or self._high is not None:
            raise TypeError("Cannot filter a query once a slice has been taken.")
        other = self._clone()
        if not condition.children:
            return other
        # A condition on an annotation needs the annotation first.
        names = {split(path)[0][0] for path, _ in leaves(condition)}
        if names & self._annotations.keys():
            (other._having if self._groups is not None else other._late).append(condition)
        else:
            for path, _ in leaves(condition):
                self.model.check_path(split(path)[0])
            other._where.append(condition)
        return other

    def filter(self, *args, **kwargs):
        return self._filtered(Q(*args, **kwargs))

    def exclude(self, *args, **kwargs):
        return self._filtered(Q(*args, _negated=True, **kwargs))

    def complex_filter(self, condition):
        return self.filter(condition) if isinstance(condition, Q) else self.filter(**condition)

    def order_by(self, *fields):
        return self._changed(_order=order_of(fields), _has_order=True)

    def reverse(self):
        order = [type(it)(it.name, not it.is_descending) for it in self._effective_order()]
        return self._changed(_order=order, _has_order=True)

    def distinct(self, *fields):
        return self._changed(_is_distinct=True, _distinct_on=fields)

    def none(self):
        return self._changed(_is_empty=True)

    def values(self, *columns, **expressions):
        other = self.annotate(**expressions) if expressions else self._clone()
        other._columns, other._form = [*columns, *expressions] or None, "dicts"
        return other

    def values_list(self, *columns, flat=False, named=False):
        if flat and len(columns) != 1:
            raise TypeError("'flat' needs exactly one field.")
        other = self._clone()
        expressions = {f"expression{n}": it for n, it in enumerate(columns) if isinstance(it, Expression)}
        if expressions:
            other = other.annotate(**expressions)
            names = {id(value): name for name, value in expressions.items()}
            columns = [names.get(id(it), it) for it in columns]
        other._columns, other._form = list(columns) or None, "flat" if flat else "named" if named else "tuples"
        return other

    def annotate(self, *aggregates, **expressions):
        for it in aggregates:
            expressions[it.default_alias] = it
        for name, it in expressions.items():
            if not isinstance(it, (Expression, Q)):
                raise NotSupported(f"annotate({name}={type(it).__name__})")
        other = self._clone()
        is_grouped = any(isinstance(it, Aggregate) for it in expressions.values()) and self._form != "objects"
        if is_grouped and other._groups is None:
            other._groups = list(self._columns or [])
            other._columns = list(other._groups)
        other._annotations.update(expressions)
        if other._columns is not None:
            other._columns = [*other._columns, *(it for it in expressions if it not in other._columns)]
        return other

    alias = annotate

    def _same(self, *args, **kwargs):
        return self._clone()

    # Objects are read whole and related ones when they are used.
    select_related = prefetch_related = only = defer = select_for_update = using = _same

    def extra(self, *args, **kwargs):
        raise NotSupported("QuerySet.extra")

    def raw(self, *args, **kwargs):
        raise NotSupported("QuerySet.raw")

    def union(self, *others, all=False):
        joined = [*self, *itertools.chain.from_iterable(others)]
        return self._from_results(joined if all else dedup(joined))

    def intersection(self, other):
        ids = {it.pk for it in other}
        return self._from_results([it for it in self if it.pk in ids])

    def difference(self, other):
        ids = {it.pk for it in other}
        return self._from_results([it for it in self if it.pk not in ids])

    def _from_results(self, results):
        return self.model.objects.filter(pk__in=[it.pk for it in results])

    def __or__(self, other):
        return self._changed(_where=[Q(*self._where) | Q(*other._where)] if self._where and other._where else [])

    def __and__(self, other):
        return self._changed(_where=[*self._where, *other._where])

    # Reading.

    def _effective_order(self):
        return self._order if self._has_order else order_of(self.model.ordering)

    def _objects(self, stops_early=False):
        """Returns the matching objects, in order, without the slice."""
        if self._is_empty:
            return
        conditions = self._where
        found = self._read(conditions)
        if self._annotations and self._groups is None:
            found = map(self._annotated, found)
        if self._late:
            found = (it for it in found if all(condition.matches(it) for condition in self._late))
        order = self._effective_order()
        # The rows of a model arrive in its own order.
        if order and not (self._is_own_order(order) and self.model.is_ordered):
            found = iter(sort(bounded(found), order))
        if self._distinct_on:
            found = dedup(found, lambda it: tuple(freeze(first_value(it, name.split("__"))) for name in self._distinct_on))
        elif self._is_distinct and self._form == "objects":
            found = dedup(found)
        yield from found

    def _is_own_order(self, order):
        own = order_of(self.model.ordering)
        return [(it.name, it.is_descending) for it in order] == [(it.name, it.is_descending) for it in own]

    def _read(self, conditions):
        plan = self.model.plan([it for condition in conditions for it in condition.required()])
        for row in self.model.read(plan):
            if all(condition.matches(row, plan.done) for condition in conditions):
                yield row

    def _annotated(self, row):
        for name, it in self._annotations.items():
            row.__dict__[name] = it.matches(row) if isinstance(it, Q) else resolve(it, row)
        return row

    def _shaped(self):
        """Returns the objects, or the values of their columns."""
        if self._groups is not None:
            yield from self._grouped()
            return
        found = self._objects()
        if self._form == "objects":
            yield from found
            return
        columns = self._columns or [*self.model.columns(), *self._annotations]
        shaped = (self._shape(columns, [column(it, name) for name in columns]) for it in found)
        yield from dedup(shaped, freeze) if self._is_distinct else shaped

    def _shape(self, columns, found):
        if self._form == "dicts":
            return dict(zip(columns, found))
        if self._form == "flat":
            return found[0]
        if self._form == "named":
            from collections import namedtuple

            return namedtuple("Row", columns)(*found)
        return tuple(found)

    def _grouped(self):
        if self._is_empty:
            return
        groups = {}
        for row in bounded(self._read(self._where)):
            key = tuple(freeze(column(row, name)) for name in self._groups)
            groups.setdefault(key, []).append(row)
        rows = []
        for members in groups.values():
            shown = {name: column(members[0], name) for name in self._groups}
            for name, it in self._annotations.items():
                shown[name] = it.over(members) if isinstance(it, Aggregate) else resolve(it, members[0])
            rows.append(Group(shown))
        rows = [it for it in rows if all(condition.matches(it) for condition in self._having)]
        if self._has_order:
            rows = sort(rows, self._order)
        columns = self._columns or [*self._groups, *self._annotations]
        for row in rows:
            yield self._shape(columns, [row.shown[name] for name in columns])

    def _sliced(self):
        return itertools.islice(self._shaped(), self._low, self._high)

    def _fetch(self):
        if self._results is None:
            self._results = bounded(self._sliced())
        return self._results

    def iterator(self, chunk_size=None):
        return self._sliced()

    def __iter__(self):
        return iter(self._fetch())

    def __len__(self):
        return len(self._fetch())

    def __bool__(self):
        return bool(self._fetch()) if self._results is not None else self.exists()

    def __contains__(self, it):
        return it in self._fetch()

    def __repr__(self):
        shown = list(self[: SHOWN_MAX + 1]) if self._results is None else self._results[: SHOWN_MAX + 1]
        more = ", ..." if len(shown) > SHOWN_MAX else ""
        return f"<QuerySet [{', '.join(map(repr, shown[:SHOWN_MAX]))}{more}]>"

    def __getitem__(self, place):
        if self._results is not None:
            return self._results[place]
        if isinstance(place, slice):
            if any(it is not None and it < 0 for it in (place.start, place.stop)):
                raise ValueError("Negative indexing is not supported.")
            low = self._low + (place.start or 0)
            high = None if place.stop is None else self._low + place.stop
            if self._high is not None:
                high = self._high if high is None else min(high, self._high)
            other = self._changed(_low=low, _high=high)
            return list(other)[:: place.step] if place.step else other
        if place < 0:
            raise ValueError("Negative indexing is not supported.")
        for it in self[place : place + 1]:
            return it
        raise IndexError("list index out of range")

    def as_values(self):
        """Returns the values of a query within `in`."""
        found = list(self)
        if self._form == "objects":
            return [it.pk for it in found]
        if self._form == "flat":
            return found
        return [next(iter(it.values())) if isinstance(it, dict) else it[0] for it in found]

    def iterate_related(self):
        return iter(self)

    def count(self):
        if self._results is not None:
            return len(self._results)
        is_plain = not (self._late or self._is_distinct or self._groups is not None or self._is_empty)
        if is_plain and self._low == 0 and self._high is None:
            known = self.model.count(self._where)
            if known is not None:
                return known
        return sum(1 for _ in self._sliced())

    def exists(self):
        if self._results is not None:
            return bool(self._results)
        other = self.order_by() if not self._low and self._high is None else self
        return next(iter(other._sliced()), None) is not None

    def contains(self, it):
        return self.filter(pk=it.pk).exists()

    def first(self):
        other = self if self._effective_order() else self.order_by("pk")
        return next(iter(other[:1]), None)

    def last(self):
        order = self._effective_order()
        return (self.reverse() if order else self.order_by("-pk")).first()

    def earliest(self, *fields):
        found = self.order_by(*fields).first()
        if found is None:
            raise self.model.DoesNotExist(f"{self.model.__name__} matching query does not exist.")
        return found

    def latest(self, *fields):
        return self.order_by(*(it[1:] if it.startswith("-") else f"-{it}" for it in fields)).earliest_of_order()

    def earliest_of_order(self):
        found = self.first()
        if found is None:
            raise self.model.DoesNotExist(f"{self.model.__name__} matching query does not exist.")
        return found

    def get(self, *args, **kwargs):
        found = list(self.filter(*args, **kwargs)[:2]) if args or kwargs else list(self[:2])
        if len(found) == 1:
            return found[0]
        name = self.model.__name__
        if not found:
            raise self.model.DoesNotExist(f"{name} matching query does not exist.")
        raise self.model.MultipleObjectsReturned(f"get() returned more than one {name}.")

    def in_bulk(self, id_list=None, *, field_name="pk"):
        found = self if id_list is None else self.filter(**{f"{field_name}__in": list(id_list)})
        return {first_value(it, [field_name]): it for it in found}

    def aggregate(self, *aggregates, **expressions):
        for it in aggregates:
            expressions[it.default_alias] = it
        rows = bounded(itertools.islice(self._objects(), self._low, self._high))
        return {name: it.over(rows) for name, it in expressions.items()}

    # Writing.

    def create(self, **members):
        return self.model.create(members)

    def get_or_create(self, defaults=None, **members):
        found = self.filter(**members).first()
        if found is not None:
            return found, False
        return self.create(**created_from(members), **called(defaults)), True

    def update_or_create(self, defaults=None, create_defaults=None, **members):
        found = self.filter(**members).first()
        if found is None:
            given = defaults if create_defaults is None else create_defaults
            return self.create(**{**created_from(members), **called(given)}), True
        for name, value in called(defaults).items():
            setattr(found, name, value)
        found.save()
        return found, False

    def update(self, **members):
        rows = bounded(self._sliced())
        for row in rows:
            new = {name: resolve(value, row) for name, value in members.items()}
            for name, value in new.items():
                setattr(row, name, value)
        self.model.save_many(rows, list(members))
        return len(rows)

    def delete(self):
        rows = bounded(self._sliced())
        self.model.delete_many(rows)
        label = f"{self.model.app}.{self.model.__name__}"
        return len(rows), ({label: len(rows)} if rows else {})

    def bulk_create(self, objs, batch_size=None, ignore_conflicts=False, update_conflicts=False, **_):
        objs = list(objs)
        self.model.create_many(objs, ignore_conflicts=ignore_conflicts or update_conflicts)
        return objs

    def bulk_update(self, objs, fields, batch_size=None):
        objs = list(objs)
        self.model.save_many(objs, list(fields))
        return len(objs)


class Group:
    """A row of aggregates."""

    def __init__(self, shown):
        self.shown = shown

    def value_of(self, name, is_end=True):
        if name in self.shown:
            return self.shown[name]
        rest = {key[len(name) + 2 :]: value for key, value in self.shown.items() if key.startswith(f"{name}__")}
        if not rest:
            raise FieldError(f"the query has no column {name}")
        return Group(rest)


class Manager:
    """The objects of a model."""

    def __init__(self, model=None):
        self.model = model

    def get_queryset(self):
        return QuerySet(self.model)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.get_queryset(), name)

    def __iter__(self):
        raise TypeError("'Manager' object is not iterable")

    def __repr__(self):
        return f"<Manager of {self.model.__name__}>"


def leaves(condition):
    for child in condition.children:
        if isinstance(child, Q):
            yield from leaves(child)
        else:
            yield child


def bounded(rows):
    """Returns a list of at most ROWS_MAX rows, so that a large library does not exceed the memory of the plugin."""
    found = list(itertools.islice(rows, link.ROWS_MAX + 1))
    if len(found) > link.ROWS_MAX:
        raise MemoryError(f"the query has more than {link.ROWS_MAX} results: use filters, or iterator()")
    return found


def dedup(rows, key=lambda it: it):
    seen = set()
    for row in rows:
        it = key(row)
        if it not in seen:
            seen.add(it)
            yield row


def freeze(value):
    if isinstance(value, dict):
        return tuple(sorted((name, freeze(it)) for name, it in value.items()))
    if isinstance(value, (list, tuple)):
        return tuple(freeze(it) for it in value)
    return value


def column(row, name):
    found = values(row, name.split("__"))
    value = found[0] if found else None
    return value.pk if hasattr(value, "pk") else value


def called(defaults):
    return {name: value() if callable(value) else value for name, value in (defaults or {}).items()}


def created_from(members):
    """Returns the members of a search that a new object gets."""
    taken = {}
    for name, value in members.items():
        parts, lookups = split(name)
        if len(parts) == 1 and not [it for it in lookups if it not in ("exact", "iexact")]:
            taken[parts[0]] = value
    return taken
