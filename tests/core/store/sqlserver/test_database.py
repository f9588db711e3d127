"""core/store/sqlserver/database.py before a driver that fails on demand; what a real server does is in tests/sql."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from core.aggregation.store import Aggregations
from core.errors import (
    CheckpointConflict,
    CommitOutcomeUnknown,
    DataRefused,
    LetterConflict,
    SchemaMismatch,
    StoreMisconfigured,
    StoreUnavailable,
    StoreUnreachable,
    TaskConflict,
)
from core.ingest.ingest import Ingestion, IngestReport, ingest_batch
from core.model.commits import BatchCommit
from core.model.events import Event, EventBatch, SequenceNumber
from core.model.letters import LetterClaim
from core.model.ports import Clock
from core.model.rows import ReferenceKey, Row, row_table
from core.model.transforms import NONE_UNKNOWN, Transform
from core.store.database import Waiting, write
from core.store.memory import Memory
from core.store.sqlserver.connections import Access
from core.store.sqlserver.database import SqlServerDatabase
from core.tasks.statuses import TaskMove
from examples.home_security.transform import Home
from tests.fakes.builders import FakeClock
from tests.fakes.odbc_driver import Error, FakeDriver, When, fault, lost, unmet
from tests.fakes.store import Store
from tests.sql.statements import PORTION, RUN, STAGED, commit_of, every_run, move_of, replay_of, retry_of, with_gap
from tests.sql.values import EPOCH, ID, ROW_CLASSES

CONNECTION = "SERVER=host;UID=app;PWD=secret"
PARTITION = commit_of((), first=True, letters=False).partition
TAKEN = "Violation of PRIMARY KEY constraint '{}'. Cannot insert duplicate key in object 'hubledger.x'."
TIMED_OUT = Error("HYT00", "[HYT00] Query timeout expired (0) (SQLExecute)")
NO_STEP = fault("42000", 51199, "clear_nothing touched a different number of rows than expected")
OF_A_TRIGGER = fault("42000", 51100, "The record does not exist.")


def store_of(driver: FakeDriver, schema: str = "hubledger", memory: Memory | None = None) -> Store:
    return Store(SqlServerDatabase(CONNECTION, schema=schema, access=Access(lambda: driver)), memory)


def first_commit(store: Store) -> BatchCommit:
    store.read_partition(PARTITION)
    return commit_of((), first=True, letters=True)


def calls_of(driver: FakeDriver, call: Callable[[], object]) -> int:
    before = len(driver.server.executed)
    call()
    return len(driver.server.executed) - before


def test_a_transaction_is_one_call_whatever_it_carries(committed: FakeDriver) -> None:
    store = store_of(committed)
    commit = replace(commit_of(ROW_CLASSES, first=False, letters=True), state=store.read_partition(PARTITION))
    aggregations = Aggregations(store.database)
    assert calls_of(committed, lambda: store.commit_batch(commit)) == 1
    assert calls_of(committed, lambda: store.commit_retry(retry_of(ROW_CLASSES))) == 1
    assert calls_of(committed, lambda: store.commit_replay(replay_of(ROW_CLASSES, letters=True))) == 1
    assert calls_of(committed, lambda: store.rehearse_replay(replay_of(ROW_CLASSES, letters=True))) == 1
    assert calls_of(committed, lambda: store.tasks.move(TaskMove(ID, "pause", "somebody", "", EPOCH))) == 1
    assert calls_of(committed, lambda: aggregations.open_run(RUN)) == 1
    assert calls_of(committed, lambda: aggregations.commit_portion(RUN, STAGED, PORTION)) == 1
    assert calls_of(committed, lambda: aggregations.close_run(RUN, STAGED, EPOCH)) == 1
    assert calls_of(committed, lambda: store.move_letters(move_of("discard"))) == 2  # the stream is looked up


class TestTheSchema:
    def test_is_checked_once_before_anything_is_executed(self, store: Store, driver: FakeDriver) -> None:
        store.read_partition(PARTITION)
        store.read_partition(PARTITION)
        checks = ["schema_migration" in text for text, _ in driver.server.executed]
        assert checks.index(True) == 1  # after the options of the session
        assert checks.count(True) == 1

    @pytest.mark.parametrize(("version", "hint"), [(0, "core.store.migrate"), (99, "0098 breaking_x.*newer code")])
    def test_that_this_code_does_not_run_on_is_refused(
        self, store: Store, driver: FakeDriver, version: int, hint: str
    ) -> None:
        driver.server.version = version
        if version == 99:
            driver.server.recorded = [("hubledger", 98, "breaking_x", ""), ("hubledger", 99, "parcels", "")]
        with pytest.raises(SchemaMismatch, match=hint):
            store.read_partition(PARTITION)
        assert driver.open == []

    def test_that_is_newer_and_only_adds_is_worked_on(self, store: Store, driver: FakeDriver) -> None:
        driver.server.recorded = [("hubledger", 98, "not_breaking_x", ""), ("apps.orders", 99, "breaking_parcels", "")]
        store.read_partition(PARTITION)

    def test_of_a_different_name_is_named_everywhere(self, committed: FakeDriver) -> None:
        committed.server.schema = "trial_7"
        committed.server.answers["MIN(d.due_at)"] = [(None,)]
        store = store_of(committed, schema="trial_7")
        store.read_references([ReferenceKey(Home, ("a",))])
        store.database.ask("read_ledger_ends", stream_id=1, partition_id="0")
        store.claim_letters(LetterClaim(PARTITION.stream, "claim-1", EPOCH, EPOCH, EPOCH, 1))
        store.next_due_at(PARTITION.stream, EPOCH)
        store.commit_retry(retry_of(ROW_CLASSES))
        store.commit_replay(replay_of(ROW_CLASSES, letters=True))
        assert [text for text, _ in committed.server.executed if "hubledger." in text] == []
        assert all("trial_7." in text for text, _ in committed.server.executed[1:])


EVERY_CLASS = f"replay {'+'.join(row_table(each).name for each in ROW_CLASSES)} letters"
COMMIT_TEXT, RETRY_TEXT, REPLAY_TEXT = (
    every_run()[name][0] for name in ("commit first nothing letters", "retry nothing", EVERY_CLASS)
)
COMMON: dict[str, tuple[Error, type[Exception], bool]] = {
    "a value too long": (fault("22001", 2628), DataRefused, True),
    "a row that stands already": (fault("23000", 2627, TAKEN.format("pk_sensor_reading")), DataRefused, True),
    "a deadlock": (fault("40001", 1205), StoreUnavailable, True),
    "a database that is moved": (fault("42000", 40613), StoreUnreachable, False),
    "an unknown one": (fault("42000", 9999), StoreUnreachable, False),
    "a number of no step": (NO_STEP, StoreUnavailable, True),
    "a trigger that throws": (OF_A_TRIGGER, DataRefused, True),
    "a missing table": (fault("42S02", 208), SchemaMismatch, False),
    "a trigger on a table of ours": (fault("42000", 334), SchemaMismatch, False),
    "a login that was withdrawn": (fault("28000", 18456), StoreMisconfigured, False),
    "the line cut": (lost(), CommitOutcomeUnknown, False),
    "a statement too slow": (TIMED_OUT, CommitOutcomeUnknown, False),
}
FAULTS: dict[str, dict[str, tuple[Error, type[Exception], bool]]] = {
    "a batch": COMMON
    | {
        "the checkpoint moved": (unmet(COMMIT_TEXT, "_checkpoint"), CheckpointConflict, True),
        "another was first": (
            fault("23000", 2627, TAKEN.format("pk_event_hub_checkpoint")),
            CheckpointConflict,
            True,
        ),
    },
    "a retry": COMMON
    | {
        "no such partition": (unmet(RETRY_TEXT, "count_commit"), LetterConflict, True),
        "letters that were taken": (unmet(RETRY_TEXT, "settle_letters"), LetterConflict, True),
    },
    "a replay": COMMON
    | {
        "events after the checkpoint": (unmet(REPLAY_TEXT, "count_replay"), TaskConflict, True),
        "another was further": (unmet(REPLAY_TEXT, "advance_replay"), TaskConflict, True),
        "a job that does not run": (unmet(REPLAY_TEXT, "hold_task"), TaskConflict, True),
    },
}
WRITES: dict[str, Callable[[Store], object]] = {
    "a batch": lambda store: store.commit_batch(commit_of((), first=True, letters=True)),
    "a retry": lambda store: store.commit_retry(retry_of(())),
    "a replay": lambda store: store.commit_replay(replay_of(ROW_CLASSES, letters=True)),
}


ANSWERS = {"a batch": 1, "a retry": 2, "a replay": replay_of(ROW_CLASSES, letters=True).counts}


def test_a_trigger_on_a_table_whose_rows_are_put_out_is_named_and_no_migration_is_advised() -> None:
    driver = FakeDriver()
    driver.server.faults = [(When.AT_ONCE, fault("42000", 334, "The target table 'd' cannot have enabled triggers."))]
    named = r"^a trigger is enabled on .*; drop or disable the trigger: (?!.*core\.store\.migrate).*\(334\)"
    with pytest.raises(SchemaMismatch, match=named):
        store_of(driver).commit_batch(commit_of((), first=True, letters=True))


@pytest.mark.parametrize("when", [When.AT_ONCE, When.LATE], ids=["at once", "at nextset"])
@pytest.mark.parametrize(("what", "case"), [(what, case) for what, cases in FAULTS.items() for case in cases])
def test_a_fault_has_its_name_and_a_doubtful_connection_is_dropped(
    committed: FakeDriver, what: str, case: str, when: When
) -> None:
    if what == "a batch":
        committed.server.checkpoints.clear()
    error, named, kept = FAULTS[what][case]
    store = store_of(committed)
    committed.server.faults = [(when, error)]
    with pytest.raises(named) as caught:
        WRITES[what](store)
    assert type(caught.value) is named
    assert caught.value.__cause__ is error
    assert len(committed.open) == int(kept)
    assert WRITES[what](store) == ANSWERS[what]
    assert len(committed.connections) == (1 if kept else 2)


STATE_TAKEN = "Violation of UNIQUE KEY constraint 'uq_7'. Cannot insert duplicate key in object 'hubledger.home'."
OF_A_STATE: dict[str, Callable[[Store], object]] = {
    "a batch": lambda store: store.commit_batch(commit_of((Home,), first=True, letters=False)),
    "a retry": lambda store: store.commit_retry(retry_of((Home,))),
    "a replay": lambda store: store.commit_replay(replay_of((Home,), letters=False)),
    "a rehearsal": lambda store: store.rehearse_replay(replay_of((Home,), letters=False)),
}


@pytest.mark.parametrize("what", OF_A_STATE)
class TestAKeyOfAState:
    @pytest.fixture
    def store(self, committed: FakeDriver, what: str) -> Store:
        if what == "a batch":
            committed.server.checkpoints.clear()
        return store_of(committed)

    def test_that_another_transaction_wrote_first_is_found_by_the_second_try(
        self, store: Store, committed: FakeDriver, what: str
    ) -> None:
        committed.server.faults = [(When.LATE, fault("23000", 2627, STATE_TAKEN))]
        assert (
            calls_of(committed, lambda: OF_A_STATE[what](store)) == 5
        )  # three of them open the session, and check schema and columns
        assert committed.server.commits[-1] == committed.server.commits[-2]
        assert len(committed.open) == len(committed.connections) == 1

    def test_that_loses_one_race_after_another_is_committed_because_each_is_for_a_different_key(
        self, store: Store, committed: FakeDriver, what: str
    ) -> None:
        """Where locks are optimized, an update passes over a state that another transaction has just inserted."""
        texts = [f"{STATE_TAKEN} The duplicate key value is (home-{number})." for number in range(5)]
        committed.server.faults = [(When.LATE, fault("23000", 2627, text)) for text in texts]
        assert calls_of(committed, lambda: OF_A_STATE[what](store)) == 3 + len(texts) + 1
        assert len(committed.open) == len(committed.connections) == 1

    def test_that_is_refused_twice_among_races_is_data(self, store: Store, committed: FakeDriver, what: str) -> None:
        texts = [f"{STATE_TAKEN} The duplicate key value is ({key})." for key in ("a", "b", "a")]
        committed.server.faults = [(When.AT_ONCE, fault("23000", 2627, text)) for text in texts]
        with pytest.raises(DataRefused, match=r"refuses a key twice.*value is \(a\)"):
            OF_A_STATE[what](store)

    def test_that_is_refused_twice_is_data_because_it_is_no_race(
        self, store: Store, committed: FakeDriver, what: str
    ) -> None:
        errors = [fault("23000", 2627, STATE_TAKEN), fault("23000", 2601, STATE_TAKEN)]
        committed.server.faults = [(When.AT_ONCE, error) for error in errors]
        with pytest.raises(DataRefused, match=r"refuses a key twice.*uq_7") as caught:
            OF_A_STATE[what](store)
        assert caught.value.__cause__ is errors[1]
        assert len(committed.open) == 1

    def test_that_was_refused_once_may_fail_in_a_different_way(
        self, store: Store, committed: FakeDriver, what: str
    ) -> None:
        crossed = fault("40001", 1205)
        for second, raised in ((crossed, StoreUnavailable), (lost(), CommitOutcomeUnknown)):
            committed.server.faults = [(When.AT_ONCE, fault("23000", 2627, STATE_TAKEN)), (When.AT_ONCE, second)]
            with pytest.raises(raised):
                OF_A_STATE[what](store)


def test_locks_that_cross_are_counted_and_logged_and_the_call_is_retried_on_its_connection(
    committed: FakeDriver, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FakeClock()
    store = store_of(committed).patient(timedelta(seconds=9), Waiting(clock.monotonic, clock.sleep, lambda: 1.0))
    committed.server.faults = [(When.AT_ONCE, fault("40001", number)) for number in (1205, 3960)]
    assert store.commit_retry(retry_of(())) == 2
    logged = [one.__dict__ for one in caplog.records if one.__dict__.get("action") == "cross_locks"]
    subject = str(PARTITION)
    assert [(one["sql_error"], one["crossings"], one["subject"]) for one in logged] == [
        (1205, 1, subject), (3960, 2, subject),
    ]  # fmt: skip
    assert (len(committed.connections), len(clock.slept)) == (1, 2)


def test_a_duplicate_in_a_table_that_no_step_races_for_is_data_at_once(committed: FakeDriver) -> None:
    store = store_of(committed)
    committed.server.faults = [(When.AT_ONCE, fault("23000", 2627, TAKEN.format("pk_sequence_gap")))]
    with pytest.raises(DataRefused, match=r"^the database refuses the data"):
        store.commit_retry(retry_of((Home,)))


def test_a_race_for_a_gap_is_passing_however_often_it_is_lost(committed: FakeDriver) -> None:
    committed.server.checkpoints.clear()
    store, commit = store_of(committed), with_gap(commit_of((), first=True, letters=True))
    for _ in range(3):
        committed.server.faults = [(When.AT_ONCE, fault("23000", 2627, TAKEN.format("pk_sequence_gap")))]
        with pytest.raises(StoreUnavailable):
            store.commit_batch(commit)
    assert store.commit_batch(commit) == 1


class TestALostAnswer:
    def test_of_a_read_is_unavailable(self, store: Store, driver: FakeDriver) -> None:
        store.read_partition(PARTITION)
        driver.connections[0].lost = True
        with pytest.raises(StoreUnavailable):
            store.read_partition(PARTITION)
        assert store.read_partition(PARTITION).stream_id == 1

    def test_before_the_commit_left_is_unavailable(self, store: Store, driver: FakeDriver) -> None:
        commit = first_commit(store)
        store.close()
        driver.refusals = [lost()]
        with pytest.raises(StoreUnavailable):
            store.commit_batch(commit)
        assert driver.server.commits == []

    @pytest.mark.parametrize(
        ("part", "call"),
        [
            (
                "UPDATE TOP (@most) d",
                lambda store: store.claim_letters(LetterClaim(PARTITION.stream, "c", EPOCH, EPOCH, EPOCH, 1)),
            ),
            ("CHARINDEX(", lambda store: store.move_letters(move_of("discard"))),
            ("CHARINDEX(", lambda store: store.tasks.move(TaskMove(ID, "pause", "somebody", "", EPOCH))),
            (
                "SET status = 'healed'",
                lambda store: write(store.database, "x", "close_gaps", stream_id=1, partition_id="0"),
            ),
        ],
        ids=["a claim", "a move", "a move of a job", "a write"],
    )
    def test_of_a_script_that_may_repeat_is_unavailable(
        self, committed: FakeDriver, part: str, call: Callable[[Store], object]
    ) -> None:
        committed.server.refused = (part, lost())
        with pytest.raises(StoreUnavailable):
            call(store_of(committed))
        assert committed.open == []

    @pytest.mark.parametrize("first", [When.AFTER, When.AT_ONCE, When.LATE], ids=["stands", "at once", "at nextset"])
    def test_of_a_batch_is_settled_and_each_event_committed_once(self, driver: FakeDriver, first: When) -> None:
        driver.server.faults = [(first, lost())]
        report = ingest(driver)
        assert ([commit.events for commit in report.commits], report.redelivered) == ([5], 0)
        assert len(driver.server.commits) == (1 if first is When.AFTER else 2)
        assert driver.server.checkpoints["0"][3:5] == (1, str(report.commits[0].commit_id))

    def test_of_a_trigger_that_raises_and_does_not_roll_back_is_settled_by_the_checkpoint(
        self, driver: FakeDriver
    ) -> None:
        driver.server.faults = [(When.AFTER, fault("42000", 50000, "RAISERROR ends no transaction"))]
        report = ingest(driver)
        assert (report.commits, report.redelivered) == ((), 5)
        assert (driver.server.checkpoints["0"][0], driver.server.checkpoints["0"][3]) == (4, 1)

    def test_of_a_commit_of_a_different_owner_does_not_count_as_ours(self, store: Store, driver: FakeDriver) -> None:
        store.commit_batch(first_commit(store))
        driver.server.checkpoints["0"] = (4, "256", "2026-01-01T00:00:00.0000000", 1, str(ID), NONE_UNKNOWN)
        report = ingest(driver)
        assert (report.commits, report.redelivered) == ((), 5)


def ingest(driver: FakeDriver) -> IngestReport:
    def nothing(event: Event, references: object) -> Iterable[Row]:
        return ()

    numbers = iter(range(100, 200))
    clock = Clock(lambda: EPOCH, lambda: UUID(int=next(numbers)))
    given = tuple(Event(SequenceNumber(number), str(number), EPOCH, None, {}, b"") for number in range(5))
    store = store_of(driver, memory=Memory(timedelta(seconds=60)))
    return ingest_batch(EventBatch(PARTITION, given, "i"), Ingestion(store, Transform("quiet/1", nothing), clock))
