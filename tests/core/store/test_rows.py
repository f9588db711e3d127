"""core/store/sqlite/statements.py: statements built from the fields of a row class, run on a bare database."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum

import pytest

from core.model.rows import STATE_LINEAGE, PlacedRow, appended_to, row_table, state_of
from core.store.columns import row_reader
from core.store.script import RowVerb, Step, of_rows
from core.store.sqlite.statements import many_values, rows_text
from core.store.sqlserver.statements import rows_query, rows_values

LINEAGE = "stream_id INTEGER, partition_id TEXT, sequence_number INTEGER, ordinal INTEGER, commit_number INTEGER"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Colour(StrEnum):
    RED = "red"


@appended_to("seen")
@dataclass(frozen=True, slots=True)
class Seen:
    thing: str
    colour: Colour
    ratio: float
    whole: bool
    image: bytes | None
    seen_at: datetime | None


@state_of("thing", key=("shelf", "thing_id"))
@dataclass(frozen=True, slots=True)
class Thing:
    thing_id: str
    shelf: int
    day: date | None
    moved_at: datetime | None
    whole: bool


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute(f"CREATE TABLE seen ({LINEAGE}, thing, colour, ratio, whole, image, seen_at)")
        connection.execute(
            f"CREATE TABLE thing ({LINEAGE}, thing_id TEXT, shelf INTEGER, day, moved_at, whole,"
            " PRIMARY KEY (shelf, thing_id))"
        )
        yield connection


def put(
    database: sqlite3.Connection, *placed: PlacedRow, stream: int = 1, partition: str = "0", commit: int = 1
) -> None:
    row_class = type(placed[0][2])
    verb: RowVerb = "set" if row_table(row_class).key else "append"
    values = {"stream_id": stream, "partition_id": partition, "commit_number": commit}
    step = Step(of_rows(verb, row_class), many=placed)
    database.executemany(rows_text(of_rows(verb, row_class)), many_values(step, values))


def test_appended_rows_are_written_with_their_whole_lineage(database: sqlite3.Connection) -> None:
    put(database, (7, 2, Seen("a", Colour.RED, 0.5, True, b"\x00", NOON)), stream=3, partition="9", commit=4)
    assert database.execute("SELECT * FROM seen").fetchall() == [
        (3, "9", 7, 2, 4, "a", "red", 0.5, 1, b"\x00", "2026-01-01T12:00:00.000000Z")
    ]


def test_a_server_writes_a_float_of_a_document_with_all_its_digits() -> None:
    text = rows_query(of_rows("retract", Seen)).text
    assert "SELECT t.[thing] AS [thing], t.[colour] AS [colour], CONVERT(varchar(40), t.[ratio], 3) AS [ratio]," in text


@appended_to("moved")
@dataclass(frozen=True, slots=True)
class Moved:
    left_at: datetime
    thing: str
    came_at: datetime
    seen_at: datetime | None


def test_rows_with_several_instants_keep_each_its_own(database: sqlite3.Connection) -> None:
    database.execute(f"CREATE TABLE moved ({LINEAGE}, left_at, thing, came_at, seen_at)")
    hours = [NOON + timedelta(hours=hour) for hour in range(6)]
    put(database, (0, 0, Moved(hours[0], "a", hours[1], None)), (1, 0, Moved(hours[2], "b", hours[3], hours[4])))
    assert database.execute("SELECT sequence_number, left_at, thing, came_at, seen_at FROM moved").fetchall() == [
        (0, "2026-01-01T12:00:00.000000Z", "a", "2026-01-01T13:00:00.000000Z", None),
        (1, "2026-01-01T14:00:00.000000Z", "b", "2026-01-01T15:00:00.000000Z", "2026-01-01T16:00:00.000000Z"),
    ]


def test_states_of_a_key_of_several_columns_stand_apart(database: sqlite3.Connection) -> None:
    things = [Thing("a", 1, None, None, True), Thing("a", 2, None, None, True), Thing("b", 1, None, None, False)]
    put(database, *((number, 0, thing) for number, thing in enumerate(things)))
    found = database.execute(
        rows_text(of_rows("select_states", Thing)), {"keys": json.dumps([[2, "a"], [1, "b"], [3, "a"]])}
    ).fetchall()
    read = row_reader(Thing)
    assert [read(one) for one in found] == [things[1], things[2]]


def test_states_go_to_the_database_by_their_keys_whatever_the_order_of_their_events() -> None:
    """Two partitions that write the same states wait for each other then, and neither of them ends in a deadlock."""
    things = [Thing(name, shelf, None, None, True) for name, shelf in (("b", 1), ("a", 2), ("a", 1), ("b", 1))]
    place = {"stream_id": 1, "partition_id": "0", "commit_number": 1}
    for rows in (things, things[::-1]):
        placed = [(number, 0, thing) for number, thing in enumerate(rows)]
        embedded = many_values(Step(of_rows("set", Thing), many=placed), place)
        names = ("shelf", "thing_id")
        places = [(*STATE_LINEAGE, *row_table(Thing).columns).index(name) for name in names]
        assert [tuple(each[one] for one in places) for each in embedded] == [(1, "a"), (1, "b"), (2, "a")]
        sent = rows_values(Thing)(placed, 1, "0", 1)
        assert [(shelf, thing_id) for _, thing_id, shelf, *_ in sent] == [(1, "a"), (1, "b"), (2, "a")]


@state_of("word", key=("order",))
@dataclass(frozen=True, slots=True)
class Word:
    order: str
    table: Decimal
    select: Decimal | None


def test_a_field_may_be_named_as_a_keyword_and_a_decimal_keeps_every_digit(database: sqlite3.Connection) -> None:
    database.execute(f'CREATE TABLE word ({LINEAGE}, "order" TEXT PRIMARY KEY, "table" TEXT, "select" TEXT) STRICT')
    words = [Word("a", Decimal("0.10"), None), Word("b", Decimal("-9999999999999999999.0000000001"), Decimal("1E+3"))]
    for number in range(2):
        put(database, *((number, 0, word) for word in words))
    found = database.execute(rows_text(of_rows("select_states", Word)), {"keys": json.dumps([["a"], ["b"]])}).fetchall()
    assert [row_reader(Word)(one) for one in found] == words
    text = rows_query(of_rows("set", Word)).text
    assert "t.[order] = r.[order] COLLATE" in text
    assert "[table] decimal(38, 10) '$[2]'" in text


def test_a_row_of_database_values_reads_back_as_it_was_written() -> None:
    values = ("a", 1, "2026-01-02", "2026-01-01T12:00:00.000000Z", 1)
    assert row_reader(Thing)(values) == Thing("a", 1, date(2026, 1, 2), NOON, True)
    assert row_reader(Thing)(("a", 1, None, None, 0)) == Thing("a", 1, None, None, False)
    assert row_reader(Thing)(values).whole is True  # type: ignore[attr-defined]
    of_a_server = ("a", 1, date(2026, 1, 2), NOON.replace(tzinfo=None), True)
    assert row_reader(Thing)(of_a_server) == row_reader(Thing)(values)
