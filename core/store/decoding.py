"""Values from rows: a value is made from the columns of a statement in the order of its fields, by their types."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Any, TypeVar, cast, get_origin, get_type_hints
from uuid import UUID

import msgspec

from core.model.rows import Row
from core.model.values import decode_properties
from core.store.columns import day_of, fields_of, instant_of, types_of

Value = TypeVar("Value")
_Read = Callable[[Sequence[Any], int], Any]  # from a row, and the place of the first column of a value

_LEAVES: Mapping[type, Callable[[Any], Any]] = {
    datetime: instant_of,
    date: day_of,
    Decimal: Decimal,
    UUID: UUID,
    bool: bool,
    bytes: bytes,
}


def decoded(value_class: type[Value], rows: Iterable[Sequence[Any]]) -> tuple[Value, ...]:
    """Return the values of rows, as `decoder` makes them."""
    return tuple(map(decoder(value_class), rows))


def decoder(value_class: type[Value]) -> Callable[[Sequence[Any]], Value]:
    """Return a function that makes a value of a class, with fields and types, from all columns of a row.

    A field that has fields of its own takes a column for each. If it is optional, it is None where the first is NULL.
    ValueError for a row with more or fewer columns.
    """
    width, read = _part(cast(Any, value_class))

    def decode(row: Sequence[Any]) -> Value:
        if len(row) != width:
            raise ValueError(f"{value_class.__name__} has {width} columns, and the row {len(row)}")
        return cast(Value, read(row, 0))

    return decode


def row_reader(row_class: type) -> Callable[[Sequence[Any]], Row]:
    """Return the decoder of a row class."""
    return decoder(cast(type[Row], row_class))


def row_of_json(row_class: type, columns: str) -> Row:
    """Return a row from its columns as JSON."""
    given = json.loads(columns, parse_float=str)
    values = tuple(_value_of(given[name], types_of(hint)) for name, hint in fields_of(row_class))
    return row_reader(row_class)(values)


def _value_of(value: Any, types: tuple[Any, ...]) -> Any:
    if value is None or not {float, Decimal} & set(types):
        return value
    return Decimal(value) if Decimal in types else float(value)


@cache
def _part(hint: Any) -> tuple[int, _Read]:
    """Return the number of columns of a type, and its reader."""
    types = types_of(hint)
    whole = next((one for one in types if is_dataclass(one) or _is_struct(one)), None)
    if whole is None:
        return 1, _leaf(hint)
    width, parts = 0, []
    for field in _hints_of(whole):
        size, read = _part(field)
        parts.append((width, read))
        width += size
    may_be_none = type(None) in types

    def read_whole(row: Sequence[Any], at: int) -> Any:
        return None if may_be_none and row[at] is None else whole(*[read(row, at + place) for place, read in parts])

    return width, read_whole


def _leaf(hint: Any) -> _Read:
    if get_origin(hint) is Mapping:  # the properties of an event
        return lambda row, at: decode_properties(row[at])
    make = next((make for kind, make in _LEAVES.items() if kind in types_of(hint)), None)
    if make is None:
        return lambda row, at: row[at]
    return lambda row, at: None if row[at] is None else make(row[at])


def _is_struct(one: Any) -> bool:
    return isinstance(one, type) and issubclass(one, msgspec.Struct)


def _hints_of(whole: Any) -> list[Any]:
    """Return the types of the fields of a class, in order."""
    hints = get_type_hints(whole)
    names = whole.__struct_fields__ if _is_struct(whole) else [one.name for one in fields(whole) if one.init]
    return [hints[name] for name in names]
