"""A room that a test writes: orders and their lines, with tables from its classes; a bug can be planted in any file."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from core.transforms.loading import Room, load_aggregates, load_transform
from hubledger.cli.ddl.room import rights_text, room_text
from hubledger.cli.ddl.tables import ENGINES
from tests.fakes.written_modules import written_modules
from tests.rooms.found import room_named

TRANSFORM = """
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import msgspec
from msgspec import Struct

from core.errors import PoisonEvent
from core.model.rows import ReferenceKey, Text, appended_to, state_of

VERSION = "planted/1"
_seen: list[str] = []


@state_of("planted_order", key=("order_id",))
@dataclass(frozen=True, slots=True)
class Order:
    order_id: Annotated[str, Text(20)]
    customer: Annotated[str, Text(40)]


@appended_to("planted_line")
@dataclass(frozen=True, slots=True)
class Line:
    order_id: Annotated[str, Text(20)]
    item: Annotated[str, Text(40)]
    quantity: int
    added_at: datetime


class _Order(Struct, tag="order"):
    order_id: str
    customer: str


class _Line(Struct, tag="line"):
    order_id: str
    item: str
    quantity: int
    added_at: datetime


def references(event):
    body = _decode(event.body)
    return (ReferenceKey(Order, (body.order_id,)),) if isinstance(body, _Line) else ()


def transform(event, references):
    body = _decode(event.body)
    if isinstance(body, _Order):
        return (Order(body.order_id, body.customer),)
    references.get(Order, body.order_id)
    quantity = body.quantity
    return (Line(body.order_id, body.item, quantity, body.added_at.astimezone(UTC)),)


def _decode(body):
    try:
        return msgspec.json.decode(body, type=_Order | _Line)
    except msgspec.DecodeError as error:
        raise PoisonEvent(str(error)) from error
"""

AGGREGATE = """
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from hubledger import Count, Key, Sum, aggregate_of
from PACKAGE.transform import Line


@aggregate_of(Line, "planted_day", at="added_at", window=timedelta(days=1))
@dataclass(frozen=True, slots=True)
class Day:
    order_id: Annotated[str, Key(20)]
    window_start: datetime
    lines: Annotated[int, Count()]
    quantity: Annotated[int, Sum("quantity")]
"""

SAMPLES = """
{"type": "order", "order_id": "1", "customer": "Ada"}
{"type": "line", "order_id": "1", "item": "nails", "quantity": 500, "added_at": "2026-03-14T12:00:00Z"}
{"type": "line", "order_id": "1", "item": "hammer", "quantity": 1, "added_at": "2026-03-15T12:00:00Z"}
{"type": "line", "order_id": "2", "item": "hammer", "quantity": 1, "added_at": "2026-03-15T12:00:00Z"}
{"type": "line", "order_id": "1", "item": "hammer"}
""".lstrip()

SQL_WORDS = {"order_id": "group", "customer": "user", "quantity": "select", "added_at": "index"}
_numbers = count()


@contextmanager
def planted_room(
    folder: Path, path: str = "transform.py", old: str = "", new: str = "", names: Mapping[str, str] | None = None
) -> Iterator[Room]:
    """Write the room, with a bug in one of its files, make it importable, and forget it afterwards.

    `names` are other names of its fields.
    """
    name = f"planted_room_{next(_numbers)}"
    transform, aggregate, samples = (_renamed(text, names or {}) for text in (TRANSFORM, AGGREGATE, SAMPLES))
    with written_modules(folder) as modules:
        modules.write("", f"{name}.__init__")
        modules.write(_planted(transform, old, new) if path == "transform.py" else transform, f"{name}.transform")
        modules.write(aggregate.replace("PACKAGE", name), f"{name}.aggregates.day")
        for file, text in _files(name, samples).items():
            place = folder / name / file
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(_planted(text, old, new) if file == path else text, encoding="utf-8")
        yield room_named(name)


def _renamed(text: str, names: Mapping[str, str]) -> str:
    return re.sub(r"\w+", lambda found: names.get(found[0], found[0]), text)


def _files(name: str, samples: str) -> Mapping[str, str]:
    row_classes = load_transform(name).row_classes
    aggregates = load_aggregates(row_classes)
    migrations = {f"migrations/{one}/0001_orders.sql": room_text(row_classes, aggregates, one) for one in ENGINES}
    return {**migrations, "permissions.sql": rights_text(row_classes, aggregates), "events.jsonl": samples}


def _planted(text: str, old: str, new: str) -> str:
    assert old in text, f"no such text, so no bug is planted: {old}"
    return text.replace(old, new, 1) if old else text
