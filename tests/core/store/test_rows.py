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

from core.model.rows import STATE_LINEAGE, PlacedRow, Row, appended_to, row_table, state_of
from core.store.columns import row_reader
from core.store.script import RowVerb, Step, of_rows
from core.store.sqlite.statements import many_values, rows_text
from core.store.sqlserver.statements import rows_query, rows_values

LINEAGE = "stream_id INTEGER, partition_id TEXT, sequence_number INTEGER, ordinal INTEGER, commit_number INTEGER"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOURS = [NOON + timedelta(hours=hour) for hour in range(5)]
TEXTS = [f"2026-01-01T{hour}:00:00.000000Z" for hour in range(12, 17)]


class Colour(StrEnum):
    RED = "red"


@appended_to("seen")
@dataclass(frozen=True, slots=True)
class Seen:
    left_at: datetime
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


@state_of("word", key=("order",))
@dataclass(frozen=True, slots=True)
class Word:
    order: str
    table: Decimal
    select: Decimal | None


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute(f"CREATE TABLE seen ({LINEAGE}, left_at, thing, colour, ratio, whole, image, seen_at)")
        columns = "thing_id TEXT, shelf INTEGER, day, moved_at, whole, PRIMARY KEY (shelf, thing_id)"
        connection.execute(f"CREATE TABLE thing ({LINEAGE}, {columns})")
        connection.execute(
            f'CREATE TABLE word ({LINEAGE}, "order" TEXT PRIMARY KEY, "table" TEXT, "select" TEXT) STRICT'
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


def states(database: sqlite3.Connection, row_class: type[Row], *keys: list[object]) -> list[Row]:
    found = database.execute(rows_text(of_rows("select_states", row_class)), {"keys": json.dumps(keys)})
    return [row_reader(row_class)(one) for one in found]


def test_appended_rows_are_written_with_their_whole_lineage_and_each_of_their_instants(
    database: sqlite3.Connection,
) -> None:
    rows = [
        Seen(HOURS[0], "a", Colour.RED, 0.5, True, b"\x00", HOURS[1]),
        Seen(HOURS[2], "b", Colour.RED, 1.0, False, None, None),
    ]
    put(database, *((7 + at, 2, row) for at, row in enumerate(rows)), stream=3, partition="9", commit=4)
    assert database.execute("SELECT * FROM seen").fetchall() == [
        (3, "9", 7, 2, 4, TEXTS[0], "a", "red", 0.5, 1, b"\x00", TEXTS[1]),
        (3, "9", 8, 2, 4, TEXTS[2], "b", "red", 1.0, 0, None, None),
    ]


def test_a_server_writes_a_float_of_a_document_with_all_its_digits() -> None:
    text = rows_query(of_rows("retract", Seen)).text
    assert "t.[colour] AS [colour], CONVERT(varchar(40), t.[ratio], 3) AS [ratio]," in text


def test_states_of_a_key_of_several_columns_stand_apart(database: sqlite3.Connection) -> None:
    things = [Thing("a", 1, None, None, True), Thing("a", 2, None, None, True), Thing("b", 1, None, None, False)]
    put(database, *((number, 0, thing) for number, thing in enumerate(things)))
    assert states(database, Thing, [2, "a"], [1, "b"], [3, "a"]) == [things[1], things[2]]


def test_states_go_to_the_database_by_their_keys_whatever_the_order_of_their_events() -> None:
    """Two partitions that write the same states wait for each other then, and neither of them ends in a deadlock."""
    things = [Thing(name, shelf, None, None, True) for name, shelf in (("b", 1), ("a", 2), ("a", 1), ("b", 1))]
    place = {"stream_id": 1, "partition_id": "0", "commit_number": 1}
    for rows in (things, things[::-1]):
        placed = [(number, 0, thing) for number, thing in enumerate(rows)]
        embedded = many_values(Step(of_rows("set", Thing), many=placed), place)
        places = [(*STATE_LINEAGE, *row_table(Thing).columns).index(name) for name in ("shelf", "thing_id")]
        assert [tuple(each[one] for one in places) for each in embedded] == [(1, "a"), (1, "b"), (2, "a")]
        sent = rows_values(Thing)(placed, 1, "0", 1)
        assert [(shelf, thing_id) for _, thing_id, shelf, *_ in sent] == [(1, "a"), (1, "b"), (2, "a")]


def test_a_field_may_be_named_as_a_keyword_and_a_decimal_keeps_every_digit(database: sqlite3.Connection) -> None:
    words = [Word("a", Decimal("0.10"), None), Word("b", Decimal("-9999999999999999999.0000000001"), Decimal("1E+3"))]
    for number in range(2):
        put(database, *((number, 0, word) for word in words))
    assert states(database, Word, ["a"], ["b"]) == words
    text = rows_query(of_rows("set", Word)).text
    assert "t.[order] = r.[order] COLLATE" in text
    assert "[table] decimal(38, 10) '$[2]'" in text


def test_a_row_of_database_values_reads_back_as_it_was_written() -> None:
    values = ("a", 1, "2026-01-02", TEXTS[0], 1)
    of_a_server = ("a", 1, date(2026, 1, 2), NOON.replace(tzinfo=None), True)
    assert row_reader(Thing)(values) == row_reader(Thing)(of_a_server) == Thing("a", 1, date(2026, 1, 2), NOON, True)
    assert row_reader(Thing)(("a", 1, None, None, 0)) == Thing("a", 1, None, None, False)
    assert row_reader(Thing)(values).whole is True  # type: ignore[attr-defined]
