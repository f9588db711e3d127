from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core import errors
from core.aggregation.store import Aggregations
from core.errors import CheckpointConflict, DataRefused, SchemaMismatch, StoreUnavailable, StoreUnreachable
from core.model.ports import Clock
from core.store import database as store_database
from core.store.columns import instant_text
from core.store.connect import briefly_patient
from core.store.database import FIRST_PAUSE, LONGEST_PAUSE, Database, Waiting, invocation, store_clock, write
from core.store.script import Named, Outcome, Script, Step
from core.store.sqlserver.connections import FIRST_RECONNECT, Access
from core.store.sqlserver.database import SqlServerDatabase
from tests.fakes.builders import EPOCH, STREAM, FakeClock, partition, stamps
from tests.fakes.faulty_database import NotedDatabase
from tests.fakes.odbc_driver import FakeDriver
from tests.fakes.store import MemoryStore, OperatorStores, operator_stores

AWAY = StoreUnavailable("the database does not answer")
OUTAGE = [AWAY] * 500  # longer than any patience here
SCRIPT = Script("a test", (Step("close_gaps", {}),))
DONE = Outcome({"commit_number": 1}, [(1,)])


class Failing:
    """A database that raises these errors, one a call, and then answers, as `inner` does if it is given."""

    def __init__(self, faults: Iterable[Exception | None] = (), inner: Database | None = None) -> None:
        self._faults, self._inner = iter(faults), inner
        self.calls: list[Any] = []

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        self._call("ask", statement, values)
        return self._inner.ask(statement, **values) if self._inner else [(1,)]

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        self._call("run", script, rehearse)
        return self._inner.run(script, rehearse) if self._inner else DONE

    def close(self) -> None:
        self.calls.append("close")

    def _call(self, *call: Any) -> None:
        self.calls.append(call)
        fault = next(self._faults, None)
        if fault is not None:
            raise fault


class World:
    def __init__(self, faults: Iterable[Exception | None] = (), patience: float = 20.0, chance: float = 1.0) -> None:
        self.clock, self.failing = FakeClock(), Failing(faults)
        waiting = Waiting(self.clock.monotonic, self.clock.sleep, lambda: chance)
        self.database = store_database.PatientDatabase(self.failing, timedelta(seconds=patience), waiting)


LONG_ONE = [min(FIRST_PAUSE * 2**at, LONGEST_PAUSE) for at in range(8)]


@pytest.mark.parametrize(
    ("faults", "chance", "pauses"),
    [
        ([], 1.0, []),
        ([AWAY] * 8, 1.0, LONG_ONE),
        ([AWAY] * 3, 0.5, [FIRST_PAUSE / 2, FIRST_PAUSE, FIRST_PAUSE * 2]),
        ([StoreUnreachable("no answer", pause) for pause in (5.0, 10.0)], 0.0, [5.0, 10.0]),
        ([StoreUnreachable("no answer", 5.0)], 1.0, [6.25]),
    ],
    ids=["no fault", "doubled up to the longest", "shortened by chance", "as the connection says", "a little longer"],
)
def test_a_call_outlasts_faults_with_longer_pauses(faults: list[Exception], chance: float, pauses: list[float]) -> None:
    world = World(faults, patience=60, chance=chance)
    assert world.database.run(SCRIPT) == DONE
    assert world.clock.slept == pauses
    world.database.close()
    assert world.failing.calls[-1] == "close"


@pytest.mark.parametrize("patience", [1.0, 5.0, 20.0])
def test_the_patience_of_each_call_ends_and_the_fault_goes_on(patience: float) -> None:
    world = World(OUTAGE, patience)
    for _ in range(2):
        began = world.clock.seconds
        with pytest.raises(StoreUnavailable):
            world.database.run(SCRIPT)
        assert patience - LONGEST_PAUSE <= world.clock.seconds - began <= patience


def test_every_call_is_made_again_as_it_was() -> None:
    world = World([AWAY, AWAY, None, AWAY, None, AWAY])
    assert world.database.ask("find_stream", event_hub="a", consumer_group="b") == [(1,)]
    assert world.database.run(SCRIPT, rehearse=True) == DONE
    assert write(world.database, "a test", "close_gaps", stream_id=1) == [(1,)]
    written = Script("a test", (Step("close_gaps", {"stream_id": 1}, answers=True),), may_repeat=True)
    asked = ("ask", "find_stream", {"event_hub": "a", "consumer_group": "b"})
    assert world.failing.calls == [*[asked] * 3, *[("run", SCRIPT, True)] * 2, *[("run", written, False)] * 2]


@pytest.mark.parametrize(
    ("error", "patience"),
    [
        (errors.CommitOutcomeUnknown("it was not answered"), 20),
        (CheckpointConflict(partition(), None), 20),
        (DataRefused("too long"), 20),
        (SchemaMismatch("too old"), 20),
        (AWAY, 0),
        (StoreUnreachable("no answer", 20.0), 20),
    ],
    ids=lambda given: type(given).__name__ if isinstance(given, Exception) else f"within {given} s",
)
def test_any_other_error_and_a_pause_beyond_patience_go_on_at_once(error: Exception, patience: float) -> None:
    world = World([error], patience)
    with pytest.raises(type(error)):
        world.database.run(SCRIPT)
    assert (len(world.failing.calls), world.clock.slept) == (1, [])


def test_no_pause_ends_after_the_invocation_however_many_calls_it_makes() -> None:
    world = World(OUTAGE, patience=20)
    with invocation(timedelta(seconds=50), world.clock.monotonic):
        for _ in range(10):
            with pytest.raises(StoreUnavailable):
                world.database.ask("find_stream")
        assert 50 - LONGEST_PAUSE <= world.clock.seconds < 50
        world.clock.advance(50)
        tried, slept = len(world.failing.calls), len(world.clock.slept)
        with pytest.raises(StoreUnavailable):
            world.database.ask("find_stream")  # at its end, a call is tried once
        assert (len(world.failing.calls), len(world.clock.slept)) == (tried + 1, slept)
    began = world.clock.seconds
    with pytest.raises(StoreUnavailable):
        world.database.ask("find_stream")
    assert world.clock.seconds > began + 10  # outside of an invocation, patience is whole


WRONG = EPOCH - timedelta(days=400)


class Clocks:
    def __init__(self) -> None:
        self.here, self.there = FakeClock(), FakeClock()
        self.database = NotedDatabase(MemoryStore(now=self.there.now).database)

    def clock(self, age: timedelta = store_database.OF_BATCHES) -> Clock:
        return store_clock(self.database, Clock(lambda: WRONG, stamps().new_id), age, self.here.monotonic)

    def pass_by(self, seconds: float) -> None:
        self.here.advance(seconds)
        self.there.advance(seconds)


def test_the_time_is_that_of_the_database_until_the_last_reading_is_too_old() -> None:
    clocks = Clocks()
    clock = clocks.clock()
    for _ in range(600):
        assert clock.now() == clocks.there.now()
        clocks.pass_by(0.5)
    assert clocks.database.calls == ["read_time"] * 5  # one a minute
    clock.now()
    clocks.database.out = {"read_time"}
    clocks.pass_by(59)
    assert clock.now() == clocks.there.now()
    clocks.pass_by(1)
    with pytest.raises(StoreUnavailable):
        clock.now()


@pytest.mark.parametrize("seconds", [-86_400, -3_600, 3_600, 86_400])
def test_a_change_of_the_clock_of_the_database_is_seen_at_the_next_reading(seconds: float) -> None:
    clocks = Clocks()
    of_batches, of_letters = clocks.clock(), clocks.clock(store_database.OF_LETTERS)
    assert of_batches.now() == of_letters.now()
    clocks.there.advance(seconds)
    clocks.pass_by(1)
    assert of_letters.now() == clocks.there.now()
    assert of_batches.now() == clocks.there.now() - timedelta(seconds=seconds)
    clocks.pass_by(59)
    assert of_batches.now() == clocks.there.now()


def test_the_time_of_a_server_is_read_from_the_server_and_ids_and_chance_stay_those_of_the_process() -> None:
    driver, own = FakeDriver(), stamps()
    driver.server.now = lambda: WRONG.replace(tzinfo=None)
    database = SqlServerDatabase("SERVER=host;UID=app;PWD=secret", access=Access(lambda: driver))
    clock = store_clock(database, own, monotonic=lambda: 0.0)
    assert (clock.now(), clock.new_id, clock.chance) == (WRONG, own.new_id, own.chance)


DEADLOCK = StoreUnavailable("locks crossed")
CUT = StoreUnreachable("no answer", FIRST_RECONNECT)
READS: dict[str, Callable[[OperatorStores], object]] = {
    "status": lambda desk: desk.ledger.read_books(),
    "letters": lambda desk: desk.ledger.count_letters(),
    "the watch": lambda desk: desk.ledger.count_absent(EPOCH),
    "health": lambda desk: desk.stream.find(),
}


def brief_over(fault: Exception, patience: timedelta) -> tuple[OperatorStores, Failing]:
    store = MemoryStore().open()
    store.read_partition(partition())
    failing = Failing([fault], store.database)
    return operator_stores(briefly_patient(failing, patience), STREAM, ()), failing


@pytest.mark.parametrize("what", READS)
def test_a_read_of_operators_and_the_watch_outlasts_a_deadlock_and_shows_a_lost_connection_at_once(what: str) -> None:
    desk, failing = brief_over(DEADLOCK, timedelta(seconds=20))
    READS[what](desk)
    assert len(failing.calls) > 1
    for fault, patience in ((CUT, timedelta(hours=1)), (DEADLOCK, timedelta())):
        desk, failing = brief_over(fault, patience)
        with pytest.raises(type(fault)):
            READS[what](desk)
        assert len(failing.calls) == 1


def test_a_timer_outlasts_a_deadlock() -> None:
    brief = briefly_patient(Failing([DEADLOCK, None, DEADLOCK], MemoryStore().open().database), timedelta(seconds=20))
    assert Aggregations(brief).read_runs("a job", 9, 9) == ()
    moved_at = instant_text(datetime.now(UTC))
    assert write(brief, "a test", "note_task_fault", task_id="1", fault="", moved_at=moved_at) == []
