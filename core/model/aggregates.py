"""Aggregates: classes that name their measures once; the tables, the statements and the job's columns follow from them.

    @aggregate_of(SensorReading, "home_activity", at="observed_at", window=timedelta(minutes=15))
    @dataclass(frozen=True, slots=True)
    class HomeActivity:
        home_id: Annotated[str, Key(32)]
        window_start: datetime
        readings: Annotated[int, Count()]
        most_ppm: Annotated[int | None, Most("ppm")]

`docs/your-own-aggregate.md` leads through all steps.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from core.errors import InvalidTransform
from core.model.rows import is_row_class, row_table

SLICES = 256  # a run is committed slice by slice; the number is part of every stored window, so it stays
WINDOW_START = "window_start"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MeasureKind = Literal["count", "sum", "least", "most"]
Declared = TypeVar("Declared")


@dataclass(frozen=True, slots=True)
class Key:
    """A column of the key, with the name of a column of the source; `length` and `ascii` describe a text."""

    length: int = 40
    ascii: bool = False


@dataclass(frozen=True, slots=True)
class Count:
    """The number of rows. Each aggregate has exactly one; a window without a row does not exist."""


@dataclass(frozen=True, slots=True)
class CountOf:
    """The number of rows of which a column has a value."""

    column: str
    value: str | int


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of a column of integers, `times` a factor; None where no row has a value."""

    column: str
    times: int = 1
    within: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Least:
    """The least value of a column of integers, `times` a factor, or of instants."""

    column: str
    times: int = 1
    within: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Most:
    """The greatest value of a column of integers, `times` a factor, or of instants."""

    column: str
    times: int = 1
    within: tuple[int, int] | None = None


Means = Key | Count | CountOf | Sum | Least | Most


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of the key. The beginning of the window is one of them, without a length."""

    name: str
    kind: type
    length: int = 0
    ascii: bool = False


@dataclass(frozen=True, slots=True)
class Measure:
    """A column of values: `value` limits a count to the rows with that value; `is_optional`: it may be None.

    `within` has the least and the greatest value that the column of the source should hold. A run counts the rows with
    others, and adds them up all the same.
    """

    name: str
    kind: MeasureKind
    holds: type
    column: str | None
    value: str | int | None
    times: int
    is_optional: bool
    within: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The declaration of an aggregate. `name` is the name of its table, and of the job that computes it.

    The first column of the key decides the slice, so one transaction shows all windows of its value.
    """

    name: str
    of: type
    source: type
    at: str
    window: timedelta
    keys: tuple[KeyColumn, ...]
    measures: tuple[Measure, ...]

    @property
    def staged(self) -> str:
        """The table in which jobs stage windows."""
        return f"{self.name}_staged"

    @property
    def key(self) -> tuple[str, ...]:
        """The names of the columns of the key, with the beginning of the window, in the order of the table."""
        return tuple(one.name for one in self.keys)

    @property
    def grouped_by(self) -> tuple[KeyColumn, ...]:
        """The columns of the key that are columns of the source."""
        return tuple(one for one in self.keys if one.name != WINDOW_START)

    @property
    def values(self) -> tuple[str, ...]:
        """The names of the measures."""
        return tuple(one.name for one in self.measures)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns that the class has."""
        return (*self.key, *self.values)

    @property
    def count(self) -> str:
        """The measure that counts all rows."""
        return next(one.name for one in self.measures if one.kind == "count" and one.column is None)

    @property
    def instants(self) -> tuple[str, ...]:
        """The names of the columns that hold instants."""
        return (WINDOW_START, *(one.name for one in self.measures if one.holds is datetime))

    def slice_of(self, key: object) -> int:
        """Return the slice of a value of the first column of the key."""
        return zlib.crc32(str(key).encode()) % SLICES

    def end_of_window(self, moment: datetime) -> datetime:
        """Return the end of the window of an instant."""
        return EPOCH + ((moment - EPOCH) // self.window + 1) * self.window


_AGGREGATES: dict[type, Aggregate] = {}


def aggregate_of(source: type, name: str, *, at: str, window: timedelta) -> Callable[[type[Declared]], type[Declared]]:
    """Declare an aggregate of appended rows: their windows of event time, by the column `at`, in the table `name`."""

    def declare(declared: type[Declared]) -> type[Declared]:
        _AGGREGATES[declared] = _aggregate(declared, source, name, at, window)
        return declared

    return declare


def aggregate_table(declared: type) -> Aggregate:
    """Return the declaration of a class; InvalidTransform when it was never declared."""
    try:
        return _AGGREGATES[declared]
    except KeyError:
        raise InvalidTransform(f"{declared.__name__} is not an aggregate: declare it with @aggregate_of") from None


def aggregate_named(name: str) -> Aggregate:
    """Return the aggregate of a name; InvalidTransform when no imported module declares it."""
    for one in _AGGREGATES.values():
        if one.name == name:
            return one
    raise InvalidTransform(f"no aggregate is named {name}: declare it in a module of core/transforms/aggregates")


def declared_aggregates() -> tuple[Aggregate, ...]:
    """Return every aggregate that the imported modules declare, by name."""
    return tuple(sorted(_AGGREGATES.values(), key=lambda one: one.name))


def _aggregate(declared: type, source: type, name: str, at: str, window: timedelta) -> Aggregate:
    hints = get_type_hints(declared, include_extras=True)
    keys: list[KeyColumn] = []
    measures: list[Measure] = []
    columns = _columns_of(source, declared)
    for field in fields(cast(Any, declared)):
        hint, means = _means_of(declared, field.name, hints[field.name])
        if means is None or isinstance(means, Key):
            if measures:
                raise InvalidTransform(f"{declared.__name__}.{field.name}: the key comes before the measures")
            keys.append(_key_column(declared, field.name, hint, means, columns))
        else:
            measures.append(_measure(declared, field.name, hint, means, columns))
    found = Aggregate(name, declared, source, at, window, tuple(keys), tuple(measures))
    _check(found, columns)
    return found


def _columns_of(source: type, declared: type) -> dict[str, tuple[type, ...]]:
    if not is_row_class(source) or row_table(source).key:
        raise InvalidTransform(f"{declared.__name__}: {source.__name__} is no class of appended rows")
    hints = get_type_hints(source)
    return {name: get_args(hints[name]) or (hints[name],) for name in row_table(source).columns}


def _means_of(declared: type, name: str, hint: Any) -> tuple[tuple[type, ...], Means | None]:
    """Return the types of a field, and the key or the measure with which it is annotated."""
    if get_origin(hint) is not Annotated:
        if name == WINDOW_START and hint is datetime:
            return (datetime,), None
        raise InvalidTransform(
            f"{declared.__name__}.{name}: annotate it with Key or a measure, or name it {WINDOW_START}: datetime"
        )
    base, *means = get_args(hint)
    found = [one for one in means if isinstance(one, Means)]
    if len(found) != 1:
        raise InvalidTransform(f"{declared.__name__}.{name}: annotate it with one Key or one measure")
    return get_args(base) or (base,), found[0]


def _key_column(
    declared: type, name: str, hint: tuple[type, ...], means: Key | None, columns: dict[str, tuple[type, ...]]
) -> KeyColumn:
    if means is None:
        return KeyColumn(name, datetime)
    if columns.get(name) != hint or hint not in ((str,), (int,)):
        raise InvalidTransform(f"{declared.__name__}.{name}: a key is a column of the source, of type str or int")
    return KeyColumn(name, hint[0], means.length if hint == (str,) else 0, means.ascii)


def _measure(
    declared: type, name: str, hint: tuple[type, ...], means: Means, columns: dict[str, tuple[type, ...]]
) -> Measure:
    column, value = getattr(means, "column", None), getattr(means, "value", None)
    if column is not None and column not in columns:
        raise InvalidTransform(f"{declared.__name__}.{name}: the source has no column {column}")
    is_optional, kind = type(None) in hint, next(one for one in hint if one is not type(None))
    if isinstance(means, Count | CountOf):
        wanted: tuple[type, ...] = (int,)
    else:
        of_source = columns[str(column)]
        sound = (datetime,) if datetime in of_source and not isinstance(means, Sum) else (int,)
        wanted = (*sound, type(None)) if type(None) in of_source else sound
        if sound[0] not in of_source:
            raise InvalidTransform(f"{declared.__name__}.{name}: {column} holds no integers")
    if set(hint) != set(wanted):
        names = " | ".join("None" if one is type(None) else one.__name__ for one in wanted)
        raise InvalidTransform(f"{declared.__name__}.{name}: its type is {names}")
    kinds: dict[type, MeasureKind] = {Count: "count", CountOf: "count", Sum: "sum", Least: "least", Most: "most"}
    within = _range(f"{declared.__name__}.{name}", means, kind)
    return Measure(name, kinds[type(means)], kind, column, value, getattr(means, "times", 1), is_optional, within)


def _range(who: str, means: Means, kind: type) -> tuple[int, int] | None:
    within: tuple[int, int] | None = getattr(means, "within", None)
    if within is not None and (kind is not int or within[0] > within[1]):
        raise InvalidTransform(f"{who}: within is the least and the greatest integer that the column should hold")
    return within


def _check(one: Aggregate, columns: dict[str, tuple[type, ...]]) -> None:
    who = one.of.__name__
    if one.key.count(WINDOW_START) != 1 or not one.grouped_by or one.keys[0].name == WINDOW_START:
        raise InvalidTransform(f"{who}: the key is one or more columns, the first of them before {WINDOW_START}")
    if sum(measure.kind == "count" and measure.column is None for measure in one.measures) != 1:
        raise InvalidTransform(f"{who}: one measure is Count()")
    ranges = {(measure.column, measure.within) for measure in one.measures if measure.within}
    if len(ranges) != len({column for column, _ in ranges}):
        raise InvalidTransform(f"{who}: two measures name different ranges of one column")
    if columns.get(one.at) not in ((datetime,), (date,)):
        raise InvalidTransform(f"{who}: {one.at} is no column of the source that always holds an instant or a day")
    if one.window <= timedelta() or timedelta(days=1) % one.window:
        raise InvalidTransform(f"{who}: a day is no whole number of windows of {one.window}")
