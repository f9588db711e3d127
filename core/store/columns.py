"""Convert our values to columns and back: instants and days as texts, and the fields of row classes."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints
from uuid import UUID

import msgspec

from core.model.commits import PartitionState
from core.model.events import SequenceNumber, Span, Stream
from core.model.ports import in_utc
from core.model.property_values import decode_properties, decode_sent
from core.model.rows import COLUMN_TYPES, PlacedRow, Row, row_table, texts_of
from core.transforms.contract import kind_of, part_of_field, placed

WHO_LENGTH, WHY_LENGTH = 100, 400  # characters that are stored of the name of a person or a program, and of its reason
FARTHEST = 400  # power of ten of a decimal's first digit, in both directions: the text of 1E-999999999 fills the memory
_WITH_FRACTION, _WITHOUT_FRACTION = len("2026-01-01T00:00:00.000000Z"), len("2026-01-01T00:00:00Z")

Values = tuple[Any, ...]
ValuesOf = Callable[[Sequence[PlacedRow], int, str, int], list[Values]]


def instant_text(moment: datetime) -> str:
    """Return the text under which every time is stored: UTC, ISO 8601, six digits, so that texts sort like times.

    ValueError for a naive datetime, which names no instant.
    """
    return instant_texts([moment])[0]


def instant_texts(moments: Sequence[datetime]) -> list[str]:
    """Return a column of instants as texts.

    msgspec writes them in a tenth of isoformat's time, but rounds odd offsets.
    """
    try:
        written: list[str] = msgspec.to_builtins(moments)
        return [
            text
            if moment.tzinfo is UTC and len(text) == _WITH_FRACTION
            else f"{text[:-1]}.000000Z"
            if moment.tzinfo is UTC and len(text) == _WITHOUT_FRACTION
            else instant_text(in_utc(moment))
            for text, moment in zip(written, moments, strict=True)
        ]
    except (AttributeError, TypeError) as error:
        raise ValueError(f"not every value of a column of instants is a datetime: {error}") from error


def day_text(day: date) -> str:
    """Return the text of a calendar day, ISO 8601. Raises ValueError for a value that is not a date."""
    if not isinstance(day, date):
        raise ValueError(f"{day!r} is not a date")
    return day.isoformat()


def instant_of(value: str | datetime) -> datetime:
    """Return the instant that a column holds: a text, or a datetime without a zone."""
    return (datetime.fromisoformat(value) if isinstance(value, str) else value).replace(tzinfo=UTC)


def instant_or_none(value: str | datetime | None) -> datetime | None:
    """Return the instant of a column that may be empty."""
    return None if value is None else instant_of(value)


def day_of(value: str | date) -> date:
    """Return the calendar day that a column holds."""
    return date.fromisoformat(value) if isinstance(value, str) else value


def key_text(value: object) -> str:
    """Return the text under which a part of a key is stored."""
    if isinstance(value, datetime):
        return instant_text(value)
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def can_stand(value: object) -> bool:
    """Return True when a column can hold this part of a key."""
    if isinstance(value, str):
        return value.isascii() or value == storable(value)
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    if isinstance(value, float | Decimal):
        return _is_number(value)
    if isinstance(value, datetime):
        with suppress(ValueError):
            return bool(in_utc(value))
        return False
    return True


def storable(text: str) -> str:
    """Return the text without lone surrogates, which UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def cut(text: str, most: int) -> str:
    """Return the beginning of a text that a column of `most` characters can hold. SQL Server counts UTF-16 units."""
    return storable(text).encode("utf-16-le")[: 2 * most].decode("utf-16-le", "ignore")


def whole_number(text: str) -> int | None:
    """Return the number that a text is, as a bigint column holds it, or None for any other text."""
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 19:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def numbers_json(numbers: Sequence[SequenceNumber]) -> str:
    """Return sequence numbers in the form that both engines read: a JSON array of one-element arrays."""
    return json.dumps([[number] for number in numbers])


def texts_json(texts: Iterable[str]) -> str:
    """Return texts in the form that both engines read: a sorted JSON array of one-element arrays."""
    return json.dumps([[text] for text in sorted(texts)])


def span_values(span: Span) -> dict[str, SequenceNumber]:
    """Return both ends of a span under the names of their columns."""
    return {"first_sequence_number": span.first, "last_sequence_number": span.last}


def place_of(state: PartitionState) -> dict[str, Any]:
    """Return the key of a partition."""
    return {"stream_id": state.stream_id, "partition_id": state.partition.partition_id}


def names_of(stream: Stream) -> dict[str, str]:
    """Return the names of a stream, which all its incarnations share."""
    return {"event_hub": stream.event_hub, "consumer_group": stream.consumer_group}


def quoted(name: str) -> str:
    """Return a column's name in brackets, because a field may have a keyword as its name."""
    return f"[{name}]"


@cache
def fields_of(row_class: type) -> tuple[tuple[str, Any], ...]:
    """Return the columns of a row class in order, with their types."""
    hints = get_type_hints(row_class)
    return tuple((name, hints[name]) for name in row_table(row_class).columns)


@cache
def types_of(hint: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the type itself."""
    return get_args(hint) or (hint,)


def is_float(hint: Any) -> bool:
    """Return True for a column of floats. A document holds them as texts of all their digits."""
    types = types_of(hint)
    return float in types and Decimal not in types


def compiled_values(
    row_class: type, lineage: tuple[str, ...], texts: Callable[..., list[str]], last: tuple[str, ...] = ()
) -> ValuesOf:
    """Return a function from placed rows to values, written out and compiled: docs/adr/0002 has the figures.

    The parts of the position in `lineage` come first, those in `last` last. Required instants are written a column at a
    time, `at_<field>`, and other values one by one. The function raises ValueError for a value that is not of the type
    of its field, for a number that is not finite, because SQL has no value for it, for a text that is not of ASCII, and
    for a row that raises anything when it is read.
    """
    fields = fields_of(row_class)
    columns = [name for name, hint in fields if hint is datetime]
    ascii_only = {name for name, text in texts_of(row_class).items() if text.ascii}
    writers = (f"ascii({_value_code(*one)})" if one[0] in ascii_only else _value_code(*one) for one in fields)
    values = ", ".join([*lineage, *writers, *last, ""])
    unpacked = ", ".join(["(sequence_number, ordinal, row)", *(f"at_{name}" for name in columns)])
    written = "".join(f", instants('{name}', [placed[2].{name} for placed in rows])" for name in columns)
    source = f"lambda rows, stream_id, partition_id, commit_number: [({values}) for {unpacked} in zip(rows{written})]"
    if not columns:
        source = source.replace("zip(rows)", "rows")

    kinds = {name: kind for name, hint in fields if (kind := kind_of(hint)) is not None}

    def fit(name: str, value: Any) -> Any:
        try:
            return _fitted(kinds[name], value, texts)
        except Exception as error:  # noqa: BLE001 - a value may raise anything when it is read
            why = error if isinstance(error, OverflowError | ValueError) else f"its value raises {type(error).__name__}"
            fault = f"{row_class.__name__}.{name} is declared {kinds[name].__name__}, and {why}"
            raise ValueError(*placed([(part_of_field(row_class, name), fault)])) from None

    def instants(name: str, moments: list[Any]) -> list[str]:
        try:
            return texts(moments)
        except Exception:  # noqa: BLE001 - the value at fault is looked for
            return [fit(name, moment) for moment in moments]

    names = {
        "fit": fit,
        "instants": instants,
        "texts": texts,
        "ascii": _ascii,
        "sound": _sound,
        "is_number": _is_number,
    }
    compiled = eval(source, names | {f"a_{kind.__name__}": kind for kind in COLUMN_TYPES})

    def values_of(*given: Any) -> list[Values]:
        try:
            return cast(list[Values], compiled(*given))
        except (MemoryError, ValueError):
            raise
        except Exception as error:
            raise ValueError(f"a row of {row_class.__name__} cannot be read: {type(error).__name__}") from error

    return values_of


_WRITTEN: Mapping[type, str] = {float: "v + 0.0", date: "v.isoformat()", datetime: "texts([v])[0]"}  # -0.0 as 0.0
_GUARDED: Mapping[type, str] = {float: "is_number(v)", Decimal: "is_number(v)", datetime: "v.tzinfo is not None"}


def _value_code(name: str, hint: Any) -> str:
    """Return the code that writes a field: a value of exactly its type at once, any other by `fit`."""
    if hint is datetime:
        return f"at_{name}"
    kind = kind_of(hint)
    if kind is None:
        return f"sound(row.{name})"
    plain = " and ".join([f"(v := row.{name}).__class__ is a_{kind.__name__}", *filter(None, [_GUARDED.get(kind)])])
    none = "None if v is None else " if type(None) in types_of(hint) else ""
    return f"({_WRITTEN.get(kind, 'v')} if {plain} else {none}fit('{name}', v))"


def _fitted(kind: type, value: Any, texts: Callable[..., list[str]]) -> Any:
    """Return a value as a column of a type stores it. ValueError for one of a different type.

    A whole number fits each column of numbers. A datetime is no day, although it is a `date` of Python.
    """
    if kind is str and isinstance(value, str):
        return str.__str__(value)
    if kind is int and isinstance(value, int):
        return int(value)
    if kind is float and isinstance(value, float | int) and float(_sound(value)) == value:
        return float(value) + 0.0
    if kind is Decimal and isinstance(value, Decimal | int):
        return _sound(Decimal(value))
    if kind is date and isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    if kind is datetime and isinstance(value, datetime):
        return texts([value])[0]
    raise ValueError(f"its value is the {type(_sound(value)).__name__} {value!r:.80}")


def _sound(value: Any) -> Any:
    """Return the same value. Raises ValueError for a number that is not finite.

    A database or JSON would make NULL of it. NaN arrives in columns of any type: it is the missing value of many
    libraries.
    """
    if isinstance(value, float | Decimal) and not _is_number(value):
        raise ValueError(f"{value} is not a finite number that a column can hold")
    return value


def _is_number(value: float | Decimal) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value.is_finite() and abs(value.adjusted()) <= FARTHEST


def _ascii(value: Any) -> Any:
    """Return the same text. Raises ValueError for one of which a server would make question marks."""
    if isinstance(value, str) and not value.isascii():
        raise ValueError(f"{value!r} has other characters than those of ASCII, for which its column is declared")
    return value


Value = TypeVar("Value")
_Read = Callable[[Sequence[Any], int], Any]  # from a row, and the place of the first column of a value

_LEAVES: Mapping[type, Callable[[Any], Any]] = {
    datetime: instant_of,
    date: day_of,
    Decimal: Decimal,
    UUID: UUID,
    bool: bool,
    bytes: bytes,
    tuple: decode_sent,  # the properties and system properties of an event
}


def decoded(value_class: type[Value], rows: Iterable[Sequence[Any]]) -> tuple[Value, ...]:
    """Return the values of rows, as `decoder` makes them."""
    return tuple(map(decoder(value_class), rows))


def decoder(value_class: type[Value]) -> Callable[[Sequence[Any]], Value]:
    """Return a function that makes a value of a class, with fields and types, from all columns of a row.

    A field that has fields of its own takes a column for each. If it is optional, it is None where the first is NULL.
    ValueError for a row with more or fewer columns.
    """
    width, read = _reader(cast(Any, value_class))

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
    values = []
    for name, hint in fields_of(row_class):
        value = given[name]
        numbers = [kind for kind in (Decimal, float) if kind in types_of(hint)]
        values.append(value if value is None or not numbers else numbers[0](value))
    return row_reader(row_class)(values)


@cache
def _reader(hint: Any) -> tuple[int, _Read]:
    """Return the number of columns of a type, and its reader."""
    types = types_of(hint)
    whole = next((one for one in types if is_dataclass(one) or _is_struct(one)), None)
    if whole is None:
        make = next((make for kind, make in _LEAVES.items() if kind in types), None)
        if get_origin(hint) is Mapping:  # the properties of an event
            make = decode_properties
        if make is None:
            return 1, lambda row, at: row[at]
        return 1, lambda row, at: None if row[at] is None else make(row[at])
    width, parts = 0, []
    hints = get_type_hints(whole)
    made = getattr(whole, "from_columns", whole)
    for name in _stored_fields(whole):
        size, read = _reader(tuple) if name == "properties" and made is not whole else _reader(hints[name])
        parts.append((width, read))
        width += size
    may_be_none = type(None) in types

    def read_whole(row: Sequence[Any], at: int) -> Any:
        return None if may_be_none and row[at] is None else made(*[read(row, at + place) for place, read in parts])

    return width, read_whole


def _stored_fields(whole: Any) -> Sequence[str]:
    """Return the fields of a class that have columns. Those of an event that have a default are in the properties."""
    if not _is_struct(whole):
        return [one.name for one in fields(whole) if one.init]
    names: tuple[str, ...] = whole.__struct_fields__
    return names[: -len(whole.__struct_defaults__)] if hasattr(whole, "from_columns") else names


def _is_struct(one: Any) -> bool:
    return isinstance(one, type) and issubclass(one, msgspec.Struct)


def subjects_json(subjects: Sequence[str]) -> str:
    """Return subjects as JSON: each as a text, and as a number if it is one."""
    return json.dumps([(one, whole_number(one)) for one in subjects])
