"""Aggregates: classes that name their measures once; the tables, the statements and the job's columns follow from them.

    @aggregate_of(OrderLine, "shop_sales", at="placed_at", window=timedelta(minutes=15))
    @dataclass(frozen=True, slots=True)
    class ShopSales:
        shop_id: Annotated[str, Key(32)]
        window_start: datetime
        lines: Annotated[int, Count()]
        most_cents: Annotated[int | None, Most("cents")]

`docs/your-own-aggregate.md` leads through all steps.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeVar, cast, get_type_hints

from core.errors import InvalidTransform
from core.model.measures import (
    WINDOW_START,
    Count,
    CountOf,
    Key,
    KeyColumn,
    Least,
    Measure,
    Most,
    Sum,
    columns_of,
    key_column,
    means_of,
    measure_of,
)
from core.model.rollups import DAY, Length, check_levels, keep_of, window_of
from core.model.rows import KEY_BYTES, Text, bytes_in_key

__all__ = (  # all that a reader of declarations needs
    "EPOCH",
    "SLICES",
    "WINDOW_START",
    "Aggregate",
    "Count",
    "CountOf",
    "Key",
    "KeyColumn",
    "Least",
    "Measure",
    "Most",
    "Sum",
    "aggregate_named",
    "aggregate_of",
    "aggregate_table",
    "declared_aggregates",
)
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
        """Return the instant before which windows are removed; None when all stay.

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
        found = _aggregate(declared, source, name, at, window_of(window))
        check_levels(declared.__name__, window, rollups or {})
        coarser = tuple(_rollup(found, level, length) for level, length in (rollups or {}).items())
        _ROLLUPS.update({one.of: one for one in coarser})
        _AGGREGATES[declared] = replace(found, keep=keep_of(window), rollups=coarser)
        return declared

    return declare


def aggregate_table(declared: type) -> Aggregate:
    """Return the declaration of a class; InvalidTransform when it was never declared."""
    try:
        return _AGGREGATES.get(declared) or _ROLLUPS[declared]
    except KeyError:
        raise InvalidTransform(f"{declared.__name__} is not an aggregate: declare it with @aggregate_of") from None


def aggregate_named(name: str) -> Aggregate:
    """Return the aggregate of a name; InvalidTransform when no imported module declares it."""
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
    if faults := list(_faults(found, columns)):
        raise InvalidTransform(*faults)
    return found


def _rollup(finest: Aggregate, name: str, length: Length) -> Aggregate:
    """Return a coarser level; the class of its windows extends the declared one."""
    of = finest.of
    named = f"{of.__name__}{name.title().replace('_', '')}"
    coarser = type(named, (of,), {"__slots__": (), "__doc__": of.__doc__, "__module__": of.__module__})
    return replace(finest, name=f"{finest.name}_{name}", of=coarser, window=window_of(length), keep=keep_of(length))


def _faults(one: Aggregate, columns: dict[str, tuple[type, ...]]) -> Iterator[str]:
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
