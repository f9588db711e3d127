"""The body of an event as JSON: a row that changed, from change event streaming (CES) of SQL Server 2025 and Azure SQL.

Beside the columns of the row, the JSON has `ces_committed_at`, `ces_operation` (INS, UPD or DEL) and `ces_table`. A row
that was deleted has its old values, or only its key where the stream has no old values.
"""

from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

import msgspec
from msgspec import Struct

from hubledger import Event, PoisonEvent, fault_of_body

ZONE = "Z"  # of a datetime, a datetime2 and a smalldatetime, which have none in the database
_BITS = {"0": False, "1": True, "false": False, "true": True}
_OF_TYPE: dict[str, Any] = {
    **dict.fromkeys(("bigint", "int", "smallint", "tinyint"), int),
    **dict.fromkeys(("decimal", "numeric", "money", "smallmoney"), Decimal),
    **dict.fromkeys(("float", "real"), float),
    **dict.fromkeys(("datetime", "datetime2", "smalldatetime"), lambda text: text.replace(" ", "T") + ZONE),
    "datetimeoffset": lambda text: text.replace(" ", "T", 1).replace(" ", ""),
    "bit": lambda text: _BITS[text.lower()],
}


class Source(Struct):
    schema: str
    tbl: str
    cols: list[dict[str, Any]]
    pkkey: list[dict[str, Any]] = []


class Change(Struct):
    eventsource: Source
    eventrow: dict[str, str | None]


class Envelope(Struct):
    type: Literal["com.microsoft.SQL.CES.DML.V1"]
    operation: Literal["INS", "UPD", "DEL"]
    time: datetime
    data: str  # the JSON of the change, or of a part of it
    segmentindex: int = 0  # of a whole change 0, and 1 in the preview of 2025
    finalsegment: bool = True


_envelope, _change = msgspec.json.Decoder(Envelope).decode, msgspec.json.Decoder(Change).decode
_row, _encode = msgspec.json.Decoder(dict[str, Any]).decode, msgspec.json.Encoder(decimal_format="number").encode


def json_of(event: Event) -> bytes:
    """Return the JSON of a body. Raises PoisonEvent."""
    if not event.body:
        raise PoisonEvent("the body is empty")
    try:
        envelope = _envelope(event.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise PoisonEvent(f"the body is no change event: {fault_of_body(event.body, error)}") from error
    try:
        change = _change(envelope.data)
        source, rows = change.eventsource, change.eventrow
        kinds = {each["name"]: each["type"].partition("(")[0].lower() for each in source.cols}
        values = {each["columnname"]: each["value"] for each in source.pkkey}
        values |= _row(rows["current"] or "{}") or _row(rows["old"] or "{}")
        row = {name: _value(value, kinds.get(name, "")) for name, value in values.items()}
    except (msgspec.MsgspecError, ArithmeticError, AttributeError, LookupError, ValueError, RecursionError) as error:
        if envelope.segmentindex or not envelope.finalsegment:
            raise PoisonEvent("the event is a part of a change: raise @max_message_size_kb of its group") from error
        raise PoisonEvent(f"the data of the change event cannot be read: {error!r}") from error
    about = {"ces_committed_at": envelope.time, "ces_operation": envelope.operation}
    return _encode({**about, "ces_table": f"{source.schema}.{source.tbl}", **row})


def _value(value: Any, kind: str) -> Any:
    """Return a value in the type of its column. CES writes each one as a text."""
    return _OF_TYPE[kind](value) if isinstance(value, str) and kind in _OF_TYPE else value
