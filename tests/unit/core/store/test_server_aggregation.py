"""core/store/server_aggregation.py before a driver that fails on demand; what a server does is in tests/contract."""

from collections.abc import Callable

import pytest

from core.aggregation.runs import NO_CUT, AggregationRun, Cut, Staged
from core.aggregation.tick import HOME_ACTIVITY
from core.errors import CommitOutcomeUnknown, DataRefused, StoreUnavailable
from core.store.odbc import Access
from core.store.server_aggregation import COMMIT, PLAN, SqlServerAggregationStore, batch, parameters
from tests.fakes.odbc_driver import FakeDriver, fault, lost
from tests.sql.values import EPOCH

RUN = AggregationRun("r", HOME_ACTIVITY, 3, NO_CUT, Cut('{"1/0":1}'), "livy", 1, 1, "submitting", EPOCH, EPOCH)
STAGED = Staged("s", "r", 1, EPOCH)
Write = Callable[[SqlServerAggregationStore], bool]
WRITES: dict[str, Write] = {
    "open_run": lambda store: store.open_run(RUN),
    "commit_run": lambda store: store.commit_run(RUN, STAGED, EPOCH),
}
each_write = pytest.mark.parametrize("write", WRITES.values(), ids=list(WRITES))


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver()


@pytest.fixture
def store(driver: FakeDriver) -> SqlServerAggregationStore:
    return SqlServerAggregationStore("SERVER=host;UID=app;PWD=secret", access=Access(lambda: driver))


@each_write
def test_a_plan_and_a_commit_are_one_round_trip(
    store: SqlServerAggregationStore, driver: FakeDriver, write: Write
) -> None:
    assert write(store)
    sent = [text for text, _ in driver.server.executed if "aggregation_cut" in text]
    assert len(sent) == 1
    assert sent[0].count("TRANSACTION;") == 2


@each_write
def test_a_compare_and_set_that_touched_no_row_is_false_and_keeps_the_connection(
    store: SqlServerAggregationStore, driver: FakeDriver, write: Write
) -> None:
    driver.server.refused = ("aggregation_cut", fault("42000", 51000, "the cut moved"))
    assert not write(store)
    assert len(driver.open) == 1


@each_write
def test_an_answer_that_was_lost_is_unknown_and_the_connection_is_dropped(
    store: SqlServerAggregationStore, driver: FakeDriver, write: Write
) -> None:
    driver.server.refused = ("aggregation_cut", lost())
    with pytest.raises(CommitOutcomeUnknown):
        write(store)
    assert driver.open == []


def test_a_deadlock_is_a_passing_trouble_and_a_refused_value_is_not(
    store: SqlServerAggregationStore, driver: FakeDriver
) -> None:
    driver.server.refused = ("aggregation_cut", fault("40001", 1205, "deadlocked"))
    with pytest.raises(StoreUnavailable):
        store.open_run(RUN)
    driver.server.refused = ("aggregation_cut", fault("22001", 2628, "String or binary data would be truncated"))
    with pytest.raises(DataRefused):
        store.open_run(RUN)


def test_every_value_is_given_in_the_order_of_its_declaration(
    store: SqlServerAggregationStore, driver: FakeDriver
) -> None:
    store.commit_run(RUN, STAGED, EPOCH)
    text, given = driver.server.executed[-1]
    assert text == batch("commit_run", COMMIT)
    assert dict(zip(parameters(COMMIT), given, strict=True)) == {
        "job": HOME_ACTIVITY,
        "cut_from": "{}",
        "cut_to": '{"1/0":1}',
        "staging_id": "s",
        "run_number": 3,
        "run_id": "r",
        "closed_at": "2026-01-01T00:00:00.000000",
    }
    assert text.count("?") == len(given)
    assert batch("open_run", PLAN).count("?") == len(parameters(PLAN))


def test_what_is_touched_is_what_comes_back(store: SqlServerAggregationStore, driver: FakeDriver) -> None:
    assert not store.note_submitted(RUN, "job", EPOCH)
    assert not store.renew_intent(RUN, 2, EPOCH)
    assert not store.fail_run(RUN, "why", EPOCH)
    assert store.read_staged("r") is None
    assert store.read_runs(HOME_ACTIVITY, 9, 9) == store.read_committed_runs(HOME_ACTIVITY, 0) == ()
    assert store.read_activity("home-1", EPOCH, EPOCH) == ()
    assert store.find_homes("h", "", 3) == ()
