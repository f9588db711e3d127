"""core/store/connect.py: the reads of operators and of the watch outlast a deadlock, and no lost connection."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.aggregation.store import Aggregations
from core.errors import StoreUnavailable, StoreUnreachable
from core.store.columns import instant_text
from core.store.connect import briefly_patient
from core.store.database import Database, write
from core.store.script import Named, Outcome, Script
from core.store.sqlserver.connections import FIRST_RECONNECT
from tests.fakes.builders import EPOCH, STREAM, partition
from tests.fakes.memory_store import MemoryStore
from tests.fakes.operator_stores import OperatorStores, operator_stores

ROW_CLASSES = ()
DEADLOCK = StoreUnavailable("locks crossed")
CUT = StoreUnreachable("no answer", FIRST_RECONNECT)
READS: dict[str, Callable[[OperatorStores], object]] = {
    "status": lambda desk: desk.ledger.read_books(),
    "letters": lambda desk: desk.ledger.count_letters(),
    "the watch": lambda desk: desk.ledger.count_absent(EPOCH),
    "health": lambda desk: desk.stream.find(),
}


class Failing:
    """A database whose next call fails."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.fault: Exception | None = None
        self.failed = 0

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        self._fail()
        return self._database.ask(statement, **values)

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        self._fail()
        return self._database.run(script, rehearse)

    def close(self) -> None:
        self._database.close()

    def _fail(self) -> None:
        fault, self.fault = self.fault, None
        if fault is not None:
            self.failed += 1
            raise fault


@pytest.fixture
def failing() -> Failing:
    """Over a store that has a stream."""
    store = MemoryStore().open()
    store.read_partition(partition())
    return Failing(store.database)


def desk_over(failing: Failing, patience: timedelta) -> OperatorStores:
    return operator_stores(briefly_patient(failing, patience), STREAM, ROW_CLASSES)


@pytest.mark.parametrize("what", READS)
def test_a_read_of_operators_and_of_the_watch_outlasts_a_deadlock(failing: Failing, what: str) -> None:
    failing.fault = DEADLOCK
    READS[what](desk_over(failing, timedelta(seconds=20)))
    assert failing.failed == 1


def test_a_timer_outlasts_a_deadlock(failing: Failing) -> None:
    brief = briefly_patient(failing, timedelta(seconds=20))
    failing.fault = DEADLOCK
    assert Aggregations(brief).read_runs("a job", 9, 9) == ()
    failing.fault = DEADLOCK
    assert (
        write(brief, "a test", "note_task_fault", task_id="1", fault="", moved_at=instant_text(datetime.now(UTC))) == []
    )
    assert failing.failed == 2


@pytest.mark.parametrize("what", READS)
def test_a_lost_connection_is_shown_to_a_person_at_once(failing: Failing, what: str) -> None:
    failing.fault = CUT
    with pytest.raises(StoreUnreachable):
        READS[what](desk_over(failing, timedelta(hours=1)))


def test_a_patience_of_none_holds_for_operators_too(failing: Failing) -> None:
    failing.fault = DEADLOCK
    with pytest.raises(StoreUnavailable):
        desk_over(failing, timedelta()).ledger.read_books()
