"""core/store/database.py: wait while nothing was written, within a set patience, and never otherwise."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest

from core.errors import (
    CheckpointConflict,
    CommitOutcomeUnknown,
    DataRefused,
    SchemaMismatch,
    StoreUnavailable,
    StoreUnreachable,
)
from core.store.database import FIRST_PAUSE, LONGEST_PAUSE, PatientDatabase, Waiting, invocation, write
from core.store.script import Named, Outcome, Script, Step
from tests.fakes.builders import FakeClock, partition

AWAY = StoreUnavailable("the database does not answer")
OUTAGE = [AWAY] * 500  # longer than any patience here
SCRIPT = Script("a test", (Step("close_gaps", {}),))
DONE = Outcome({"commit_number": 1}, [(1,)])


class Failing:
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
        self.clock, self.failing = FakeClock(), Failing(faults)
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
