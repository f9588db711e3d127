"""core/store/sqlserver.py before a driver that fails on demand; what a real server does is in tests/contract."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID

import pytest

from core.errors import (
    CheckpointConflict,
    CommitOutcomeUnknown,
    DataRefused,
    SchemaMismatch,
    StoreMisconfigured,
    StoreUnavailable,
)
from core.ingest.ingest import IngestReport, Means, ingest_batch
from core.model.clock import Clock
from core.model.commits import BatchCommit
from core.model.events import Event, EventBatch, PartitionId
from core.model.rows import ReferenceKey, Row
from core.model.spans import SequenceNumber
from core.model.transform import Transform
from core.store.odbc import Access
from core.store.queries import load_migrations
from core.store.remembered import RememberingStore
from core.store.server_json import FOLDED, PLAIN
from core.store.sqlserver import SqlServerStore
from core.transforms.home_security import Home
from tests.fakes.odbc_driver import Error, FakeDriver, Server, When, fault, lost
from tests.sql.statements import commit_of
from tests.sql.values import EPOCH, ID, ROW_CLASSES

CONNECTION = "SERVER=host;UID=app;PWD=secret"
PARTITION = commit_of((), first=True, letters=False).partition


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver()


@pytest.fixture
def store(driver: FakeDriver) -> SqlServerStore:
    return SqlServerStore(CONNECTION, access=Access(lambda: driver))


def first_commit(store: SqlServerStore, classes: tuple[type, ...] = ()) -> BatchCommit:
    store.read_partition(PARTITION)
    return commit_of(classes, first=True, letters=True)


def test_a_partition_that_is_not_known_gets_a_stream_and_has_no_checkpoint(store: SqlServerStore) -> None:
    state = store.read_partition(PARTITION)
    assert (state.stream_id, state.checkpoint) == (1, None)


def test_a_partition_is_anchored_once_and_knows_when_its_stream_was_opened(store: SqlServerStore) -> None:
    state = store.anchor_partition(store.read_partition(PARTITION), SequenceNumber(5), EPOCH)
    assert (state.anchor, state.opened_at, state.checkpoint) == (5, EPOCH, None)
    assert store.anchor_partition(state, SequenceNumber(6), EPOCH) == state


def test_a_commit_moves_the_checkpoint_and_gives_its_number(store: SqlServerStore) -> None:
    commit = first_commit(store)
    assert store.commit_batch(commit) == 1
    assert store.read_partition(PARTITION) == commit.state_after(1)


def test_a_commit_is_one_call_whatever_it_carries(store: SqlServerStore, driver: FakeDriver) -> None:
    commit = first_commit(store, ROW_CLASSES)
    before = len(driver.server.executed)
    store.commit_batch(commit)
    assert len(driver.server.executed) - before == 1


def test_nothing_is_executed_before_the_schema_was_checked_once(store: SqlServerStore, driver: FakeDriver) -> None:
    store.read_partition(PARTITION)
    store.read_partition(PARTITION)
    checks = ["schema_migration" in text for text, _ in driver.server.executed]
    assert checks.index(True) == 0
    assert checks.count(True) == 1


@pytest.mark.parametrize(
    ("version", "hint"), [(0, "core.store.migrate"), (1, "core.store.migrate"), (99, "0098 breaking_x.*newer code")]
)
def test_a_schema_that_this_code_does_not_run_on_is_refused(
    store: SqlServerStore, driver: FakeDriver, version: int, hint: str
) -> None:
    driver.server.version = version
    driver.server.answers["m.version, m.name"] = [(98, "breaking_x"), (99, "parcels")]
    with pytest.raises(SchemaMismatch, match=hint):
        store.read_partition(PARTITION)
    assert driver.open == []


def test_a_newer_schema_that_only_adds_is_worked_on(store: SqlServerStore, driver: FakeDriver) -> None:
    driver.server.version = 99
    driver.server.answers["m.version, m.name"] = [(98, "not_breaking_x"), (99, "parcels")]
    store.read_partition(PARTITION)
    asked = [given for text, given in driver.server.executed if "m.version, m.name" in text]
    assert asked == [[load_migrations("sqlserver")[-1].version]]


def test_a_schema_of_another_name_is_named_everywhere() -> None:
    driver = FakeDriver(Server(schema="trial_7"))
    store = SqlServerStore(CONNECTION, schema="trial_7", access=Access(lambda: driver))
    store.commit_batch(first_commit(store, ROW_CLASSES))
    store.read_references([ReferenceKey(Home, ("a",))])
    store.read_ledgers()
    assert [text for text, _ in driver.server.executed if "hubledger." in text] == []
    assert all("trial_7." in text for text, _ in driver.server.executed)


FAULTS = {
    "the checkpoint moved": (fault("42000", 51000), CheckpointConflict, True),
    "a value too long": (fault("22001", 2628), DataRefused, True),
    "a deadlock": (fault("40001", 1205), StoreUnavailable, False),
    "an unknown one": (fault("42000", 99999), StoreUnavailable, False),
    "a missing table": (fault("42S02", 208), SchemaMismatch, False),
    "a login that was withdrawn": (fault("28000", 18456), StoreMisconfigured, False),
    "the line cut": (lost(), CommitOutcomeUnknown, False),
    "a statement too long": (
        Error("HYT00", "[HYT00] Query timeout expired (0) (SQLExecute)"),
        CommitOutcomeUnknown,
        False,
    ),
}


@pytest.mark.parametrize("when", [When.AT_ONCE, When.LATE], ids=["at once", "at nextset"])
@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_has_its_name_and_a_doubtful_connection_is_dropped(
    store: SqlServerStore, driver: FakeDriver, case: str, when: When
) -> None:
    error, named, kept = FAULTS[case]
    commit = first_commit(store)
    driver.server.faults = [(when, error)]
    with pytest.raises(named) as caught:
        store.commit_batch(commit)
    assert caught.value.__cause__ is error
    assert len(driver.open) == int(kept)
    assert store.commit_batch(commit) == 1
    assert len(driver.connections) == (1 if kept else 2)


def test_the_line_cut_while_reading_is_unavailable(store: SqlServerStore, driver: FakeDriver) -> None:
    store.read_partition(PARTITION)
    driver.connections[0].lost = True
    with pytest.raises(StoreUnavailable):
        store.read_partition(PARTITION)
    assert store.read_partition(PARTITION).stream_id == 1


def test_the_line_cut_before_the_commit_left_is_unavailable(store: SqlServerStore, driver: FakeDriver) -> None:
    commit = first_commit(store)
    store.close()
    driver.refusals = [lost()]
    with pytest.raises(StoreUnavailable):
        store.commit_batch(commit)
    assert driver.server.commits == []


def test_every_thread_has_a_connection_and_close_closes_all(store: SqlServerStore, driver: FakeDriver) -> None:
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: store.read_partition(PARTITION), range(30)))
    assert len(driver.connections) == len({connection.thread for connection in driver.connections})
    store.close()
    assert driver.open == []


def test_a_store_that_was_closed_opens_again(store: SqlServerStore) -> None:
    commit = first_commit(store)
    store.close()
    assert store.commit_batch(commit) == 1


@pytest.mark.parametrize(
    "key",
    ["\ud800", "a\x00", "\ufdd0", "x" * 4_001, 2**64, object()],
    ids=["surrogate", "U+0000", "noncharacter", "too long", "65 bits", "no value"],
)
def test_keys_that_no_row_can_have_are_not_asked_for(store: SqlServerStore, driver: FakeDriver, key: object) -> None:
    assert dict(store.read_references([ReferenceKey(Home, (key,)), ReferenceKey(Home, ("a",))])) == {}
    assert driver.server.executed[-1][1] == ['[["a"]]']
    calls = len(driver.server.executed)
    assert dict(store.read_references([ReferenceKey(Home, (key,))])) == {}
    assert len(driver.server.executed) == calls


def test_a_key_that_a_server_may_leave_escaped_is_unfolded_there(store: SqlServerStore, driver: FakeDriver) -> None:
    store.read_references([ReferenceKey(Home, ('"a"',))])
    text, given = driver.server.executed[-1]
    assert "TRANSLATE(k.[home_id]" in text
    assert given == [FOLDED, PLAIN, f'[["{FOLDED[0]}a{FOLDED[0]}"]]']


class TestLostAnswers:
    """A commit whose answer is lost, settled by core.ingest.ingest through the commit's id."""

    @staticmethod
    def ingest(store: SqlServerStore) -> IngestReport:
        remembering = RememberingStore(store, timedelta(seconds=60))
        return ingest_batch(
            EventBatch(PARTITION, events(), "invocation-1"), Means(remembering, QUIET, Clock(lambda: EPOCH, ids()))
        )

    def test_committed_and_unanswered_counts_as_committed(self, store: SqlServerStore, driver: FakeDriver) -> None:
        driver.server.faults = [(When.AFTER, lost())]
        report = self.ingest(store)
        assert ([commit.events for commit in report.commits], report.redelivered) == ([5], 0)
        assert len(driver.server.commits) == 1
        assert driver.server.checkpoints["0"][3:] == (1, str(report.commits[0].commit_id))

    @pytest.mark.parametrize("when", [When.AT_ONCE, When.LATE], ids=["at once", "at nextset"])
    def test_not_committed_is_committed_by_the_second_try(
        self, store: SqlServerStore, driver: FakeDriver, when: When
    ) -> None:
        driver.server.faults = [(when, lost())]
        report = self.ingest(store)
        assert ([commit.events for commit in report.commits], report.redelivered) == ([5], 0)
        assert len(driver.server.commits) == 2
        assert driver.server.checkpoints["0"][3:] == (1, str(report.commits[0].commit_id))

    def test_a_commit_of_somebody_else_does_not_count_as_ours(self, store: SqlServerStore, driver: FakeDriver) -> None:
        store.commit_batch(first_commit(store))
        driver.server.checkpoints["0"] = (4, "256", "2026-01-01T00:00:00.0000000", 1, str(ID))
        report = self.ingest(store)
        assert (report.commits, report.redelivered) == ((), 5)


def events() -> tuple[Event, ...]:
    return tuple(Event(SequenceNumber(number), str(number), EPOCH, None, {}, b"") for number in range(5))


def nothing(event: Event, references: object) -> Iterable[Row]:
    return ()


QUIET = Transform("quiet/1", nothing)


def ids() -> Callable[[], UUID]:
    numbers = iter(range(100, 200))
    return lambda: UUID(int=next(numbers))


def test_a_partition_id_is_sent_as_it_is(store: SqlServerStore, driver: FakeDriver) -> None:
    store.read_partition(commit_of((), first=True, letters=False).partition)
    assert PartitionId("0") in driver.server.executed[-1][1]
