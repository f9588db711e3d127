"""core/store/server_replays.py: what a server's faults mean for a piece of a replay."""

import pytest

from core.errors import CommitOutcomeUnknown, DataRefused, ReplayConflict, StoreUnavailable
from core.store.sqlserver import SqlServerStore
from core.store.sqlserver.odbc import Access
from tests.fakes.odbc_driver import Error, FakeDriver, Server, When, fault, lost
from tests.sql.statements import replay_of
from tests.sql.values import ROW_CLASSES

CONNECTION = "DRIVER={x};SERVER=localhost;UID=u;PWD=p"
COMMIT = replay_of(ROW_CLASSES, letters=True)
MOVED = fault("42000", 51008, "the replay moved on")
CLAUSE = "Violation of PRIMARY KEY constraint '{}'. Cannot insert duplicate key in object 'hubledger.x'."
FAULTS = {
    "the replay moved on": (MOVED, ReplayConflict),
    "a value is too long": (fault("42000", 2628, "String or binary data would be truncated"), DataRefused),
    "two wrote one state": (fault("23000", 2627, CLAUSE.format("pk_home")), StoreUnavailable),
    "a row stands already": (fault("23000", 2627, CLAUSE.format("pk_sensor_reading")), DataRefused),
    "a deadlock": (fault("40001", 1205, "deadlock victim"), StoreUnavailable),
    "the line was cut": (lost(), CommitOutcomeUnknown),
}


def store_of(*planned: tuple[When, Error]) -> tuple[SqlServerStore, FakeDriver]:
    driver = FakeDriver(Server(stream_id=1, faults=list(planned)))
    return SqlServerStore(CONNECTION, access=Access(lambda: driver)), driver


@pytest.mark.parametrize("when", [When.AT_ONCE, When.LATE])
@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_of_a_piece_is_named_for_what_it_means(case: str, when: When) -> None:
    error, expected = FAULTS[case]
    store, _ = store_of((when, error))
    with pytest.raises(expected):
        store.commit_replay(COMMIT)


@pytest.mark.parametrize(("error", "is_kept"), [(MOVED, True), (lost(), False)])
def test_a_lost_line_is_dropped_and_a_conflict_keeps_it(error: Error, is_kept: bool) -> None:
    store, driver = store_of((When.AT_ONCE, error))
    with pytest.raises((ReplayConflict, CommitOutcomeUnknown)):
        store.commit_replay(COMMIT)
    assert bool(driver.open) == is_kept


def test_a_piece_is_one_call_and_carries_everything_with_it() -> None:
    store, driver = store_of((When.AT_ONCE, MOVED))
    with pytest.raises(ReplayConflict):
        store.commit_replay(COMMIT)
    (sent,) = driver.server.commits
    tables = "retracted_row sensor_reading event_hub_dead_letter batch_ledger replay_progress replay_state replay_job"
    assert [table for table in tables.split() if f"hubledger.{table}" not in sent[0]] == []
