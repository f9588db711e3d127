"""core/store/database.py and connect.py: the clock of the database, and the patience of a call."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.aggregation.store import Aggregations
from core.errors import (
    CheckpointConflict,
    CommitOutcomeUnknown,
    DataRefused,
    SchemaMismatch,
    StoreUnavailable,
    StoreUnreachable,
)
from core.model.ports import Clock
from core.store.columns import instant_text
from core.store.connect import briefly_patient
from core.store.database import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    OF_BATCHES,
    OF_LETTERS,
    Database,
    PatientDatabase,
    Waiting,
    invocation,
    store_clock,
    write,
)
from core.store.script import Named, Outcome, Script, Step
from core.store.sqlserver.connections import FIRST_RECONNECT, Access
from core.store.sqlserver.database import SqlServerDatabase
from tests.fakes.builders import EPOCH, STREAM, FakeClock, partition, stamps
from tests.fakes.faulty_database import NotedDatabase
from tests.fakes.memory_store import MemoryStore
from tests.fakes.odbc_driver import FakeDriver
from tests.fakes.operator_stores import OperatorStores, operator_stores

AWAY = StoreUnavailable("the database does not answer")
OUTAGE = [AWAY] * 500  # longer than any patience here
SCRIPT = Script("a test", (Step("close_gaps", {}),))
DONE = Outcome({"commit_number": 1}, [(1,)])


class Scripted:
    """A database that raises these errors, one a call, and then answers."""

    def __init__(self, faults: Iterable[Exception]) -> None:
        self._faults = iter(faults)
        self.calls: list[Any] = []

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        self._call("ask", statement, values)
        return [(1,)]

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        self._call("run", script, rehearse)
        return DONE

    def close(self) -> None:
        self.calls.append("close")

    def _call(self, *call: Any) -> None:
        self.calls.append(call)
        fault = next(self._faults, None)
        if fault is not None:
            raise fault


class World:
    """A patient database over a failing one, on a fake clock."""

    def __init__(self, faults: Iterable[Exception] = (), patience: float = 20.0, chance: float = 1.0) -> None:
        self.clock, self.failing = FakeClock(), Scripted(faults)
        waiting = Waiting(self.clock.monotonic, self.clock.sleep, lambda: chance)
        self.database = PatientDatabase(self.failing, timedelta(seconds=patience), waiting)


def test_a_call_that_succeeds_does_not_wait() -> None:
    world = World()
    assert world.database.run(SCRIPT) == DONE
    assert world.clock.slept == []


def test_each_pause_is_twice_the_one_before_up_to_the_longest() -> None:
    world = World([AWAY] * 8, patience=60)
    assert world.database.run(SCRIPT) == DONE
    assert world.clock.slept == [min(FIRST_PAUSE * 2**at, LONGEST_PAUSE) for at in range(8)]


def test_pauses_are_shortened_by_chance() -> None:
    world = World([AWAY] * 3, chance=0.5)
    world.database.run(SCRIPT)
    assert world.clock.slept == [FIRST_PAUSE / 2, FIRST_PAUSE, FIRST_PAUSE * 2]


@pytest.mark.parametrize("patience", [1.0, 5.0, 20.0])
def test_patience_ends_and_the_fault_goes_on(patience: float) -> None:
    world = World(OUTAGE, patience)
    with pytest.raises(StoreUnavailable):
        world.database.run(SCRIPT)
    assert patience - LONGEST_PAUSE <= world.clock.seconds <= patience


def test_without_patience_a_fault_goes_on_at_once() -> None:
    world = World([AWAY], patience=0)
    with pytest.raises(StoreUnavailable):
        world.database.run(SCRIPT)
    assert (world.clock.slept, len(world.failing.calls)) == ([], 1)


def test_each_call_has_a_patience_of_its_own() -> None:
    world = World(OUTAGE, patience=5)
    for _ in range(2):
        began = world.clock.seconds
        with pytest.raises(StoreUnavailable):
            world.database.ask("find_stream")
        assert world.clock.seconds - began > 5 - LONGEST_PAUSE


def test_every_call_is_made_again_as_it_was() -> None:
    world = World([AWAY, AWAY, None, AWAY, None, AWAY])  # type: ignore[list-item]
    assert world.database.ask("find_stream", event_hub="a", consumer_group="b") == [(1,)]
    assert world.database.run(SCRIPT, rehearse=True) == DONE
    assert write(world.database, "a test", "close_gaps", stream_id=1) == [(1,)]
    written = Script("a test", (Step("close_gaps", {"stream_id": 1}, answers=True),), may_repeat=True)
    asked = ("ask", "find_stream", {"event_hub": "a", "consumer_group": "b"})
    assert world.failing.calls == [*[asked] * 3, *[("run", SCRIPT, True)] * 2, *[("run", written, False)] * 2]


@pytest.mark.parametrize(
    "error",
    [
        CommitOutcomeUnknown("it was not answered"),
        CheckpointConflict(partition(), None),
        DataRefused("too long"),
        SchemaMismatch("too old"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_any_other_error_goes_on_at_once(error: Exception) -> None:
    world = World([error])
    with pytest.raises(type(error)):
        world.database.run(SCRIPT)
    assert (len(world.failing.calls), world.clock.slept) == (1, [])


def test_a_fault_of_the_connection_is_waited_for_as_long_as_it_says_and_a_little_longer_by_chance() -> None:
    world = World([StoreUnreachable("no answer", pause) for pause in (5.0, 10.0)], patience=60, chance=0.0)
    assert world.database.run(SCRIPT) == DONE
    assert world.clock.slept == [5.0, 10.0]
    world = World([StoreUnreachable("no answer", 5.0)], chance=1.0)
    world.database.run(SCRIPT)
    assert world.clock.slept == [6.25]


def test_a_pause_that_patience_does_not_reach_is_not_begun() -> None:
    world = World([StoreUnreachable("no answer", 20.0)], patience=20)
    with pytest.raises(StoreUnreachable):
        world.database.run(SCRIPT)
    assert world.clock.slept == []


def test_no_pause_ends_after_the_invocation_however_many_calls_it_makes() -> None:
    world = World(OUTAGE, patience=20)
    with invocation(timedelta(seconds=50), world.clock.monotonic):
        for _ in range(10):
            with pytest.raises(StoreUnavailable):
                world.database.ask("find_stream")
    assert 50 - LONGEST_PAUSE <= world.clock.seconds < 50
    with pytest.raises(StoreUnavailable):
        world.database.ask("find_stream")
    assert world.clock.seconds > 60  # outside of an invocation, patience is whole


def test_a_call_at_the_end_of_an_invocation_is_tried_once() -> None:
    world = World([AWAY])
    with invocation(timedelta(seconds=5), world.clock.monotonic):
        world.clock.advance(5)
        with pytest.raises(StoreUnavailable):
            world.database.ask("find_stream")
        assert world.database.ask("find_stream") == [(1,)]
    assert world.clock.slept == []


def test_closing_closes_the_database() -> None:
    world = World()
    world.database.close()
    assert world.failing.calls == ["close"]


WRONG = EPOCH - timedelta(days=400)


class Clocks:
    """A process whose own clock is wrong, and a database whose clock is `there`."""

    def __init__(self) -> None:
        self.here, self.there = FakeClock(), FakeClock()
        self.database = NotedDatabase(MemoryStore(now=self.there.now).database)
        self.own = Clock(lambda: WRONG, stamps().new_id)

    def clock(self, age: timedelta = OF_BATCHES) -> Clock:
        return store_clock(self.database, self.own, age, self.here.monotonic)

    def pass_by(self, seconds: float) -> None:
        self.here.advance(seconds)
        self.there.advance(seconds)


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


def test_the_time_is_that_of_the_database_and_goes_on_between_two_readings(clocks: Clocks) -> None:
    clock = clocks.clock()
    for _ in range(600):
        assert clock.now() == clocks.there.now()
        clocks.pass_by(0.5)
    assert clocks.database.calls == ["read_time"] * 5  # one a minute


@pytest.mark.parametrize("seconds", [-86_400, -3_600, 3_600, 86_400])
def test_a_change_of_the_clock_of_the_database_is_seen_at_the_next_reading(clocks: Clocks, seconds: float) -> None:
    of_batches, of_letters = clocks.clock(), clocks.clock(OF_LETTERS)
    assert of_batches.now() == of_letters.now()
    clocks.there.advance(seconds)
    clocks.pass_by(1)
    assert of_letters.now() == clocks.there.now()
    assert of_batches.now() == clocks.there.now() - timedelta(seconds=seconds)
    clocks.pass_by(59)
    assert of_batches.now() == clocks.there.now()


def test_without_the_database_there_is_no_time_once_the_last_reading_is_too_old(clocks: Clocks) -> None:
    clock = clocks.clock()
    clock.now()
    clocks.database.out = {"read_time"}
    clocks.pass_by(59)
    assert clock.now() == clocks.there.now()
    clocks.pass_by(1)
    with pytest.raises(StoreUnavailable):
        clock.now()


def test_ids_and_chance_stay_those_of_the_process(clocks: Clocks) -> None:
    assert (clocks.clock().new_id, clocks.clock().chance) == (clocks.own.new_id, clocks.own.chance)


def test_the_time_of_a_server_is_read_from_the_server() -> None:
    driver = FakeDriver()
    driver.server.now = lambda: WRONG.replace(tzinfo=None)
    database = SqlServerDatabase("SERVER=host;UID=app;PWD=secret", access=Access(lambda: driver))
    assert store_clock(database, stamps(), monotonic=lambda: 0.0).now() == WRONG


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
