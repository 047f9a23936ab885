"""Conditions, expressions and aggregates of queries, evaluated on objects."""

import datetime
import decimal
import operator
import re
import uuid

from . import clock
from .errors import FieldError, NotSupported

LOOKUPS = {
    "exact", "iexact", "contains", "icontains", "startswith", "istartswith", "endswith", "iendswith",
    "in", "isnull", "lt", "lte", "gt", "gte", "range", "regex", "iregex", "date", "year", "month", "day", "hour",
}  # fmt: skip


class Q:
    """A condition."""

    AND, OR = "AND", "OR"

    def __init__(self, *args, _connector=None, _negated=False, **kwargs):
        self.children = [*args, *kwargs.items()]
        self.connector = _connector or self.AND
        self.negated = _negated

    def _joined(self, other, connector):
        if not isinstance(other, Q):
            raise TypeError(other)
        if not self:
            return other
        if not other:
            return self
        return Q(self, other, _connector=connector)

    def __and__(self, other):
        return self._joined(other, self.AND)

    def __or__(self, other):
        return self._joined(other, self.OR)

    def __invert__(self):
        return Q(self, _negated=True)

    def __bool__(self):
        return bool(self.children)

    def add(self, other, connector):
        other = other if isinstance(other, Q) else Q(other)
        joined = self._joined(other, connector)
        self.children, self.connector, self.negated = joined.children, joined.connector, joined.negated
        return self

    def matches(self, row, done=frozenset()):
        """Returns whether an object matches. Conditions whose ids are in `done` are fulfilled."""
        if not self.children:
            return not self.negated
        checks = (
            it.matches(row, done) if isinstance(it, Q) else id(it) in done or matches(row, *it)
            for it in self.children
        )
        found = all(checks) if self.connector == self.AND else any(checks)
        return found != self.negated

    def required(self):
        """Returns the conditions that every match fulfils."""
        if self.negated or (self.connector != self.AND and len(self.children) > 1):
            return
        for child in self.children:
            if isinstance(child, Q):
                yield from child.required()
            else:
                yield child

    def is_within(self, done):
        """Returns whether all conditions are among those that are fulfilled."""
        return all(it.is_within(done) if isinstance(it, Q) else id(it) in done for it in self.children)


class Expression:
    """A value that depends on the object."""

    def _with(self, function, other, swapped=False):
        return Combined(function, other, self) if swapped else Combined(function, self, other)

    def __add__(self, other):
        return self._with(operator.add, other)

    def __radd__(self, other):
        return self._with(operator.add, other, True)

    def __sub__(self, other):
        return self._with(operator.sub, other)

    def __rsub__(self, other):
        return self._with(operator.sub, other, True)

    def __mul__(self, other):
        return self._with(operator.mul, other)

    def __rmul__(self, other):
        return self._with(operator.mul, other, True)

    def __truediv__(self, other):
        return self._with(operator.truediv, other)

    def __mod__(self, other):
        return self._with(operator.mod, other)

    def of(self, row):
        raise NotImplementedError


class F(Expression):
    """The value of a field."""

    def __init__(self, name):
        self.name = name

    def of(self, row):
        return first_value(row, self.name.split("__"))

    def asc(self, nulls_first=None, nulls_last=None):
        return OrderBy(self.name, False, nulls_first, nulls_last)

    def desc(self, nulls_first=None, nulls_last=None):
        return OrderBy(self.name, True, nulls_first, nulls_last)


class OrderBy:
    def __init__(self, name, is_descending, nulls_first=None, nulls_last=None):
        self.name, self.is_descending = name, is_descending
        # As PostgreSQL: missing values are larger than all others.
        self.nulls_first = bool(nulls_first) or (is_descending and not nulls_last)


class Value(Expression):
    def __init__(self, value, output_field=None):
        self.value = value

    def of(self, row):
        return self.value


class Combined(Expression):
    def __init__(self, function, left, right):
        self.function, self.left, self.right = function, left, right

    def of(self, row):
        left, right = resolve(self.left, row), resolve(self.right, row)
        return None if left is None or right is None else self.function(left, right)


class Lower(Expression):
    function = staticmethod(str.lower)

    def __init__(self, expression):
        self.expression = F(expression) if isinstance(expression, str) else expression

    def of(self, row):
        value = resolve(self.expression, row)
        return None if value is None else self.function(str(value))


class Upper(Lower):
    function = staticmethod(str.upper)


class Trim(Lower):
    function = staticmethod(str.strip)


class Length(Lower):
    function = staticmethod(len)


class Coalesce(Expression):
    def __init__(self, *expressions):
        self.expressions = [F(it) if isinstance(it, str) else it for it in expressions]

    def of(self, row):
        values = (resolve(it, row) for it in self.expressions)
        return next((it for it in values if it is not None), None)


class Aggregate(Expression):
    """A value of many objects, or of the related objects of one."""

    name = ""

    def __init__(self, expression="*", distinct=False, filter=None, default=None, **_):
        if isinstance(expression, F):
            expression = expression.name
        if not isinstance(expression, str):
            raise NotSupported(f"{type(self).__name__} of an expression")
        self.expression, self.distinct, self.filter, self.default = expression, distinct, filter, default

    @property
    def default_alias(self):
        return f"{self.expression}__{self.name}"

    def over(self, rows):
        """Returns the value for these objects."""
        rows = [it for it in rows if self.filter is None or self.filter.matches(it)]
        if self.expression in ("*", "id", "pk") and isinstance(self, Count):
            return len(rows)
        found = [it for row in rows for it in values(row, self.expression.split("__")) if it is not None]
        return self.reduce(found)

    def of(self, row):
        if self.filter is None and isinstance(self, Count):
            known = row.known_count(self.expression)
            if known is not None:
                return known
        if self.filter is not None:
            head, related = self.expression.split("__")[0], []
            for it in values(row, [head]):
                related.append(it)
            prefix = f"{head}__"
            condition = without_prefix(self.filter, prefix)
            related = [it for it in related if it is not None and condition.matches(it)]
            rest = self.expression.split("__")[1:]
            found = [value for it in related for value in (values(it, rest) if rest else [it])]
        else:
            found = [it for it in values(row, self.expression.split("__")) if it is not None]
        return self.reduce(found)

    def reduce(self, found):
        raise NotImplementedError

    def _distinct(self, found):
        return list(dict.fromkeys(found)) if self.distinct else found


class Count(Aggregate):
    name = "count"

    def reduce(self, found):
        return len(self._distinct(found))


class Max(Aggregate):
    name = "max"

    def reduce(self, found):
        return max(found, default=self.default)


class Min(Aggregate):
    name = "min"

    def reduce(self, found):
        return min(found, default=self.default)


class Sum(Aggregate):
    name = "sum"

    def reduce(self, found):
        return sum(self._distinct(found)) if found else self.default


class Avg(Aggregate):
    name = "avg"

    def reduce(self, found):
        return sum(found) / len(found) if found else self.default


class Prefetch:
    """Related objects are read when they are used, so only the name matters."""

    def __init__(self, lookup, queryset=None, to_attr=None):
        if to_attr is not None:
            raise NotSupported("Prefetch(to_attr)")
        self.lookup = lookup


def without_prefix(condition, prefix):
    children = []
    for child in condition.children:
        if isinstance(child, Q):
            children.append(without_prefix(child, prefix))
        else:
            path, value = child
            if not path.startswith(prefix):
                raise NotSupported(f"a filter of an aggregate on {path}")
            children.append((path[len(prefix) :], value))
    return Q(*children, _connector=condition.connector, _negated=condition.negated)


def resolve(value, row):
    return value.of(row) if isinstance(value, Expression) else value


def split(path):
    """Returns the parts of a path and its lookup."""
    parts = path.split("__")
    lookups = []
    while len(parts) > 1 and parts[-1] in LOOKUPS:
        lookups.insert(0, parts.pop())
    return parts, lookups


def values(row, parts):
    """Returns the values at the end of a path; several behind a relation to many."""
    found = [row]
    for n, part in enumerate(parts):
        # The id of a related object is known without it.
        is_end = n + 1 == len(parts) or parts[n + 1 :] in (["id"], ["pk"])
        following = []
        for it in found:
            if it is None:
                following.append(None)
            elif isinstance(it, dict):
                following.append(it.get(part))
            elif not hasattr(it, "value_of"):
                if part not in ("id", "pk"):
                    raise FieldError(f"{type(it).__name__} has no field {part}")
                following.append(it)
            else:
                value = it.value_of(part, is_end)
                if hasattr(value, "iterate_related"):
                    following.extend(value.iterate_related())
                else:
                    following.append(value)
        found = following
    return found


def first_value(row, parts):
    return next(iter(values(row, parts)), None)


def matches(row, path, wanted):
    parts, lookups = split(path)
    wanted = resolve(wanted, row)
    if lookups == ["isnull"] and len(parts) == 1 and hasattr(row, "known_count"):
        count = row.known_count(parts[0])
        if count is not None:
            return (count == 0) == bool(wanted)
    found = values(row, parts)
    if lookups == ["isnull"]:
        return (all(it is None for it in found)) == bool(wanted)
    if not lookups and wanted is None:
        return all(it is None for it in found)
    return any(compare(it, lookups or ["exact"], wanted) for it in found)


PARTS = {
    "date": lambda it: it.date(),
    "year": lambda it: it.year,
    "month": lambda it: it.month,
    "day": lambda it: it.day,
    "hour": lambda it: it.hour,
}


def compare(value, lookups, wanted):
    for lookup in lookups[:-1]:
        if value is None:
            return False
        if lookup not in PARTS:
            raise FieldError(f"the lookup {lookup} cannot be followed by another one")
        value = PARTS[lookup](value)
    lookup = lookups[-1]
    if lookup in PARTS:
        return value is not None and PARTS[lookup](value) == wanted
    if lookup == "in":
        return value is not None and any(same(value, it) for it in items(wanted))
    if value is None:
        return False
    if lookup == "exact":
        return same(value, wanted)
    if lookup == "range":
        low, high = wanted
        return ordered(operator.ge, value, low) and ordered(operator.le, value, high)
    if lookup in ("lt", "lte", "gt", "gte"):
        function = {"lt": operator.lt, "lte": operator.le, "gt": operator.gt, "gte": operator.ge}[lookup]
        return ordered(function, value, wanted)
    text, wanted = str(value), "" if wanted is None else str(wanted)
    if lookup == "regex":
        return re.search(wanted, text) is not None
    if lookup == "iregex":
        return re.search(wanted, text, re.IGNORECASE) is not None
    if lookup.startswith("i") and lookup not in ("in", "isnull"):
        text, wanted, lookup = text.lower(), wanted.lower(), lookup[1:]
    return {
        "exact": text == wanted,
        "contains": wanted in text,
        "startswith": text.startswith(wanted),
        "endswith": text.endswith(wanted),
    }[lookup]


def items(wanted):
    """Returns the values of an `in`: of a list, or of a query of one field."""
    if hasattr(wanted, "as_values"):
        return wanted.as_values()
    return wanted


def plain(value):
    """Returns the form of a value in which it is compared."""
    if hasattr(value, "pk"):
        return value.pk
    if isinstance(value, uuid.UUID):
        return str(value)
    return value


def same(value, wanted):
    value, wanted = plain(value), plain(wanted)
    if value == wanted:
        return True
    if isinstance(value, bool) or isinstance(wanted, bool):
        return False
    if isinstance(value, (int, float, decimal.Decimal)) and isinstance(wanted, str):
        try:
            return float(value) == float(wanted)
        except ValueError:
            return False
    if isinstance(value, datetime.datetime):
        return ordered(operator.eq, value, wanted)
    return isinstance(value, str) and not isinstance(wanted, (str, type(None))) and value == str(wanted)


def ordered(function, value, wanted):
    value, wanted = plain(value), plain(wanted)
    if isinstance(value, datetime.datetime):
        wanted = as_time(wanted)
    elif isinstance(value, (int, float)) and isinstance(wanted, str):
        wanted = float(wanted)
    elif isinstance(value, str) and isinstance(wanted, (datetime.datetime, datetime.date)):
        value, wanted = clock.parse_datetime(value), as_time(wanted)
    if wanted is None or value is None:
        return False
    return function(value, wanted)


def as_time(value):
    if isinstance(value, str):
        value = clock.parse_datetime(value)
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    if isinstance(value, datetime.datetime) and clock.is_naive(value):
        value = clock.make_aware(value)
    return value


class SortKey:
    """The place of a value in an order, with missing values first or last."""

    __slots__ = ("is_missing", "value")

    def __init__(self, value):
        self.value = plain(value)
        if isinstance(self.value, bool):
            self.value = int(self.value)
        self.is_missing = value is None

    def __lt__(self, other):
        if self.is_missing or other.is_missing:
            return not self.is_missing
        try:
            return self.value < other.value
        except TypeError:
            return str(self.value) < str(other.value)

    def __eq__(self, other):
        return self.value == other.value and self.is_missing == other.is_missing


def sort(rows, order):
    """Returns objects in an order."""
    rows = list(rows)
    for it in reversed(order):
        known = [(SortKey(first_value(row, it.name.split("__"))), row) for row in rows]
        missing = [row for key, row in known if key.is_missing]
        present = [pair for pair in known if not pair[0].is_missing]
        present.sort(key=lambda pair: pair[0], reverse=it.is_descending)
        present = [row for _, row in present]
        rows = missing + present if it.nulls_first else present + missing
    return rows


def order_of(fields):
    order = []
    for field in fields:
        if isinstance(field, OrderBy):
            order.append(field)
        elif isinstance(field, F):
            order.append(OrderBy(field.name, False))
        elif isinstance(field, Lower):
            raise NotSupported("order_by with a function")
        elif field == "?":
            raise NotSupported("order_by('?')")
        else:
            order.append(OrderBy(field.lstrip("-+"), field.startswith("-")))
    return order
