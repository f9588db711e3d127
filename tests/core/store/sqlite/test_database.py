"""core/store/sqlite/database.py: what only the embedded engine does; the rest is in tests/contract."""

import gc
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from itertools import product
from typing import Any

import pytest

from core.errors import CommitOutcomeUnknown, DataRefused, SchemaMismatch, StoreUnavailable
from core.model.rows import appended_to, state_of
from core.store.database import write
from core.store.script import Outcome, Script, Step, of_rows
from core.store.sqlite.database import SqliteDatabase
from examples.home_security.transform import SensorReading
from tests.fakes.builders import commit, keep_letters, partition, reading, settled
from tests.fakes.engines import SqliteEngine
from tests.fakes.store import Store


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


class BusyAtFirst(sqlite3.Connection):
    """A connection whose first look at the columns of a table fails."""

    faults = 1

    def execute(self, text: str, *given: Any) -> sqlite3.Cursor:
        if "pragma_table_info" in text and self.faults:
            self.faults -= 1
            raise sqlite3.OperationalError("database is locked")
        return super().execute(text, *given)


def test_a_connection_whose_columns_could_not_be_read_is_closed_and_the_next_one_is_checked(
    sqlite: SqliteEngine,
) -> None:
    opened = [
        sqlite3.connect(sqlite.path, isolation_level=None, factory=one) for one in (sqlite3.Connection, BusyAtFirst)
    ]
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


def test_a_table_that_is_missing_is_the_stores_fault_and_writes_nothing(sqlite: SqliteEngine) -> None:
    store = sqlite.open()
    state = store.read_partition(partition())
    sqlite.sql("DROP TABLE sensor_reading")
    with pytest.raises(StoreUnavailable, match="sensor_reading"):
        store.commit_batch(commit(state, 0, 0, settled({0: [reading()]})))
    assert sqlite.ledger() == []
    assert store.read_partition(partition()) == state
    store.close()


def test_times_are_stored_as_texts_of_one_length(sqlite: SqliteEngine) -> None:
    store = sqlite.open()
    store.commit_batch(commit(store.read_partition(partition()), 0, 0, settled({0: [reading()]})))
    store.close()
    assert sqlite.sql("SELECT observed_at FROM sensor_reading") == [("2026-01-01T00:00:00.000000Z",)]
    assert sqlite.sql("SELECT enqueued_at, updated_at FROM event_hub_checkpoint") == [
        ("2026-01-01T00:00:00.000000Z", "2026-01-02T00:00:00.000000Z")
    ]


@contextmanager
def spoilt_commits(sqlite: SqliteEngine, table: str) -> Iterator[None]:
    """Let every commit that inserts into a table fail at its very end."""
    sqlite.sql("CREATE TABLE child (parent INTEGER REFERENCES event_stream DEFERRABLE INITIALLY DEFERRED)")
    sqlite.sql(f"CREATE TRIGGER spoil AFTER INSERT ON {table} BEGIN INSERT INTO child VALUES (4711); END")
    yield
    sqlite.sql("DROP TRIGGER spoil")


def test_a_commit_that_fails_at_its_very_end_is_in_doubt_and_the_store_goes_on(sqlite: SqliteEngine) -> None:
    store = sqlite.open()
    state = store.read_partition(partition())
    with (
        spoilt_commits(sqlite, "batch_ledger"),
        pytest.raises(CommitOutcomeUnknown, match="the commit was not answered"),
    ):
        store.commit_batch(commit(state, 0, 0))
    assert store.read_partition(partition()) == state
    assert store.commit_batch(commit(state, 0, 0)) == 1
    store.close()


def test_a_script_that_may_repeat_is_in_no_doubt_when_its_commit_fails(sqlite: SqliteEngine) -> None:
    store = sqlite.open()
    with spoilt_commits(sqlite, "event_stream"), pytest.raises(StoreUnavailable, match="the commit was not answered"):
        store.read_partition(partition())
    assert store.read_partition(partition()).checkpoint is None
    store.close()


PLACE = {"stream_id": 1, "partition_id": "0"}
LINEAGE = "stream_id, partition_id, sequence_number, ordinal, commit_number"


class Conflict(Exception):
    """The step touched a different number of rows than expected."""


class TestAScript:
    @pytest.fixture
    def store(self, sqlite: SqliteEngine) -> Iterator[Store]:
        """Over a partition with one commit and three waiting letters."""
        opened = sqlite.open()
        keep_letters(opened, {0: "a", 1: "b", 2: "c"})
        yield opened
        opened.close()

    def test_keeps_a_number_as_a_parameter_of_the_steps_after_it(self, store: Store, sqlite: SqliteEngine) -> None:
        count = Step("count_commit", PLACE, expect=1, otherwise=Conflict, keeps="commit_number")
        placed = [(0, 0, reading()), (0, 1, reading())]
        rows = Step(of_rows("append", SensorReading), {**PLACE, "commit_number": -1}, many=placed, counts="rows")
        assert store.database.run(Script("a test", (count, rows))) == Outcome({"rows": 2, "commit_number": 2}, [])
        assert sqlite.sql("SELECT commit_number FROM sensor_reading") == [(2,), (2,)]

    def test_counts_nothing_for_a_step_of_many_that_has_none_and_expects_none(self, store: Store) -> None:
        none = Step(
            of_rows("append", SensorReading),
            {**PLACE, "commit_number": 1},
            many=[],
            counts="rows",
            expect=0,
            otherwise=Conflict,
        )
        assert store.database.run(Script("a test", (none,))).kept == {"rows": 0}
        with pytest.raises(Conflict):
            store.database.run(Script("a test", (replace(none, expect=1),)))

    def test_ends_with_the_error_of_the_step_that_touched_too_few_and_writes_nothing(
        self, store: Store, sqlite: SqliteEngine
    ) -> None:
        count = Step("count_commit", PLACE, expect=1, otherwise=LookupError, keeps="commit_number")
        elsewhere = Step("count_commit", {**PLACE, "partition_id": "9"}, expect=1, otherwise=Conflict, keeps="other")
        with pytest.raises(Conflict):
            store.database.run(Script("a test", (count, elsewhere)))
        assert sqlite.sql("SELECT commit_number FROM event_hub_checkpoint") == [(1,)]

    def test_answers_with_the_rows_of_the_step_that_answers(self, store: Store) -> None:
        letters = Step("find_letters", {**PLACE, "sequence_numbers": "[[0], [2]]"}, answers=True)
        steps = (letters, Step("close_gaps", PLACE))
        assert store.database.run(Script("a test", steps)).rows == [(0, "waiting", None), (2, "waiting", None)]

    def test_that_is_rehearsed_answers_and_keeps_the_same_and_writes_nothing(
        self, store: Store, sqlite: SqliteEngine
    ) -> None:
        steps = (
            Step("count_commit", PLACE, expect=1, otherwise=Conflict, keeps="commit_number"),
            Step(of_rows("append", SensorReading), PLACE, many=[(0, 0, reading())], counts="rows"),
            Step(of_rows("select_placed", SensorReading), {**PLACE, "sequence_number": 0}, answers=True),
        )
        rehearsed = store.database.run(Script("a test", steps), rehearse=True)
        assert sqlite.sql("SELECT COUNT(*) FROM sensor_reading") == [(0,)]
        assert store.database.run(Script("a test", steps)) == rehearsed
        assert (rehearsed.kept, len(rehearsed.rows)) == ({"commit_number": 2, "rows": 1}, 1)

    def test_that_is_rehearsed_ends_with_the_error_of_its_step(self, store: Store) -> None:
        elsewhere = Step("count_commit", {**PLACE, "partition_id": "9"}, expect=1, otherwise=Conflict, keeps="number")
        with pytest.raises(Conflict):
            store.database.run(Script("a test", (elsewhere,)), rehearse=True)
        write(store.database, "a test", "close_gaps", **PLACE)

    def test_refuses_a_number_that_is_not_finite_in_any_column_and_never_writes_null(
        self, store: Store, sqlite: SqliteEngine
    ) -> None:
        columns = [field.name for field in fields(Measure)]
        sqlite.sql(f"CREATE TABLE measure ({LINEAGE}, {', '.join(columns)})")
        for name, text in product(columns, ("nan", "inf", "-inf")):
            for number in (float(text), Decimal(text)):
                given: dict[str, Any] = {name: number}
                row = replace(Measure(), **given)
                step = Step(of_rows("append", Measure), {**PLACE, "commit_number": 1}, many=[(0, 0, row)])
                with pytest.raises(DataRefused, match="is not a finite number"):
                    store.database.run(Script("a test", (step,)))
        assert sqlite.sql("SELECT COUNT(*) FROM measure") == [(0,)]

    def test_refuses_a_number_that_is_too_large_for_a_float_or_whose_text_would_fill_the_memory(
        self, store: Store, sqlite: SqliteEngine
    ) -> None:
        sqlite.sql(f"CREATE TABLE measure ({LINEAGE}, {', '.join(field.name for field in fields(Measure))})")
        large: list[dict[str, Any]] = [{"ratio": 10**400}, {"ratio": Decimal("1E+400")}]
        for name, text in product(("amount", "text", "whole"), ("1E+4000", "1E-4000", "0E-4000")):
            large.append({name: Decimal(text)})
        for given in large:
            step = Step(
                of_rows("append", Measure), {**PLACE, "commit_number": 1}, many=[(0, 0, replace(Measure(), **given))]
            )
            with pytest.raises(DataRefused, match=r"Measure\.\w+ is declared"):
                store.database.run(Script("a test", (step,)))
        row = replace(Measure(), ratio=1.7976931348623157e308, amount=Decimal("1E+400"))
        step = Step(of_rows("append", Measure), {**PLACE, "commit_number": 1}, many=[(0, 0, row)])
        store.database.run(Script("a test", (step,)))
        assert sqlite.sql("SELECT ratio, amount FROM measure") == [(1.7976931348623157e308, f"1{'0' * 400}")]


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


def test_a_database_that_nobody_holds_is_freed(sqlite: SqliteEngine) -> None:
    with closing(sqlite3.connect(sqlite.path, isolation_level=None)) as connection:
        database = SqliteDatabase(sqlite.path, connect=lambda: connection)
        Store(database).read_partition(partition())
        held = weakref.ref(database)
        del database
        gc.collect()
        assert held() is None
