"""The suite itself: a sound room passes, and each bug that is planted in it is named in plain words."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import InvalidTransform, SchemaMismatch
from core.transforms.loading import Room, rooms_of
from tests.fakes.aggregation_engines import aggregation_of
from tests.fakes.engines import ENGINES
from tests.fakes.memory_store import MemoryStore
from tests.rooms import test_aggregates as aggregates
from tests.rooms import test_contract as contract
from tests.rooms import test_samples as samples
from tests.rooms import test_tables as tables
from tests.rooms.found import lines_of, samples_of, transform_of
from tests.rooms.planted import SAMPLES, SQL_WORDS, planted_room
from tests.sql.gates import gates

Check = Callable[..., None]
FAULTS = (AssertionError, InvalidTransform, SchemaMismatch, sqlite3.OperationalError)
LITE, SERVER = "migrations/sqlite/0001_orders.sql", "migrations/sqlserver/0001_orders.sql"
QUANTITY = "    quantity = body.quantity\n"

# A sentence about the bug: its file, the text and the wrong text, the test that sees it, and a part of its message.
BUGS: dict[str, tuple[str, str, str, Check, str]] = {
    "the clock is read": (
        "transform.py", QUANTITY, "    quantity = int(datetime.now(UTC).timestamp())\n",
        samples.test_a_sample_has_one_outcome, "has two outcomes",
    ),
    "a column is missing on SQLite": (
        LITE, "    customer        TEXT NOT NULL,\n", "",
        tables.test_the_tables_of_a_new_embedded_store_fit_the_classes, "planted_order has no column customer",
    ),
    "a column is missing on SQL Server": (
        SERVER, "    customer        nvarchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,\n", "",
        tables.test_the_t_sql_names_each_table_and_column_that_sqlite_makes, r"lack planted_order\.customer\b",
    ),
    "a table of the aggregate is missing on SQLite": (
        LITE, "CREATE TABLE planted_day_staged", "CREATE TABLE planted_day_stagged",
        aggregates.test_every_level_has_the_windows_of_the_samples, "no such table: planted_day_staged",
    ),
    "a table is missing on SQL Server": (
        SERVER, "CREATE TABLE hubledger.planted_line (", "CREATE TABLE hubledger.planted_lines (",
        tables.test_the_t_sql_names_each_table_and_column_that_sqlite_makes, r"lack planted_line\.",
    ),
    "an index is missing on SQLite": (
        LITE, "CREATE INDEX ix_planted_day_source", "CREATE INDEX ix_planted_day_sauce",
        tables.test_no_migration_is_missing, r"migrations/sqlserver lacks:\n[^;]*CREATE INDEX ix_planted_day_source",
    ),
    "a column changes values on SQLite": (
        LITE, "quantity        INTEGER", "quantity        TEXT",
        tables.test_the_tables_of_a_new_embedded_store_fit_the_classes, "planted_line.quantity is TEXT",
    ),
    "a table refuses a sample": (
        LITE, "    customer        TEXT NOT NULL,", "    customer        TEXT NOT NULL CHECK (customer <> 'Ada'),",
        contract.test_rows_come_back_as_the_transform_made_them_and_each_event_is_counted_once,
        r"rows that one pass does not write: \[\]; rows that are missing: .*Line",
    ),
    "T-SQL is misspelt": (
        SERVER, "CREATE TABLE hubledger.planted_line", "CREATE TABEL hubledger.planted_line",
        tables.test_the_t_sql_parses, r"migrations/sqlserver: \w+ 0001 orders: ",
    ),
    "a right is missing for the app": (
        "permissions.sql", "GRANT SELECT, INSERT, UPDATE ON hubledger.planted_order TO hubledger_app;\n",
        "GRANT SELECT, INSERT ON hubledger.planted_order TO hubledger_app;\n",
        tables.test_the_roles_are_granted_what_they_need,
        r"permissions.sql: add GRANT UPDATE ON hubledger\.planted_order TO hubledger_app;",
    ),
    "a right is missing for the jobs": (
        "permissions.sql", "GRANT SELECT, INSERT ON hubledger.planted_day_staged TO hubledger_job;\n", "",
        tables.test_the_roles_are_granted_what_they_need,
        r"add GRANT INSERT ON hubledger\.planted_day_staged TO hubledger_job;",
    ),
    "a bad body raises an unknown error": (
        "transform.py", "except msgspec.DecodeError", "except KeyError",
        samples.test_a_sample_becomes_rows_nothing_or_a_letter_with_a_reason,
        r"events\.jsonl:5: .* raised ValidationError: .*: raise PoisonEvent",
    ),
    "a class has no sample": (
        "events.jsonl", '{"type": "order", "order_id": "1", "customer": "Ada"}\n', "",
        samples.test_some_sample_becomes_a_row_of_each_class, "no sample becomes a Order, Line",
    ),
    "a row depends on the process": (
        "transform.py", QUANTITY, "    quantity = hash(body.item)\n",
        samples.test_a_sample_has_one_outcome, "has two outcomes",
    ),
    "a row depends on the events before it": (
        "transform.py", QUANTITY, "    _seen.append(body.item)\n    quantity = len(_seen)\n",
        samples.test_a_replay_of_the_samples_writes_the_same_rows, "a replay changes the rows of event 1",
    ),
}  # fmt: skip


def run(check: Check, room: Room, caplog: pytest.LogCaptureFixture) -> None:
    """Run a test of the suite for a room, with SQLite in memory."""
    rooms = rooms_of(transform_of(room).row_classes)
    store = MemoryStore(rooms=rooms)
    database = aggregation_of(ENGINES["sqlite"](room.folder, rooms))
    given = {"room": room, "store": store, "engine": store, "database": database, "caplog": caplog}
    check(**{name: given[name] for name in check.__code__.co_varnames[: check.__code__.co_argcount]})


SUITE = [
    one
    for module in (tables, samples, contract, aggregates)
    for name, one in vars(module).items()
    if name.startswith("test_") and one.__module__ == module.__name__
]


@pytest.mark.slow
@pytest.mark.parametrize("names", [{}, SQL_WORDS], ids=["plain", "words of SQL"])
def test_a_sound_room_passes(tmp_path: Path, caplog: pytest.LogCaptureFixture, names: dict[str, str]) -> None:
    with planted_room(tmp_path, names=names) as room:
        for check in SUITE:
            run(check, room, caplog)


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_is_named_in_plain_words(tmp_path: Path, caplog: pytest.LogCaptureFixture, bug: str) -> None:
    path, old, new, check, words = BUGS[bug]
    if check is tables.test_the_t_sql_parses and not gates():
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
            tables.test_both_engines_have_the_same_migrations_from_0001_without_a_gap(room)


def test_the_samples_are_the_events_that_a_demo_publishes(tmp_path: Path) -> None:
    with planted_room(tmp_path) as room:
        bodies = SAMPLES.encode().splitlines()
        (room.folder / "events.jsonl").write_bytes(b"\xef\xbb\xbf" + b"\r\n\r\n".join(bodies) + b"\n")
        assert samples_of(room) == bodies
        assert [line.number for line in lines_of(room)] == [1, 3, 5, 7, 9]
