import asyncio
import itertools
import json
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from azure.functions.meta import Datum

from local.functions_host.durable import instances
from local.functions_host.durable.engine import PAUSE_AFTER_FAULT, Engine, Surroundings
from local.functions_host.durable.instances import EpisodeCommit, EventType, NewInstance, Outgoing, Status, event
from local.functions_host.durable.store import DurableStore
from local.functions_host.invoker import Invocation, InvocationResult, Invoker
from local.functions_host.settings import DurableOptions
from tests.afterwards import after_the_test
from tests.local.functions_host.doubles import NOON, ManualClock, ScriptedWorker, eventually
from tests.local.functions_host.durable.doubles import FUNCTIONS, activity, all_of, completed, timer


class World:
    """An engine whose orchestrator always returns `actions`, and is done when all of them have ended."""

    def __init__(self, *actions: Any, store: DurableStore | None = None, clock: ManualClock | None = None) -> None:
        self.store = store or DurableStore(None)
        after_the_test(self.store.close)
        self.actions = actions
        self.clock = clock or ManualClock()
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
        return InvocationResult(Datum(self.orchestrated(text) if name == "caller" else text, "json"))

    def orchestrated(self, text: str) -> str:
        ends = sum(each["EventType"] in (5, 6, 11) for each in json.loads(text)["history"])
        wanted = len(self.actions[0].get("compoundActions", ["itself"]))
        return json.dumps({"isDone": ends >= wanted, "schemaVersion": 2, "actions": [self.actions], "output": ends})

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

    async def completed(self, *instance_ids: str) -> None:
        def all_are() -> bool:
            found = map(self.store.find, instance_ids or ("one",))
            return all(one and one.status is Status.COMPLETED for one in found)

        await eventually(all_are)


@pytest.mark.asyncio
async def test_a_timer_that_falls_due_while_the_engine_looks_for_work_fires() -> None:
    clock = ManualClock()

    class SlowStore(DurableStore):
        def activities_after(self, number: int, top: int) -> Sequence[instances.ActivityDue]:
            if (due_at := self.next_due_at(clock.now())) is not None:
                clock.pass_time(due_at - clock.now())
            return super().activities_after(number, top)

    world = World(timer(), store=SlowStore(None), clock=clock)
    world.start()
    async with world.engine():
        await world.completed()


@pytest.mark.asyncio
async def test_activities_and_orchestrators_run_at_once_up_to_their_limits_and_never_one_twice() -> None:
    world = World(all_of(*(activity(text=str(number)) for number in range(10))))
    names = [f"i{number}" for number in range(8)]
    world.start(*names)
    async with world.engine(DurableOptions(activities=3, orchestrators=2)):
        await world.completed(*names)
    assert world.peak == {"caller": 2, "work": 3}
    assert world.called.count("work") == 80


class FaultyStore(DurableStore):
    def __init__(self, faulty: str) -> None:
        super().__init__(None)
        works = getattr(self, faulty)

        def fail(*_: object) -> None:
            setattr(self, faulty, works)
            raise sqlite3.OperationalError("disk I/O error")

        setattr(self, faulty, fail)


@pytest.mark.asyncio
@pytest.mark.parametrize(("faulty", "calls"), [("ready", 1), ("commit_episode", 1), ("complete_activity", 2)])
async def test_the_engine_waits_out_a_fault_of_the_state(faulty: str, calls: int) -> None:
    world = World(activity(), store=FaultyStore(faulty))
    world.start()
    async with world.engine():
        assert await world.clock.next_sleep() == PAUSE_AFTER_FAULT
        await world.clock.advance(PAUSE_AFTER_FAULT)
        await world.completed()
    assert world.called.count("work") == calls


NEW = NewInstance("one", "execution", "caller", "1")
ORDER = instances.ActivityOrder("one", "execution", 0, "work", "1")


@pytest.fixture
def store() -> Iterator[DurableStore]:
    store = DurableStore(None)
    store.create(NEW, NOON)
    yield store
    store.close()


def commit(**changes: Any) -> EpisodeCommit:
    turn = [event(EventType.ORCHESTRATOR_STARTED), event(EventType.EXECUTION_STARTED, Name="caller")]
    return replace(EpisodeCommit("one", "execution", NOON, Status.RUNNING, (), events=turn), **changes)


def test_a_turn_that_cannot_be_written_whole_or_whose_execution_is_gone_leaves_nothing(store: DurableStore) -> None:
    with pytest.raises(Exception, match="UNIQUE"):
        store.commit_episode(commit(consumed=[1], activities=[ORDER, ORDER]))
    assert store.history("one") == []
    assert len(store.read_episode("one", NOON).entries) == 1
    assert store.commit_episode(commit(consumed=[1]))
    store.purge("one")
    assert not store.commit_episode(commit(past=2))
    assert store.history("one") == []
    store.create(replace(NEW, execution_id="other"), NOON)
    assert not store.commit_episode(commit(past=2))


def test_a_result_is_delivered_once_and_its_activity_stays_due_until_it_is_written(store: DurableStore) -> None:
    assert store.commit_episode(commit(consumed=[1], activities=[ORDER]))
    (due,) = store.activities_after(0, 10)
    with pytest.raises(TypeError):
        store.complete_activity(due.number, Outgoing("one", "execution", {"Result": object()}, NOON))
    assert list(store.activities_after(0, 10)) == [due]
    result = Outgoing("one", "execution", completed(0), NOON)
    assert store.complete_activity(due.number, result)
    assert not store.complete_activity(due.number, result)
    assert len(store.read_episode("one", NOON).entries) == 1
