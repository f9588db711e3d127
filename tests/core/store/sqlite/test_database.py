import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from itertools import product
from typing import Any, ClassVar

import pytest

import core.aggregation.tick
import core.store.sqlite.database
from core.errors import CommitOutcomeUnknown, DataRefused, SchemaMismatch, StoreUnavailable
from core.model.rows import appended_to, state_of
from core.store.database import write
from core.store.script import Outcome, Script, Step, of_rows
from core.store.sqlite.database import SqliteDatabase
from examples.home_security.transform import SensorReading
from tests.fakes.aggregation_engines import AggregatingStore, SqliteAggregation, committed, ingest, slice_of
from tests.fakes.builders import commit, keep_letters, partition, reading, settled
from tests.fakes.engines import SqliteEngine
from tests.fakes.runs import HOMES, NOW, opened_run, staged_result, window
from tests.fakes.store import Store


@pytest.fixture
def empty(sqlite: SqliteEngine) -> Iterator[Store]:
    opened = Store(SqliteDatabase(sqlite.path))
    yield opened
    opened.close()


@pytest.fixture
def store(empty: Store) -> Store:
    keep_letters(empty, {0: "a", 1: "b", 2: "c"})
    return empty


def test_a_database_that_another_process_holds_is_unavailable_and_then_usable(sqlite: SqliteEngine) -> None:
    store = Store(SqliteDatabase(sqlite.path, busy_timeout=0.0))
    state = store.read_partition(partition())
    with closing(sqlite3.connect(sqlite.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked"):
            store.commit_batch(commit(state, 0, 0, settled({0: [reading()]})))
        assert store.read_partition(partition()) == state  # readers go on beside a writer
    assert store.commit_batch(commit(state, 0, 0, settled({0: [reading()]}))) == 1
    store.close()
    # times are texts of one length
    assert sqlite.sql("SELECT observed_at FROM sensor_reading") == [("2026-01-01T00:00:00.000000Z",)]
    times = sqlite.sql("SELECT enqueued_at, updated_at FROM event_hub_checkpoint")
    assert times == [("2026-01-01T00:00:00.000000Z", "2026-01-02T00:00:00.000000Z")]


class BusyAtFirst(sqlite3.Connection):
    """A connection whose first look at the columns of a table fails."""

    faults = 1

    def execute(self, text: str, *given: Any) -> sqlite3.Cursor:
        if "pragma_table_info" in text and self.faults:
            self.faults -= 1
            raise sqlite3.OperationalError("database is locked")
        return super().execute(text, *given)


def test_a_connection_whose_columns_cannot_be_read_is_closed_and_the_next_one_is_checked(sqlite: SqliteEngine) -> None:
    factories = (sqlite3.Connection, BusyAtFirst)
    opened = [sqlite3.connect(sqlite.path, isolation_level=None, factory=one) for one in factories]
    left = list(opened)
    database = SqliteDatabase(sqlite.path, connect=left.pop)
    with pytest.raises(StoreUnavailable, match="locked"):
        database.ask("read_commit_numbers")
    assert database.ask("read_commit_numbers") == []
    database.close()
    for each in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            each.execute("SELECT 1")


@appended_to("crate")
@dataclass(frozen=True, slots=True)
class Crate:
    weight: int
    sender: str


@state_of("yard", key=("depot_id",))
@dataclass(frozen=True, slots=True)
class Yard:
    depot_id: str


def test_a_store_without_the_tables_of_the_transform_does_not_open_and_names_every_fault(sqlite: SqliteEngine) -> None:
    database = SqliteDatabase(sqlite.path, needed=(Crate, Yard, SensorReading))
    sqlite.sql("CREATE TABLE crate (WEIGHT INTEGER, colour TEXT NOT NULL, stream_id INTEGER, ordinal INTEGER)")
    sqlite.sql("ALTER TABLE crate ADD COLUMN note TEXT NOT NULL DEFAULT ''")
    for _ in range(2):
        with pytest.raises(SchemaMismatch) as refused:
            database.ask("read_commit_numbers")
        faults = str(refused.value).removeprefix("the tables do not fit the transform: ").split("; ")
        assert faults[:-1] == [
            "crate has no column partition_id",
            "crate has no column commit_number",
            "crate has no column sequence_number",
            "crate has no column sender",
            "crate.colour needs a value, and Crate has no such field",
            "there is no table yard, or the app has no right on it",
        ]
    sqlite.sql("DROP TABLE crate")
    columns = "partition_id TEXT, commit_number INTEGER, sequence_number INTEGER, stream_id INTEGER"
    sqlite.sql(f"CREATE TABLE crate (weight INTEGER, sender TEXT, ordinal INTEGER, {columns})")
    sqlite.sql(f"CREATE TABLE yard (depot_id TEXT PRIMARY KEY, {columns})")
    assert database.ask("read_commit_numbers") == []
    database.close()


def test_a_table_that_is_missing_is_the_stores_fault_and_writes_nothing(sqlite: SqliteEngine, empty: Store) -> None:
    state = empty.read_partition(partition())
    sqlite.sql("DROP TABLE sensor_reading")
    with pytest.raises(StoreUnavailable, match="sensor_reading"):
        empty.commit_batch(commit(state, 0, 0, settled({0: [reading()]})))
    assert sqlite.ledger() == []
    assert empty.read_partition(partition()) == state


@contextmanager
def spoilt_commits(sqlite: SqliteEngine, table: str) -> Iterator[None]:
    sqlite.sql("CREATE TABLE IF NOT EXISTS child (p INTEGER REFERENCES event_stream DEFERRABLE INITIALLY DEFERRED)")
    sqlite.sql(f"CREATE TRIGGER spoil AFTER INSERT ON {table} BEGIN INSERT INTO child VALUES (4711); END")
    yield
    sqlite.sql("DROP TRIGGER spoil")


def test_a_commit_that_fails_at_its_very_end_is_in_doubt(sqlite: SqliteEngine, empty: Store) -> None:
    with spoilt_commits(sqlite, "event_stream"), pytest.raises(StoreUnavailable, match="the commit was not answered"):
        empty.read_partition(partition())
    state = empty.read_partition(partition())
    with spoilt_commits(sqlite, "batch_ledger"), pytest.raises(CommitOutcomeUnknown, match="was not answered"):
        empty.commit_batch(commit(state, 0, 0))
    assert empty.read_partition(partition()) == state
    assert empty.commit_batch(commit(state, 0, 0)) == 1


PLACE = {"stream_id": 1, "partition_id": "0"}
LINEAGE = "stream_id, partition_id, sequence_number, ordinal, commit_number"


class Conflict(Exception):
    """The step touched a different number of rows than expected."""


def counting(**changed: Any) -> Step:
    return Step(
        "count_commit",
        {**PLACE, "known_erasures": 0} | changed,
        expect=1,
        otherwise=Conflict,
        keeps="commit_number",
    )


def run(store: Store, *steps: Step, rehearse: bool = False) -> Outcome:
    return store.database.run(Script("a test", steps), rehearse)


def test_a_script_keeps_a_number_for_later_steps(store: Store, sqlite: SqliteEngine) -> None:
    rows = Step(
        of_rows("append", SensorReading),
        {**PLACE, "commit_number": -1},
        many=[(0, 0, reading()), (0, 1, reading())],
        counts="rows",
    )
    placed = Step(of_rows("select_placed", SensorReading), {**PLACE, "sequence_number": 0}, answers=True)
    rehearsed = run(store, counting(), rows, placed, rehearse=True)
    assert sqlite.sql("SELECT COUNT(*) FROM sensor_reading") == [(0,)]
    assert run(store, counting(), rows, placed) == rehearsed
    assert (rehearsed.kept, len(rehearsed.rows)) == ({"commit_number": 2, "rows": 2}, 2)
    assert sqlite.sql("SELECT commit_number FROM sensor_reading") == [(2,), (2,)]
    letters = Step("find_letters", {**PLACE, "sequence_numbers": "[[0], [2]]"}, answers=True)
    assert run(store, letters, Step("close_gaps", PLACE)).rows == [(0, "waiting", None), (2, "waiting", None)]


def test_a_script_ends_with_the_error_of_the_step_that_touched_too_few(store: Store, sqlite: SqliteEngine) -> None:
    for steps in ((replace(counting(), otherwise=LookupError), counting(partition_id="9")), (counting(stream_id=9),)):
        for rehearse in (False, True):
            with pytest.raises(Conflict):
                run(store, *steps, rehearse=rehearse)
    assert sqlite.sql("SELECT commit_number FROM event_hub_checkpoint") == [(1,)]
    values = {**PLACE, "commit_number": 1}
    none = Step(of_rows("append", SensorReading), values, many=[], counts="rows", expect=0, otherwise=Conflict)
    assert run(store, none).kept == {"rows": 0}
    with pytest.raises(Conflict):
        run(store, replace(none, expect=1))
    write(store.database, "a test", "close_gaps", **PLACE)


@appended_to("measure")
@dataclass(frozen=True, slots=True)
class Measure:
    ratio: float | None = None
    whole: int | None = None
    claim: bool | None = None
    text: str | None = None
    amount: Decimal | None = None
    mixed: int | str | None = None
    image: bytes | None = None


def test_a_number_that_no_column_holds_is_refused_and_never_written_as_null(store: Store, sqlite: SqliteEngine) -> None:
    columns = [field.name for field in fields(Measure)]
    sqlite.sql(f"CREATE TABLE measure ({LINEAGE}, {', '.join(columns)})")

    def append(**given: Any) -> None:
        row = replace(Measure(), **given)
        run(store, Step(of_rows("append", Measure), {**PLACE, "commit_number": 1}, many=[(0, 0, row)]))

    for name, text, kind in product(columns, ("nan", "inf", "-inf"), (float, Decimal)):
        with pytest.raises(DataRefused, match="is not a finite number"):
            append(**{name: kind(text)})
    large: list[dict[str, Any]] = [{"ratio": 10**400}, {"ratio": Decimal("1E+400")}]
    large += [
        {name: Decimal(text)} for name, text in product(("amount", "text", "whole"), ("1E+4000", "1E-4000", "0E-4000"))
    ]
    for given in large:  # too large for a float, or of a text that would fill the memory
        with pytest.raises(DataRefused, match=r"Measure\.\w+ is declared"):
            append(**given)
    assert sqlite.sql("SELECT COUNT(*) FROM measure") == [(0,)]
    append(ratio=1.7976931348623157e308, amount=Decimal("1E+400"))
    assert sqlite.sql("SELECT ratio, amount FROM measure") == [(1.7976931348623157e308, f"1{'0' * 400}")]


class Noting(sqlite3.Connection):
    notes: ClassVar[list[str]] = []

    def execute(self, text: str, *given: Any) -> sqlite3.Cursor:
        if text == "COMMIT":
            self.notes.append({1: "normal", 2: "full"}[super().execute("PRAGMA synchronous").fetchone()[0]])
        if "wal_checkpoint" in text:
            self.notes.append("checkpoint")
        return super().execute(text, *given)


def test_only_the_portions_of_a_run_do_not_wait_for_the_disk(
    sqlite: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loss of power leaves a prefix of the log. Tests of slices show that a run continues from any."""
    numbers, portions = len({slice_of(home) for home in HOMES}), 4
    monkeypatch.setattr(core.aggregation.tick, "PORTION", 1)
    monkeypatch.setattr(core.store.sqlite.database, "CHECKPOINT_AFTER", 4 * portions)  # a portion changes four rows
    engine = SqliteAggregation(sqlite)
    with closing(engine.open()) as other:
        run = opened_run(other)
        staged = staged_result(other, engine, run, [window(home) for home in HOMES])

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(sqlite.path, isolation_level=None, factory=Noting)
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    Noting.notes.clear()
    with closing(AggregatingStore(SqliteDatabase(sqlite.path, connect=connect))) as store:
        ingest(store, [reading()])
        assert committed(store, run, staged, NOW)
        ingest(store, [reading()])
    assert numbers % portions == 0
    assert Noting.notes[1:-2] == [*["normal"] * portions, "checkpoint"] * (numbers // portions)
    assert (Noting.notes[0], Noting.notes[-2:]) == ("full", ["full", "full"])  # events, and the end of the run
