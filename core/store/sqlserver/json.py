"""Write values as JSON for OPENJSON, which decodes escapes; the column refuses a value that is too long."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import orjson

from core.errors import DataRefused
from core.store.columns import day_text, instant_text, instant_texts

PLACES = 10  # decimal places that OPENJSON is asked for


def server_instant_text(moment: datetime) -> str:
    """Return an instant for T-SQL, whose datetime2 has no zone: it is UTC by convention, and the Z is left out."""
    return instant_text(moment)[:-1]


def server_instant_texts(moments: Sequence[datetime]) -> list[str]:
    """Return a column of instants for T-SQL."""
    return [text[:-1] for text in instant_texts(moments)]


def without_zone(value: Any) -> Any:
    """Return an instant's text without its Z; any other value unchanged."""
    return value.removesuffix("Z") if isinstance(value, str) else value


def rows_json(rows: Sequence[Sequence[Any]]) -> str:
    """Return rows as a JSON array of arrays; DataRefused for a value that JSON cannot hold."""
    try:
        return orjson.dumps(rows, default=_written, option=orjson.OPT_PASSTHROUGH_DATETIME).decode()
    except (orjson.JSONEncodeError, ValueError) as error:
        raise DataRefused(f"the rows cannot be written as JSON: {error.__cause__ or error}") from error


def many_json(many: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Return the further parameters of a statement of many as a JSON array of arrays, in the order of the columns."""
    return rows_json([[_sent(name, each[name]) for name in columns] for each in many])


def _sent(name: str, value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return without_zone(value) if name.endswith("_at") else value


def _written(value: object) -> str:
    """Return a value in the form that T-SQL reads; TypeError for a value of any other type."""
    if isinstance(value, Decimal):
        return _decimal_text(value)
    if isinstance(value, datetime):
        return server_instant_text(value)
    if isinstance(value, date):
        return day_text(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _decimal_text(value: Decimal) -> str:
    """Return the exact text of a number; ValueError when the server would round it."""
    text = f"{value:f}"
    if not value.is_finite() or len(text.partition(".")[2].rstrip("0")) > PLACES:
        raise ValueError(f"{text} is not a number with at most {PLACES} decimal places")
    return text
