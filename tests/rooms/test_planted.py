import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from core.errors import InvalidTransform, SchemaMismatch
from core.transforms.loading import Room, load_aggregates, load_transform, rooms_of
from hubledger.cli.ddl.room import rights_text, room_text
from hubledger.cli.ddl.tables import ENGINES as OF_MIGRATIONS
from tests.fakes.aggregation_engines import aggregation_of
from tests.fakes.engines import ENGINES
from tests.fakes.store import MemoryStore
from tests.fakes.written_modules import written_modules
from tests.rooms import test_room as suite
from tests.rooms.found import lines_of, room_named, samples_of, transform_of
from tests.sql.gates import gates

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

_numbers = count()


@contextmanager
def planted_room(folder: Path, path: str = "transform.py", old: str = "", new: str = "") -> Iterator[Room]:
    """Write the room, with a bug in one of its files, make it importable, and forget it afterwards."""
    name = f"planted_room_{next(_numbers)}"
    with written_modules(folder) as modules:
        modules.write("", f"{name}.__init__")
        modules.write(_planted(TRANSFORM, old, new) if path == "transform.py" else TRANSFORM, f"{name}.transform")
        modules.write(AGGREGATE.replace("PACKAGE", name), f"{name}.aggregates.day")
        for file, text in _files(name).items():
            place = folder / name / file
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(_planted(text, old, new) if file == path else text, encoding="utf-8")
        yield room_named(name)


def _files(name: str) -> Mapping[str, str]:
    row_classes = load_transform(name).row_classes
    aggregates = load_aggregates(row_classes)
    migrations = {f"migrations/{one}/0001_orders.sql": room_text(row_classes, aggregates, one) for one in OF_MIGRATIONS}
    return {**migrations, "permissions.sql": rights_text(row_classes, aggregates), "events.jsonl": SAMPLES}


def _planted(text: str, old: str, new: str) -> str:
    assert old in text, f"no such text, so no bug is planted: {old}"
    return text.replace(old, new, 1) if old else text


Check = Callable[..., None]
FAULTS = (AssertionError, InvalidTransform, SchemaMismatch, sqlite3.OperationalError)
LITE, SERVER = "migrations/sqlite/0001_orders.sql", "migrations/sqlserver/0001_orders.sql"
QUANTITY = "    quantity = body.quantity\n"

# A sentence about the bug: its file, the text and the wrong text, the test that sees it, and a part of its message.
BUGS: dict[str, tuple[str, str, str, Check, str]] = {
    "the clock is read": (
        "transform.py", QUANTITY, "    quantity = int(datetime.now(UTC).timestamp())\n",
        suite.test_a_sample_has_one_outcome, "has two outcomes",
    ),
    "a column is missing on SQLite": (
        LITE, "    customer        TEXT NOT NULL,\n", "",
        suite.test_the_tables_of_a_new_embedded_store_fit_the_classes, "planted_order has no column customer",
    ),
    "a column is missing on SQL Server": (
        SERVER, "    customer        nvarchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,\n", "",
        suite.test_the_t_sql_names_each_table_and_column_that_sqlite_makes, r"lack planted_order\.customer\b",
    ),
    "a table of the aggregate is missing on SQLite": (
        LITE, "CREATE TABLE planted_day_staged", "CREATE TABLE planted_day_stagged",
        suite.test_every_level_has_the_windows_of_the_samples, "no such table: planted_day_staged",
    ),
    "an index is missing on SQLite": (
        LITE, "CREATE INDEX ix_planted_day_source", "CREATE INDEX ix_planted_day_sauce",
        suite.test_no_migration_is_missing, r"migrations/sqlserver lacks:\n[^;]*CREATE INDEX ix_planted_day_source",
    ),
    "a table refuses a sample": (
        LITE, "    customer        TEXT NOT NULL,", "    customer        TEXT NOT NULL CHECK (customer <> 'Ada'),",
        suite.test_rows_are_those_of_the_transform_once_after_a_redelivery_a_replay_and_retries_too,
        r"rows that one pass does not write: \[\]; rows that are missing: .*Line",
    ),
    "T-SQL is misspelt": (
        SERVER, "CREATE TABLE hubledger.planted_line", "CREATE TABEL hubledger.planted_line",
        suite.test_the_t_sql_parses, r"migrations/sqlserver: \w+ 0001 orders: ",
    ),
    "a right is missing for the app": (
        "permissions.sql", "GRANT SELECT, INSERT, UPDATE ON hubledger.planted_order TO hubledger_app;\n",
        "GRANT SELECT, INSERT ON hubledger.planted_order TO hubledger_app;\n",
        suite.test_the_roles_are_granted_what_they_need,
        r"permissions.sql: add GRANT UPDATE ON hubledger\.planted_order TO hubledger_app;",
    ),
    "a bad body raises an unknown error": (
        "transform.py", "except msgspec.DecodeError", "except KeyError",
        suite.test_a_sample_becomes_rows_nothing_or_a_letter_with_a_reason,
        r"events\.jsonl:5: .* raised ValidationError: .*: raise PoisonEvent",
    ),
    "a class has no sample": (
        "events.jsonl", '{"type": "order", "order_id": "1", "customer": "Ada"}\n', "",
        suite.test_some_sample_becomes_a_row_of_each_class, "no sample becomes a Order, Line",
    ),
    "a row depends on the events before it": (
        "transform.py", QUANTITY, "    _seen.append(body.item)\n    quantity = len(_seen)\n",
        suite.test_a_replay_of_the_samples_writes_the_same_rows, "a replay changes the rows of event 1",
    ),
}  # fmt: skip


def run(check: Check, room: Room, caplog: pytest.LogCaptureFixture) -> None:
    rooms = rooms_of(transform_of(room).row_classes)
    store = MemoryStore(rooms=rooms)
    database = aggregation_of(ENGINES["sqlite"](room.folder, rooms))
    given = {"room": room, "store": store, "engine": store, "database": database, "caplog": caplog}
    check(**{name: given[name] for name in check.__code__.co_varnames[: check.__code__.co_argcount]})


# each test but the one with deliveries of Hypothesis
SUITE = [one for name, one in vars(suite).items() if name.startswith("test_") and "any_delivery" not in name]


@pytest.mark.slow
def test_a_sound_room_passes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with planted_room(tmp_path) as room:
        for check in SUITE:
            run(check, room, caplog)


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_is_named_in_plain_words(tmp_path: Path, caplog: pytest.LogCaptureFixture, bug: str) -> None:
    path, old, new, check, words = BUGS[bug]
    if check is suite.test_the_t_sql_parses and not gates():
        pytest.skip("no T-SQL parser is installed: make scriptdom, or pip install sqlfluff")
    with planted_room(tmp_path, path, old, new) as room, pytest.raises(FAULTS, match=words):
        run(check, room, caplog)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("sqlite/0002_orders.sql", "sqlserver/0002_orders.sql"), "migration 0001 is missing"),
        (("sqlite/0001_orders.sql", "sqlserver/0001_order.sql"), "for one engine only"),
    ],
)
def test_a_gap_and_a_difference_in_the_numbers_of_migrations_are_named(
    tmp_path: Path, names: tuple[str, str], words: str
) -> None:
    with planted_room(tmp_path) as room:
        for old, new in zip((LITE, SERVER), names, strict=True):
            (room.folder / old).rename(room.folder / "migrations" / new)
        with pytest.raises(SchemaMismatch, match=words):
            suite.test_both_engines_have_the_same_migrations_from_0001_without_a_gap(room)


def test_the_samples_are_the_events_that_a_demo_publishes(tmp_path: Path) -> None:
    with planted_room(tmp_path) as room:
        bodies = SAMPLES.encode().splitlines()
        (room.folder / "events.jsonl").write_bytes(b"\xef\xbb\xbf" + b"\r\n\r\n".join(bodies) + b"\n")
        assert [each.body for each in samples_of(room)] == bodies
        assert [line.line for line in lines_of(room)] == [1, 3, 5, 7, 9]
