"""Aggregates: classes that name their measures once. The tables, the statements and the job's columns follow from them.

@aggregate_of(OrderLine, "shop_sales", at="placed_at", window=timedelta(minutes=15))
    @dataclass(frozen=True, slots=True)
    class ShopSales:
        shop_id: Annotated[str, Key(32)]
        window_start: datetime
        lines: Annotated[int, Count()]
        most_cents: Annotated[int | None, Most("cents")]

`docs/your-own-aggregate.md` leads through all steps.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from core.errors import InvalidTransform
from core.model.rows import KEY_BYTES, Text, bytes_in_key, is_row_class, row_table

WINDOW_START = "window_start"
MOST_TIMES = 1_000_000  # so that a product of a sum fits the 38 digits in which Spark computes it
MeasureKind = Literal["count", "sum", "least", "most"]


@dataclass(frozen=True, slots=True)
class Key:
    """A column of the key, with the name of a column of the source. `length` and `ascii` describe a text."""

    length: int = 40
    ascii: bool = False


@dataclass(frozen=True, slots=True)
class Count:
    """The number of rows. Each aggregate has exactly one. A window without a row does not exist."""


@dataclass(frozen=True, slots=True)
class CountOf:
    """The number of rows of which a column has a value."""

    column: str
    value: str | int


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of a column of integers, `times` a factor, or None where no row has a value."""

    column: str
    times: int = 1


@dataclass(frozen=True, slots=True)
class Least:
    """The least value of a column of integers, `times` a factor, or of instants."""

    column: str
    times: int = 1


@dataclass(frozen=True, slots=True)
class Most:
    """The greatest value of a column of integers, `times` a factor, or of instants."""

    column: str
    times: int = 1


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
    """A column of values: `value` limits a count to the rows with that value. `is_optional`: it may be None."""

    name: str
    kind: MeasureKind
    holds: type
    column: str | None
    value: str | int | None
    times: int
    is_optional: bool


def columns_of(source: type, declared: type) -> dict[str, tuple[type, ...]]:
    """Return the types of each column of a class of appended rows."""
    if not is_row_class(source) or row_table(source).key:
        raise InvalidTransform(f"{declared.__name__}: {source.__name__} is no class of appended rows")
    hints = get_type_hints(source)
    return {name: get_args(hints[name]) or (hints[name],) for name in row_table(source).columns}


def means_of(declared: type, name: str, hint: Any) -> tuple[tuple[type, ...], Means | None]:
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


def key_column(
    declared: type, name: str, hint: tuple[type, ...], means: Key | None, columns: dict[str, tuple[type, ...]]
) -> KeyColumn:
    """Return the column of the key of a field. `means` is None for the beginning of the window."""
    if means is None:
        return KeyColumn(name, datetime)
    if columns.get(name) != hint or hint not in ((str,), (int,)):
        raise InvalidTransform(f"{declared.__name__}.{name}: a key is a column of the source, of type str or int")
    return KeyColumn(name, hint[0], means.length if hint == (str,) else 0, means.ascii)


def measure_of(
    declared: type, name: str, hint: tuple[type, ...], means: Means, columns: dict[str, tuple[type, ...]]
) -> Measure:
    """Return the measure of a field."""
    column, value = getattr(means, "column", None), getattr(means, "value", None)
    if column is not None and column not in columns:
        raise InvalidTransform(f"{declared.__name__}.{name}: the source has no column {column}")
    is_optional, kind = type(None) in hint, next(one for one in hint if one is not type(None))
    if isinstance(means, Count | CountOf):
        wanted: tuple[type, ...] = (int,)
        reason = "because it counts rows"
    else:
        of_source = columns[str(column)]
        sound = (datetime,) if datetime in of_source and not isinstance(means, Sum) else (int,)
        wanted = (*sound, type(None)) if type(None) in of_source else sound
        reason = f"because that is the type of {column}"
        if sound[0] not in of_source:
            raise InvalidTransform(f"{declared.__name__}.{name}: {column} holds no integers: remove the measure")
    if set(hint) != set(wanted):
        names = " | ".join("None" if one is type(None) else one.__name__ for one in wanted)
        raise InvalidTransform(f"{declared.__name__}.{name}: write {names} as its type, {reason}")
    kinds: dict[type, MeasureKind] = {Count: "count", CountOf: "count", Sum: "sum", Least: "least", Most: "most"}
    times = getattr(means, "times", 1)
    if type(times) is not int or not 0 < abs(times) <= MOST_TIMES:
        raise InvalidTransform(f"{declared.__name__}.{name}: times is a whole number up to {MOST_TIMES}, and not 0")
    return Measure(name, kinds[type(means)], kind, column, value, times, is_optional)


DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TAKEN = ("staged", "staging")  # the ends of the names of staging tables


@dataclass(frozen=True, slots=True)
class Kept:
    """A length of windows, and how long they are stored after their end. A plain length keeps them for ever."""

    window: timedelta
    keep: timedelta


Length = timedelta | Kept


def kept_of(length: Length) -> tuple[timedelta, timedelta | None]:
    """Return the length of windows, and how long they are stored. None: for ever."""
    return (length.window, length.keep) if isinstance(length, Kept) else (length, None)


def check_levels(who: str, finest: Length, rollups: Mapping[str, Length]) -> None:
    """Raise InvalidTransform unless each level is built from the windows of the level before it."""
    window, keep = kept_of(finest)
    if window <= timedelta() or DAY % window:
        raise InvalidTransform(f"{who}: a day is no whole number of windows of {window}")
    for name, length in (("", finest), *rollups.items()):
        what, (below, kept_below) = f"{who}: rollup {name}" if name else f"{who}: window", (window, keep)
        window, keep = kept_of(length)
        if name and (not _NAME.fullmatch(name) or name in _TAKEN):
            taken = " or ".join(_TAKEN)
            raise InvalidTransform(f"{what}: a name has lower-case letters, digits and _, and is not {taken}")
        if name and (window <= below or window % below or DAY % window or window % SECOND):
            raise InvalidTransform(
                f"{what}: {window} is no whole number of windows of {below}, or no whole part of a day"
            )
        if keep is not None and keep < DAY:
            raise InvalidTransform(f"{what}: it is kept for a day at least, not for {keep}")
        if name and keep is not None and (kept_below is None or keep < kept_below):
            raise InvalidTransform(f"{what}: it is kept for a shorter time than the windows that it is built from")


ADDED = ("staging_id", "slice", "run_id", "is_whole", "run_number", "window_date")  # columns beside the declared ones
SLICES = 256  # a run is committed slice by slice; the number is part of every stored window, so it stays
STAGED_BYTES = 84  # of the columns that come before the key of a window where jobs stage it
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Declared = TypeVar("Declared")


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The declaration of an aggregate, or of one of its rollups, which are aggregates with coarser windows.

    `name` is the name of its table, and for the finest level the name of the job that computes all levels. The first
    column of the key decides the slice, so one transaction shows all windows of its value. `keep` is the time for
    which windows are stored after their end, None: for ever.
    """

    name: str
    of: type
    source: type
    at: str
    window: timedelta
    keys: tuple[KeyColumn, ...]
    measures: tuple[Measure, ...]
    keep: timedelta | None = None
    rollups: "tuple[Aggregate, ...]" = ()

    @property
    def levels(self) -> "tuple[Aggregate, ...]":
        """The aggregate itself and its rollups, the finest first."""
        return (self, *self.rollups)

    def horizon(self, now: datetime) -> datetime | None:
        """Return the instant before which windows are removed, or None when all stay.

        It is the beginning of a day. So the windows of a coarser level are built from all finer windows or from none.
        """
        return None if self.keep is None else now - self.keep - (now - self.keep - EPOCH) % DAY

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
    def subject(self) -> KeyColumn | None:
        """The column of the key that has the subject of the source. None: a window adds up several subjects."""
        return next((one for one in self.keys if one.name == row_table(self.source).subject), None)

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

    def end_of_window(self, moment: datetime) -> datetime:
        """Return the end of the window of an instant."""
        return EPOCH + ((moment - EPOCH) // self.window + 1) * self.window


_AGGREGATES: dict[type, Aggregate] = {}
_ROLLUPS: dict[type, Aggregate] = {}


def aggregate_of(
    source: type, name: str, *, at: str, window: Length, rollups: Mapping[str, Length] | None = None
) -> Callable[[type[Declared]], type[Declared]]:
    """Declare an aggregate of appended rows: their windows of event time, by the column `at`, in the table `name`.

    `rollups` are coarser levels by name, the finer first: the level `day` of `shop_sales` is `shop_sales_day`.
    """

    def declare(declared: type[Declared]) -> type[Declared]:
        found = _aggregate(declared, source, name, at, kept_of(window)[0])
        check_levels(declared.__name__, window, rollups or {})
        coarser: list[Aggregate] = []
        for level, length in (rollups or {}).items():
            named = f"{declared.__name__}{level.title().replace('_', '')}"
            members = {"__slots__": (), "__doc__": declared.__doc__, "__module__": declared.__module__}
            of, (coarse, keep) = type(named, (declared,), members), kept_of(length)
            coarser.append(replace(found, name=f"{found.name}_{level}", of=of, window=coarse, keep=keep))
        _ROLLUPS.update({one.of: one for one in coarser})
        _AGGREGATES[declared] = replace(found, keep=kept_of(window)[1], rollups=tuple(coarser))
        return declared

    return declare


def aggregate_table(declared: type) -> Aggregate:
    """Return the declaration of a class. Raises InvalidTransform when it was never declared."""
    try:
        return _AGGREGATES.get(declared) or _ROLLUPS[declared]
    except KeyError:
        raise InvalidTransform(f"{declared.__name__} is not an aggregate: declare it with @aggregate_of") from None


def aggregate_named(name: str) -> Aggregate:
    """Return the aggregate of a name. Raises InvalidTransform when no imported module declares it."""
    for one in _AGGREGATES.values():
        if one.name == name:
            return one
    raise InvalidTransform(
        f"no aggregate is named {name}: declare it in a module of the folder aggregates/ beside its transform"
    )


def declared_aggregates() -> tuple[Aggregate, ...]:
    """Return every aggregate that the imported modules declare, by name."""
    return tuple(sorted(_AGGREGATES.values(), key=lambda one: one.name))


def _aggregate(declared: type, source: type, name: str, at: str, window: timedelta) -> Aggregate:
    hints = get_type_hints(declared, include_extras=True)
    keys: list[KeyColumn] = []
    measures: list[Measure] = []
    faults: list[str] = []
    columns = columns_of(source, declared)
    for field in fields(cast(Any, declared)):
        try:
            hint, means = means_of(declared, field.name, hints[field.name])
            if means is None or isinstance(means, Key):
                if measures:
                    raise InvalidTransform(f"{declared.__name__}.{field.name}: the key comes before the measures")
                keys.append(key_column(declared, field.name, hint, means, columns))
            else:
                measures.append(measure_of(declared, field.name, hint, means, columns))
        except InvalidTransform as fault:
            faults += fault.faults
    if faults:
        raise InvalidTransform(*faults)
    found = Aggregate(name, declared, source, at, window, tuple(keys), tuple(measures))
    if faults := list(_faults_of_aggregate(found, columns)):
        raise InvalidTransform(*faults)
    return found


def _faults_of_aggregate(one: Aggregate, columns: dict[str, tuple[type, ...]]) -> Iterator[str]:
    who = one.of.__name__
    if one.key.count(WINDOW_START) != 1 or not one.grouped_by or one.keys[0].name == WINDOW_START:
        yield f"{who}: the key is one or more columns, the first of them before {WINDOW_START}"
    size = STAGED_BYTES + sum(bytes_in_key(each.kind, Text(each.length, each.ascii)) for each in one.keys)
    if size > KEY_BYTES:
        yield (
            f"{who}: the key of its staged windows has up to {size} bytes, and a key of SQL Server has at most"
            f" {KEY_BYTES}: shorten its texts, which take two bytes a character, or one with ascii=True"
        )
    if sum(measure.kind == "count" and measure.column is None for measure in one.measures) != 1:
        yield f"{who}: one measure is Count()"
    if columns.get(one.at) not in ((datetime,), (date,)):
        yield f"{who}: {one.at} is no column of the source that always holds an instant or a day"
