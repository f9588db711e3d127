import json
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from typing import Annotated, Any, cast
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.events import SequenceNumber, Span
from core.model.rows import COLUMN_TYPES, STATE_LINEAGE, PlacedRow, Row, Text, appended_to, row_table, state_of
from core.settle.partition_store import keys_json
from core.store import columns as store_columns
from core.store.columns import compiled_values, day_of, decoder, instant_of, instant_texts, row_reader, storable
from core.store.script import RowVerb, Step, of_rows
from core.store.sqlite.statements import many_values, rows_text
from core.store.sqlserver.statements import rows_query, rows_values
from examples.home_security.transform import SensorReading
from tests.fakes.builders import reading
from tests.fakes.declared import appended, forgotten

ZONES = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
INSTANTS = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=st.one_of(st.just(UTC), ZONES))  # noqa: DTZ001


@given(st.lists(INSTANTS, max_size=8))
def test_an_instant_is_a_text_in_utc_and_the_same_from_each_engine(moments: list[datetime]) -> None:
    texts = [each.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z") for each in moments]
    assert instant_texts(moments) == [store_columns.instant_text(moment) for moment in moments] == texts
    for moment, text in zip(moments, texts, strict=True):
        assert instant_of(text) == instant_of(moment.astimezone(UTC).replace(tzinfo=None)) == moment
        assert store_columns.instant_or_none(text) == moment
        assert instant_of(text).tzinfo is UTC
    assert store_columns.instant_or_none(None) is None


@given(st.datetimes(timezones=st.none()))
def test_a_time_without_a_zone_is_no_instant(moment: datetime) -> None:
    for text_of in (lambda: store_columns.instant_text(moment), lambda: instant_texts([NOON, moment])):
        with pytest.raises(ValueError, match="has no time zone"):
            text_of()


def test_a_day_is_the_same_from_each_engine() -> None:
    assert day_of("2026-01-02") == day_of(date(2026, 1, 2)) == date(2026, 1, 2)
    assert store_columns.day_text(date(2026, 1, 2)) == "2026-01-02"
    with pytest.raises(ValueError, match="is not a date"):
        store_columns.day_text("2026-01-02")  # type: ignore[arg-type]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_text_loses_its_lone_surrogates_and_nothing_else(text: str) -> None:
    assert storable(text) == text
    assert storable(f"{text}\ud800b\udfff") == f"{text}?b?"


def test_keys_are_texts_of_their_parts_and_a_number_that_is_not_finite_is_no_key() -> None:
    key = ("a", 1, date(2026, 1, 2), datetime(2026, 1, 1, tzinfo=UTC), Decimal("1E+3"))
    given = [key, ("b", float("nan")), (Decimal("1E-4000"),), ("\ud800",), (2**63,), (NAIVE,)]
    assert json.loads(keys_json(given)) == [["a", 1, "2026-01-02", "2026-01-01T00:00:00.000000Z", "1000"]]
    assert store_columns.key_text(Decimal("0.10")) == "0.10"


def test_a_text_of_ascii_is_written_as_it_is_and_one_with_other_letters_is_refused() -> None:
    with forgotten():
        row_class = appended("thing", code=Annotated[str | None, Text(9, ascii=True)], word=Annotated[str, Text(9)])
        values_of = compiled_values(row_class, ("sequence_number",), instant_texts)
        rows: list[Any] = [row_class("a", "ü"), row_class(None, "b"), row_class("7", "c")]
        assert values_of([(1, 0, each) for each in rows], 1, "0", 1) == [(1, "a", "ü"), (1, None, "b"), (1, "7", "c")]
        with pytest.raises(ValueError, match="'ü' has other characters than those of ASCII"):
            values_of([(1, 0, row_class("ü", "a"))], 1, "0", 1)


class Shade(StrEnum):
    RED = "red"


class Old(str, Enum):  # noqa: UP042 - its own text is the name of the member
    RED = "red"


class Level(IntEnum):
    HIGH = 3


NAIVE, NOON, DAY = datetime(2026, 1, 1), datetime(2026, 1, 1, 12, tzinfo=UTC), date(2026, 1, 1)  # noqa: DTZ001
TENTH, NO_NUMBER, LARGE = Decimal("0.1"), Decimal("NaN"), 2**53 + 1
NUMBERS = (1, True, Level.HIGH, 1.0, 0.1, LARGE, 10**400, float("nan"), float("-inf"), TENTH, NO_NUMBER)
GIVEN: tuple[Any, ...] = ("a", "12", "2026-01-01", Shade.RED, Old.RED, *NUMBERS, NAIVE, NOON, DAY, None, b"a", [], {})
KEPT: Mapping[type, list[tuple[Any, Any]]] = {  # of GIVEN, as a column stores it; a database refuses 10**400 itself
    str: [("a", "a"), ("12", "12"), ("2026-01-01", "2026-01-01"), (Shade.RED, "red"), (Old.RED, "red")],
    int: [(1, 1), (True, 1), (Level.HIGH, 3), (LARGE, LARGE), (10**400, 10**400)],
    bool: [(True, True)],
    float: [(1, 1.0), (True, 1.0), (Level.HIGH, 3.0), (1.0, 1.0), (0.1, 0.1)],
    Decimal: [(one, Decimal(one)) for one in (1, True, Level.HIGH, LARGE, 10**400, TENTH)],
    datetime: [(NOON, "2026-01-01T12:00:00.000000Z")],
    date: [(DAY, "2026-01-01")],
}


@dataclass(frozen=True, slots=True)
class Noted:
    """A row of which each test declares the type of the note."""

    note: Any


@pytest.mark.parametrize("kind", COLUMN_TYPES)
def test_a_column_takes_values_of_its_own_type_and_names_the_field_and_its_line_of_every_other(kind: type) -> None:
    assert set(KEPT) == set(COLUMN_TYPES)
    for hint in (kind, kind | None):
        with forgotten():
            values_of = compiled_values(appended("thing", note=hint), (), instant_texts)
            kept, refused = [], []
            for value in GIVEN:
                try:
                    kept.append((value, *values_of([(0, 0, cast(Any, Noted(value)))], 1, "0", 1)[0]))
                except ValueError as error:
                    refused.append(str(error))
        expected = [*KEPT[kind], *([(None, None)] if hint is not kind else [])]
        assert repr(kept) == repr([one for value in GIVEN for one in expected if repr(one[0]) == repr(value)])
        assert all(f": Thing.note is declared {kind.__name__}, and " in one for one in refused), refused
        assert len(kept) + len(refused) == len(GIVEN)


class Unreadable:
    """A value that raises whatever is asked of it."""

    def __repr__(self) -> str:
        raise RecursionError


@pytest.mark.parametrize("kind", COLUMN_TYPES)
def test_a_value_that_raises_when_it_is_read_is_refused_with_its_field(kind: type) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with forgotten():
        values_of = compiled_values(appended("thing", note=kind), (), instant_texts)
        for value in (Unreadable(), deep):
            with pytest.raises(ValueError, match=f"Thing.note is declared {kind.__name__}, and its value "):
                values_of([(0, 0, cast(Any, Noted(value)))], 1, "0", 1)
        with pytest.raises(ValueError, match="a row of Thing cannot be read: AttributeError"):
            values_of([(0, 0, cast(Any, object.__new__(Noted)))], 1, "0", 1)
    while deep:
        (deep,) = deep or ([],)


def test_a_refused_value_is_named_with_the_line_of_its_field() -> None:
    values_of = compiled_values(SensorReading, (), instant_texts)
    lines = Path(cast(str, sys.modules[SensorReading.__module__].__file__)).read_text(encoding="utf-8").splitlines()
    wrong: dict[str, Any] = {"ppm": 0.5, "observed_at": NAIVE}
    for field, value in wrong.items():
        row: Any = replace(reading(), **{field: value})
        with pytest.raises(ValueError, match=rf"home_security/transform.py:\d+: SensorReading\.{field} is") as error:
            values_of([(0, 0, reading()), (1, 0, row)], 1, "0", 1)
        assert lines[int(str(error.value).split(":")[1]) - 1].strip().startswith(f"{field}: ")


def test_a_text_that_is_a_number_of_a_column_is_this_number_and_any_other_is_none() -> None:
    for number in (0, 7, -12, 1_234_567_890_123_456_789, 2**63 - 1, -(2**63)):
        assert store_columns.whole_number(str(number)) == number
    for text in ("", "-", "--1", "1.5", "1e3", " 1", "+1", "٣", "²", str(2**63), "9" * 5_000, "home-7"):
        assert store_columns.whole_number(text) is None


ID = UUID("00000000-0000-0000-0000-000000000001")


@dataclass(frozen=True)
class Leaves:
    at: datetime
    day: date | None
    amount: Decimal | None
    id: UUID
    holds: bool
    body: bytes
    number: SequenceNumber | None


class Struck(msgspec.Struct):
    name: str
    properties: Mapping[str, object]


@dataclass(frozen=True)
class Whole:
    first: int
    span: Span | None
    struck: Struck
    last: int | None = None


def test_a_leaf_is_read_by_its_type_and_null_is_none() -> None:
    leaves = Leaves(NOON, DAY, Decimal("1.50"), ID, True, b"x", SequenceNumber(2**60))
    text = "2026-01-01T12:00:00.000000Z"
    assert decoder(Leaves)((text, "2026-01-01", "1.50", str(ID), 1, memoryview(b"x"), 2**60)) == leaves
    of_a_server = (NOON.replace(tzinfo=None), DAY, Decimal("1.50"), ID.hex, True, b"x", 2**60)
    assert decoder(Leaves)(of_a_server) == leaves
    none = decoder(Leaves)((text, None, None, str(ID), 0, b"", None))
    assert (none.day, none.amount, none.holds, none.number) == (None, None, False, None)


def test_a_value_within_a_value_takes_a_column_for_each_of_its_fields_and_may_be_missing() -> None:
    rows = [(1, 2, 3, "a", '{"k": 7}', 9), (1, None, None, "b", "{}", None)]
    assert store_columns.decoded(Whole, rows) == (
        Whole(1, Span(SequenceNumber(2), SequenceNumber(3)), Struck("a", {"k": 7}), 9),
        Whole(1, None, Struck("b", {}), None),
    )
    with pytest.raises(ValueError, match="Whole has 6 columns, and the row 5"):
        decoder(Whole)((1, 2, 3, "a", "{}"))


LINEAGE = "stream_id INTEGER, partition_id TEXT, sequence_number INTEGER, ordinal INTEGER, commit_number INTEGER"
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


def test_appended_rows_are_written_with_their_whole_lineage_and_each_instant(database: sqlite3.Connection) -> None:
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
