"""Sample events for fields that a person named, and the values of a sample as Python writes them."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_FLOOR, Decimal
from typing import Any

import msgspec

from core.model.ports import parse_instant
from hubledger.cli.scaffold.code import pieces
from hubledger.cli.scaffold.design import EPOCHS, Field, Kind

SAMPLES = 5
EPOCH, NINE = datetime(1970, 1, 1, tzinfo=UTC), 1_767_258_000  # seconds until 2026-01-01T09:00:00Z
INDENT = 4  # of an argument in a line of its own


def sample_lines(fields: Sequence[Field]) -> tuple[bytes, ...]:
    """Return events with these fields; the last one is without its optional fields."""
    return tuple(_line(fields, number) for number in range(1, SAMPLES + 1))


def values_of(octets: bytes, fields: Sequence[Field]) -> Iterator[tuple[Field, str]]:
    """Yield each field with its value in a sample, as the expression of Python that the row has."""
    body = msgspec.json.decode(octets, type=dict[str, msgspec.Raw])
    for one in fields:
        raw = bytes(body.get(one.name, b"null")).decode()
        yield one, "None" if raw == "null" and one.is_optional else _expression(one.kind, raw)


def _expression(kind: Kind, raw: str) -> str:
    """Return the expression of a value. Raises ValueError for a value of a different kind."""
    if kind == "json":
        return pieces(raw, INDENT)
    value = json.loads(raw, parse_float=Decimal)
    if kind == "decimal":
        return f'Decimal("{value}")'
    if kind == "float":
        return repr(float(value)).replace("e+", "e")
    if kind == "instant":
        return _instant(parse_instant(value))
    if kind in EPOCHS:
        number, microsecond = Decimal(value), Decimal(EPOCHS[kind])
        return _instant(EPOCH + timedelta(microseconds=int(number.quantize(microsecond, ROUND_FLOOR) / microsecond)))
    if kind == "date":
        day = msgspec.convert(value, date)
        return f"date({day.year}, {day.month}, {day.day})"
    return pieces(value, INDENT) if isinstance(value, str) else repr(value)


def _instant(moment: datetime) -> str:
    parts = [moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second, moment.microsecond]
    while len(parts) > 5 and not parts[-1]:
        parts.pop()
    return f"datetime({', '.join(map(str, parts))}, tzinfo=UTC)"


def _line(fields: Sequence[Field], number: int) -> bytes:
    body = {one.name: _made(one, number) for one in fields if number < SAMPLES or not one.is_optional}
    return json.dumps(body, ensure_ascii=False).encode()


def _made(one: Field, number: int) -> Any:
    text = f"{one.column}-{number}"
    made: dict[Kind, Any] = {
        "text": text, "ascii": text, "integer": number, "float": number + 0.5, "decimal": f"{number}.50",
        "boolean": number % 2 == 0, "instant": f"2026-01-01T{9 + number:02}:00:00Z", "date": f"2026-01-0{number}",
        "json": {"number": number}, "epoch_s": NINE + number, "epoch_ms": NINE * 10**3 + number,
        "epoch_us": NINE * 10**6 + number, "epoch_ns": NINE * 10**9 + 1000 * number,
    }  # fmt: skip
    return text[-one.length :] if one.length else made[one.kind]
