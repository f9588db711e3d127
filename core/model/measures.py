"""The columns of an aggregate: the markers of its fields, and the key and the measures that follow from them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from core.errors import InvalidTransform
from core.model.rows import is_row_class, row_table

WINDOW_START = "window_start"
MOST_TIMES = 1_000_000  # so that a product of a sum fits the 38 digits in which Spark computes it
MeasureKind = Literal["count", "sum", "least", "most"]


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
    """A column of values: `value` limits a count to the rows with that value; `is_optional`: it may be None."""

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
    """Return the column of the key of a field; `means` is None for the beginning of the window."""
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
