import asyncio
import itertools
import json
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from azure.functions.meta import Datum

from local.functions_host.durable.engine import PAUSE_AFTER_FAULT, Engine, Surroundings
from local.functions_host.durable.instances import ActivityDue, NewInstance, Outgoing, Status
from local.functions_host.durable.store import DurableStore
from local.functions_host.invoker import Invocation, InvocationResult, Invoker
from local.functions_host.settings import DurableOptions
from tests.afterwards import after_the_test
from tests.local.functions_host.doubles import NOON, ManualClock, ScriptedWorker, eventually
from tests.local.functions_host.durable.doubles import FUNCTIONS, activity, all_of, timer

pytestmark = pytest.mark.asyncio


class World:
    """An engine whose orchestrator always returns `actions`, and is done when all of them have ended."""

    def __init__(self, *actions: Any, store: DurableStore | None = None) -> None:
        self.store = store or DurableStore(None)
        after_the_test(self.store.close)
        self.actions = actions
        self.clock = ManualClock()
        self.running: dict[str, int] = {}
        self.peak: dict[str, int] = {}
        self.called: list[str] = []
        self.held = {"work"}
        self.free = asyncio.Event()
        self.free.set()

    async def answer(self, invocation: Invocation) -> InvocationResult:
        name = invocation.function_name
        self.called.append(name)
        self.running[name] = self.running.get(name, 0) + 1
        self.peak[name] = max(self.peak.get(name, 0), self.running[name])
        await asyncio.sleep(0)
        if name in self.held:
            await self.free.wait()
        self.running[name] -= 1
        text = invocation.inputs["context"].value
        return InvocationResult(Datum({"caller": self.orchestrated}.get(name, doubled)(text), "json"))

    def orchestrated(self, text: str) -> str:
        ends = sum(each["EventType"] in (5, 6, 11) for each in json.loads(text)["history"])
        wanted = len(self.actions[0].get("compoundActions", ["itself"]))
        state = {"isDone": ends >= wanted, "schemaVersion": 2, "actions": [self.actions], "output": ends}
        return json.dumps(state)

    @asynccontextmanager
    async def engine(self, options: DurableOptions | None = None) -> AsyncIterator[Engine]:
        invoker = Invoker(ScriptedWorker(self.answer), self.clock, lambda: 0.5, None)
        ids = itertools.count()
        around = Surroundings(self.store, invoker, FUNCTIONS, self.clock, lambda: f"id{next(ids)}")
        engine = Engine(around, options or DurableOptions())
        engine.start()
        try:
            yield engine
        finally:
            self.free.set()
            await engine.stop()

    def start(self, *instance_ids: str) -> None:
        for each in instance_ids or ("one",):
            self.store.create(NewInstance(each, f"x-{each}", "caller"), self.clock.now())

    def status(self, instance_id: str = "one") -> Status:
        found = self.store.find(instance_id)
        assert found is not None
        return found.status

    async def completed(self) -> None:
        await eventually(lambda: self.status() is Status.COMPLETED)

    async def runs(self, name: str) -> None:
        await eventually(lambda: self.running.get(name))


def doubled(text: str) -> str:
    return text + text


@pytest.fixture
def world() -> World:
    return World(activity())


async def test_a_timer_that_falls_due_while_the_engine_looks_for_work_fires() -> None:
    clock = ManualClock()

    class SlowStore(DurableStore):
        def activities_after(self, number: int, top: int) -> Sequence[ActivityDue]:
            if (due_at := self.next_due_at(clock.now())) is not None:
                clock.pass_time(due_at - clock.now())
            return super().activities_after(number, top)

    world = World(timer(), store=SlowStore(None))
    world.clock = clock
    world.start()
    async with world.engine():
        await world.completed()


async def test_an_activity_that_ended_before_the_clock_is_set_back_is_answered_at_once() -> None:
    clock = ManualClock()

    class LateStore(DurableStore):
        def complete_activity(self, number: int, outgoing: Outgoing) -> bool:
            done = super().complete_activity(number, outgoing)
            clock.pass_time(-timedelta(hours=1))
            return done

    world = World(activity(), store=LateStore(None))
    world.clock = clock
    world.start()
    clock.pass_time(timedelta(hours=1))
    async with world.engine():
        await world.completed()


async def test_activities_run_at_once_up_to_their_limit() -> None:
    world = World(all_of(*(activity(text=str(number)) for number in range(10))))
    world.start()
    async with world.engine(DurableOptions(activities=3)):
        await world.completed()
    assert world.peak["work"] == 3
    assert world.called.count("work") == 10


async def test_orchestrators_run_at_once_up_to_their_limit_and_never_one_twice(world: World) -> None:
    names = [f"i{number}" for number in range(8)]
    world.start(*names)
    async with world.engine(DurableOptions(orchestrators=2)):
        await eventually(lambda: all(world.status(name).is_final for name in names))
    assert world.peak["caller"] == 2


@pytest.mark.parametrize("name", ["caller", "work"])
async def test_running_work_is_not_begun_again(world: World, name: str) -> None:
    world.held = {name}
    world.free.clear()
    world.start()
    async with world.engine() as engine:
        await world.runs(name)
        for _ in range(10):
            engine.wake()
            await asyncio.sleep(0)
        assert world.called.count(name) == 1


async def test_an_instance_that_is_purged_while_its_turn_runs_stays_gone(world: World) -> None:
    world.free.clear()
    world.start()
    async with world.engine():
        await world.runs("work")
        world.store.purge("one")
    assert world.store.find("one") is None
    assert world.store.ready(NOON, 10) == []


class FaultyStore(DurableStore):
    """A store of which one method fails once."""

    def __init__(self, faulty: str) -> None:
        super().__init__(None)
        self._works = getattr(self, faulty)
        setattr(self, faulty, self._fail)
        self._faulty = faulty

    def _fail(self, *_: object) -> None:
        setattr(self, self._faulty, self._works)
        raise sqlite3.OperationalError("disk I/O error")


@pytest.mark.parametrize(("faulty", "calls"), [("ready", 1), ("commit_episode", 1), ("complete_activity", 2)])
async def test_the_engine_waits_out_a_fault_of_the_state_and_repeats_an_activity_without_a_stored_result(
    faulty: str, calls: int
) -> None:
    world = World(activity(), store=FaultyStore(faulty))
    world.start()
    async with world.engine():
        assert await world.clock.next_sleep() == PAUSE_AFTER_FAULT
        await world.clock.advance(PAUSE_AFTER_FAULT)
        await world.completed()
    assert world.called.count("work") == calls
