import asyncio
import itertools
import json
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from azure.functions.meta import Datum

from local.functions_host.durable.commits import EpisodeCommit, Outgoing
from local.functions_host.durable.engine import PAUSE_AFTER_FAULT, Engine, Surroundings
from local.functions_host.durable.entities import signal
from local.functions_host.durable.instances import NewInstance, Status
from local.functions_host.durable.options import DurableOptions
from local.functions_host.durable.store import DurableStore
from local.functions_host.invoker import Invoker
from local.functions_host.worker import Invocation, Outcome
from tests.unit.local.functions_host.doubles import NOON, ManualClock, ScriptedWorker, eventually
from tests.unit.local.functions_host.durable.doubles import FUNCTIONS, activity, all_of, timer

pytestmark = pytest.mark.asyncio


class World:
    """An engine whose orchestrator always sends `actions`, and is done once `is_done` says so."""

    def __init__(self, store: DurableStore, actions: list[Any]) -> None:
        self.store = store
        self.actions = actions
        self.clock = ManualClock()
        self.running: dict[str, int] = {}
        self.most: dict[str, int] = {}
        self.asked: list[str] = []
        self.held = {"work"}
        self.free = asyncio.Event()
        self.free.set()

    async def answer(self, invocation: Invocation) -> Outcome:
        name = invocation.function_name
        self.asked.append(name)
        self.running[name] = self.running.get(name, 0) + 1
        self.most[name] = max(self.most.get(name, 0), self.running[name])
        await asyncio.sleep(0)
        if name in self.held:
            await self.free.wait()
        self.running[name] -= 1
        text = invocation.inputs["context"].value
        return Outcome(Datum({"caller": self.orchestrated, "counter": counted}.get(name, doubled)(text), "json"))

    def orchestrated(self, text: str) -> str:
        history = json.loads(text)["history"]
        ends = sum(each["EventType"] in (5, 6, 11) for each in history)
        wanted = len(self.actions[0]["compoundActions"]) if "compoundActions" in self.actions[0] else 1
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
        for each in instance_ids:
            self.store.create(NewInstance(each, f"x-{each}", "caller"), self.clock.now())

    def status(self, instance_id: str) -> Status:
        found = self.store.find(instance_id)
        assert found is not None
        return found.status


def doubled(text: str) -> str:
    return text + text


def counted(text: str) -> str:
    results = [{"isError": False, "result": "1"} for _ in json.loads(text)["batch"]]
    return json.dumps({"entityExists": True, "entityState": str(len(results)), "results": results})


@pytest.fixture
def store() -> DurableStore:
    return DurableStore(None)


async def test_what_was_left_by_an_earlier_process_is_taken_up(store: DurableStore) -> None:
    world = World(store, [activity()])
    world.start("one")
    async with world.engine():
        await eventually(lambda: world.status("one") is Status.COMPLETED)
    assert world.asked == ["caller", "work", "caller"]


async def test_a_started_orchestration_waits_until_the_engine_is_woken(store: DurableStore) -> None:
    world = World(store, [activity()])
    async with world.engine() as engine:
        world.start("one")
        engine.wake()
        await eventually(lambda: world.status("one") is Status.COMPLETED)


async def test_a_timer_fires_when_it_is_due_and_not_before(store: DurableStore) -> None:
    world = World(store, [timer()])
    world.start("one")
    async with world.engine():
        assert await world.clock.next_sleep() <= timedelta(hours=1)
        await world.clock.advance(timedelta(minutes=59))
        assert world.status("one") is Status.RUNNING
        await world.clock.advance(timedelta(minutes=1))
        await eventually(lambda: world.status("one") is Status.COMPLETED)


async def test_no_more_activities_run_at_once_than_allowed(store: DurableStore) -> None:
    world = World(store, [all_of(*(activity(text=str(number)) for number in range(10)))])
    world.start("one")
    async with world.engine(DurableOptions(activities=3)):
        await eventually(lambda: world.status("one") is Status.COMPLETED)
    assert world.most["work"] == 3
    assert world.asked.count("work") == 10


async def test_no_more_orchestrators_run_at_once_than_allowed_and_never_one_twice(store: DurableStore) -> None:
    world = World(store, [activity()])
    world.start(*(f"i{number}" for number in range(8)))
    async with world.engine(DurableOptions(orchestrators=2)):
        await eventually(lambda: all(world.status(f"i{number}").is_final for number in range(8)))
    assert world.most["caller"] == 2


@pytest.mark.parametrize("name", ["caller", "work"])
async def test_what_runs_is_not_begun_again(store: DurableStore, name: str) -> None:
    world = World(store, [activity()])
    world.held = {name}
    world.free.clear()
    world.start("one")
    async with world.engine() as engine:
        await eventually(lambda: world.running.get(name))
        for _ in range(10):
            engine.wake()
            await asyncio.sleep(0)
        assert world.asked.count(name) == 1


async def test_operations_reach_an_entity_in_batches_of_the_size_that_is_set(store: DurableStore) -> None:
    world = World(store, [activity()])
    for number in range(5):
        store.send(Outgoing("@counter@k", None, signal("add", str(number), None), NOON))
    async with world.engine(DurableOptions(entity_batch=2)):
        await eventually(lambda: store.ready(NOON, 1) == [])
    assert world.asked.count("counter") == 3
    assert store.entity_state("@counter@k") == "1"


async def test_stopping_lets_activities_end_and_keeps_their_results(store: DurableStore) -> None:
    world = World(store, [activity()])
    world.free.clear()
    world.start("one")
    async with world.engine():
        await eventually(lambda: world.running.get("work"))
    assert store.activities_after(0, 10) == []
    assert len(store.read_episode("one", NOON).entries) == 1
    assert world.status("one") is Status.RUNNING


async def test_an_instance_that_is_purged_while_its_turn_runs_stays_gone(store: DurableStore) -> None:
    world = World(store, [activity()])
    world.free.clear()
    world.start("one")
    async with world.engine():
        await eventually(lambda: world.running.get("work"))
        store.purge(["one"])
    assert store.find("one") is None
    assert store.ready(NOON, 10) == []


class FaultyStore(DurableStore):
    """A store of which one method fails once."""

    def __init__(self, faulty: str) -> None:
        super().__init__(None)
        self.faulty: str | None = faulty

    def fail_once(self, name: str) -> None:
        if self.faulty == name:
            self.faulty = None
            raise sqlite3.OperationalError("disk I/O error")

    def complete_activity(self, number: int, result: Outgoing) -> bool:
        self.fail_once("complete_activity")
        return super().complete_activity(number, result)

    def ready(self, now: datetime, top: int) -> Sequence[str]:
        self.fail_once("ready")
        return super().ready(now, top)

    def commit_episode(self, commit: EpisodeCommit) -> bool:
        self.fail_once("commit_episode")
        return super().commit_episode(commit)


@pytest.mark.parametrize("faulty", ["ready", "commit_episode"])
async def test_a_fault_of_the_state_is_waited_out(faulty: str) -> None:
    world = World(FaultyStore(faulty), [activity()])
    world.start("one")
    async with world.engine():
        assert await world.clock.next_sleep() == PAUSE_AFTER_FAULT
        await world.clock.advance(PAUSE_AFTER_FAULT)
        await eventually(lambda: world.status("one") is Status.COMPLETED)
    assert world.asked.count("work") == 1


async def test_an_activity_whose_result_could_not_be_written_runs_again() -> None:
    world = World(FaultyStore("complete_activity"), [activity()])
    world.start("one")
    async with world.engine():
        assert await world.clock.next_sleep() == PAUSE_AFTER_FAULT
        await world.clock.advance(PAUSE_AFTER_FAULT)
        await eventually(lambda: world.status("one") is Status.COMPLETED)
    assert world.asked.count("work") == 2


async def test_an_orchestrator_that_waits_for_nothing_is_logged(
    store: DurableStore, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(store, [{"actionType": 9, "instanceId": "@counter@k", "operation": "add", "input": "1"}])
    world.start("one")
    async with world.engine():
        await eventually(lambda: any(vars(each).get("action") == "orchestration_stuck" for each in caplog.records))
