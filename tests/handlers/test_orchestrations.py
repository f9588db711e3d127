"""handlers/tasks.py: the app's orchestrations in our engine, whose timers and deaths are like Azure's."""

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import azure.durable_functions as df
import pytest
from azure.functions.meta import Datum

from core.letters.retry import LONGEST_CHAIN
from core.store.sqlserver.connections import Deadlines
from handlers.dead_letters import keep_dead_letters, keep_running
from handlers.tasks import PAUSE, SECOND, SLICE, STALLED_AFTER, VISIBILITY, drive, drive_task
from local.functions_host.durable.engine import Engine, Surroundings
from local.functions_host.durable.functions import DurableFunctions
from local.functions_host.durable.instances import EventType, Instance, NewInstance, Outgoing, Status, control, stamped
from local.functions_host.durable.store import REMOVE_ACTIVITY, DurableStore
from local.functions_host.function import describe_function
from local.functions_host.invoker import Invocation, InvocationResult, Invoker
from local.functions_host.json_sections import parse_time_span
from local.functions_host.settings import DurableOptions
from tests.afterwards import after_the_test
from tests.fakes.durable import OrchestrationContext
from tests.local.functions_host.doubles import NOON, ScriptedWorker, eventually

ROOT = Path(__file__).resolve().parents[2]
DEATH = "WorkerProcessExitException: python exited with code 137"
ORCHESTRATORS: Mapping[str, Any] = {
    one.__name__: df.Orchestrator.create(one) for one in (keep_dead_letters, drive_task)
}
ACTIVITIES = ("find_wait", "claim_letters", "retry_letters", "open_task", "task_slice")
FUNCTIONS = DurableFunctions(
    [
        describe_function(name, [f'{{"name": "context", "type": "{kind}", "direction": "IN"}}'], None)
        for kind, names in (("orchestrationTrigger", ORCHESTRATORS), ("activityTrigger", ACTIVITIES))
        for name in names
    ]
)
TASK = "6f1e2f2b-52c8-4c5f-9d0a-0d8d3a3b9b11"
INSTANCES = {"keep_dead_letters": "dead-letters-1", "drive_task": f"task-{TASK}"}
TOGETHER = [{"sequence_numbers": [number], "alone": False} for number in (1, 2)]
ALONE = {"sequence_numbers": [3], "alone": True}


class BusyClock:
    """Time that passes by itself: a little with each look, and a sleep at once."""

    def __init__(self) -> None:
        self._now = NOON

    def now(self) -> datetime:
        self._now += timedelta(milliseconds=5)
        return self._now

    async def sleep(self, delay: timedelta) -> None:
        self._now += delay
        await asyncio.sleep(0)


class LossyStore(DurableStore):
    """Durable's storage; it loses an activity when told to, as one that is killed hard does."""

    loses_next = False

    def complete_activity(self, number: int, result: Outgoing) -> bool:
        if not self.loses_next:
            return super().complete_activity(number, result)
        self.loses_next = False
        self._database.execute(REMOVE_ACTIVITY, (number,))
        return False


@dataclass
class World:
    """Our engine with the app's orchestrations. An activity answers by its name; a name in `dying` dies once, and the
    answer of a name in `losing` is lost once."""

    answers: Mapping[str, Callable[[Any], Any]]
    dying: list[str] = field(default_factory=list)
    losing: list[str] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    clock: BusyClock = field(default_factory=BusyClock)
    store: "LossyStore" = field(default_factory=lambda: LossyStore(None))
    wake: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        after_the_test(self.store.close)

    async def answer(self, invocation: Invocation) -> InvocationResult:
        name, text = invocation.function_name, invocation.inputs["context"].value
        if name in self.dying:
            self.dying.remove(name)
            return InvocationResult(error=DEATH)
        if name in ORCHESTRATORS:
            return InvocationResult(Datum(ORCHESTRATORS[name](text), "json"))
        if name in self.losing:
            self.losing.remove(name)
            self.store.loses_next = True
        self.calls[name] += 1
        return InvocationResult(Datum(json.dumps(self.answers[name](json.loads(text or "null"))), "json"))

    @asynccontextmanager
    async def running(self, orchestration: str, instance_id: str) -> AsyncIterator[None]:
        ids = itertools.count()
        invoker = Invoker(ScriptedWorker(self.answer), self.clock, lambda: 0.5, None)
        around = Surroundings(self.store, invoker, FUNCTIONS, self.clock, lambda: f"id{next(ids)}")
        engine = Engine(around, DurableOptions())
        self.wake = engine.wake
        self.start(orchestration, instance_id, TASK)
        engine.start()
        try:
            yield
        finally:
            await engine.stop()

    def start(self, orchestration: str, instance_id: str, given: object) -> None:
        new = NewInstance(instance_id, f"execution of {instance_id}", orchestration, json.dumps(json.dumps(given)))
        self.store.create(new, self.clock.now())
        self.wake()

    def control(self, kind: EventType, instance_id: str) -> None:
        now = self.clock.now()
        self.store.send(Outgoing(instance_id, None, stamped(control(kind, "why"), now), now))
        self.wake()

    def is_quiet(self) -> bool:
        """True when no orchestration has an event that is due, and no activity runs or waits."""
        return not self.store.ready(self.clock.now(), 1) and not self.store.activities_after(0, 1)

    def instance(self, instance_id: str) -> Instance:
        found = self.store.find(instance_id)
        assert found is not None
        return found


def letters(wait: float = 0.0) -> dict[str, Callable[[Any], Any]]:
    """Return the activities of a keeper that always has letters due, or always waits."""
    return {"find_wait": lambda _: wait, "claim_letters": lambda _: [*TOGETHER, ALONE], "retry_letters": lambda _: {}}


@pytest.mark.asyncio
@pytest.mark.parametrize("look", [0.1, 3.7])
async def test_a_keeper_sets_no_more_timers_than_it_has_looks(look: float) -> None:
    """Set at the wanted time, a look of 1 s takes over 1,200 timers here; the real host had 1,952 in 127 s."""
    world, span = World(letters(look)), 127
    async with world.running("keep_dead_letters", "dead-letters-1"):
        await eventually(lambda: (world.clock._now - NOON).total_seconds() > span)
    assert span / (max(look, 1) + 2) <= world.calls["find_wait"] <= span / max(look, 1)


@pytest.mark.asyncio
async def test_a_look_never_comes_before_the_letter_is_due() -> None:
    looks: list[datetime] = []
    world = World({"find_wait": lambda _: looks.append(world.clock._now) or 2.3})  # type: ignore[func-returns-value]
    async with world.running("keep_dead_letters", "dead-letters-1"):
        await eventually(lambda: len(looks) > 10)
    waits = [after - before for before, after in itertools.pairwise(looks)]
    assert all(timedelta(seconds=2.3) <= wait <= timedelta(seconds=2.3) + SECOND for wait in waits)


@pytest.mark.asyncio
@pytest.mark.parametrize("dying", [["find_wait"], ["claim_letters"], ["retry_letters"], ["retry_letters"] * 3])
async def test_the_death_of_a_worker_costs_the_keeper_a_round(dying: list[str]) -> None:
    world = World(letters(), list(dying))
    async with world.running("keep_dead_letters", "dead-letters-1"):
        await eventually(lambda: not world.dying and world.calls["retry_letters"] > 9)
        assert world.instance("dead-letters-1").status is Status.RUNNING


PARTS: dict[str, Callable[[Any], Any]] = {
    "open_task": lambda _: {"parts": ["0", "1", "2"]},
    "task_slice": lambda _: {"ok": {}},
}


@pytest.mark.asyncio
@pytest.mark.parametrize("dying", [["open_task"], ["task_slice"], ["task_slice"] * 3])
async def test_the_death_of_a_worker_costs_a_task_a_pause(dying: list[str]) -> None:
    world, instance_id = World(PARTS, list(dying)), INSTANCES["drive_task"]
    async with world.running("drive_task", instance_id):
        await eventually(lambda: not world.dying and world.calls["task_slice"] > 9)
        assert world.instance(instance_id).status is Status.RUNNING
        assert world.clock._now - NOON >= PAUSE


class Client:
    """The Durable client of the world's task hub."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def get_status(self, instance_id: str) -> Any:
        found = self._world.instance(instance_id)
        return SimpleNamespace(
            runtime_status=df.OrchestrationRuntimeStatus(found.status.value),
            last_updated_time=found.updated_at,
            custom_status=found.custom_status and json.loads(found.custom_status),
        )

    async def start_new(self, name: str, instance_id: str, client_input: str = "") -> None:
        self._world.start(name, instance_id, client_input)

    async def terminate(self, instance_id: str, reason: str) -> None:
        self._world.control(EventType.EXECUTION_TERMINATED, instance_id)

    async def resume(self, instance_id: str, reason: str) -> None:
        self._world.control(EventType.EXECUTION_RESUMED, instance_id)


async def watch(world: World, orchestration: str) -> str:
    """Do as the timer of an orchestration does; return the id of the instance."""
    client, now = Client(world), world.clock.now()
    if orchestration == "keep_dead_letters":
        await keep_running(client, "dead-letters-1", now, SECOND, STALLED_AFTER)
        return "dead-letters-1"
    await drive(client, TASK)
    return INSTANCES["drive_task"]


@pytest.mark.asyncio
@pytest.mark.parametrize("orchestration", [*ORCHESTRATORS])
async def test_an_orchestration_that_fails_in_its_own_turn_is_started_again_by_its_timer(orchestration: str) -> None:
    """No orchestrator can catch the death of the worker that runs it; in Azure it fails as Non-Deterministic."""
    world = World({**letters(), **PARTS}, [orchestration])
    async with world.running(orchestration, instance_id := INSTANCES[orchestration]):
        await eventually(lambda: world.instance(instance_id).status is Status.FAILED)
        assert not world.calls
        assert await watch(world, orchestration) == instance_id
        await eventually(lambda: world.calls.total() > 9)
        assert world.instance(instance_id).status is Status.RUNNING


@pytest.mark.asyncio
@pytest.mark.parametrize("activity", ["find_wait", "claim_letters", "retry_letters"])
async def test_a_keeper_that_lost_an_activity_goes_on_after_its_timer_ended_it(activity: str) -> None:
    world, instance_id = World(letters(), losing=[activity]), "dead-letters-1"
    async with world.running("keep_dead_letters", instance_id):
        await eventually(lambda: not world.losing and world.is_quiet())
        before = world.calls.total()
        await world.clock.sleep(STALLED_AFTER)
        await eventually(world.is_quiet)
        assert (world.instance(instance_id).status, world.calls.total()) == (Status.RUNNING, before)
        await watch(world, "keep_dead_letters")
        await eventually(lambda: world.instance(instance_id).status is Status.TERMINATED)
        await watch(world, "keep_dead_letters")
        await eventually(lambda: world.calls["retry_letters"] > 9)


@pytest.mark.asyncio
@pytest.mark.parametrize("orchestration", [*ORCHESTRATORS])
async def test_an_orchestration_that_was_suspended_goes_on_when_the_app_resumes_it(orchestration: str) -> None:
    world, instance_id = World({**letters(), **PARTS}), INSTANCES[orchestration]
    async with world.running(orchestration, instance_id):
        world.control(EventType.EXECUTION_SUSPENDED, instance_id)
        await eventually(lambda: world.instance(instance_id).status is Status.SUSPENDED)
        await watch(world, orchestration)
        before = world.calls.total()
        await eventually(lambda: world.calls.total() > before + 9)
        assert world.instance(instance_id).status is Status.RUNNING


FOREIGN: Mapping[str, tuple[str, str, object]] = {
    "a task that is no id": ("drive_task", "task-job", "job"),
    "a task without an id": ("drive_task", "task-None", None),
    "a number": ("drive_task", "task-7", 7),
    "a list": ("drive_task", "task-[]", []),
    "an id in capitals": ("drive_task", f"task-{TASK.upper()}", TASK.upper()),
    "a task under another name": ("drive_task", "mine", TASK),
    "a keeper under another name": ("keep_dead_letters", "mine", None),
    "a keeper of no incarnation": ("keep_dead_letters", "dead-letters-", "job"),
    "a second keeper of an incarnation": ("keep_dead_letters", "dead-letters-01", None),
    "a keeper of an odd incarnation": ("keep_dead_letters", "dead-letters-\u0663", None),
}


@pytest.mark.parametrize("foreign", FOREIGN)
def test_an_instance_that_the_app_did_not_start_ends_at_once_with_a_line(
    foreign: str, caplog: pytest.LogCaptureFixture
) -> None:
    orchestration, instance_id, given = FOREIGN[foreign]
    context = OrchestrationContext(instance_id, given)
    work = drive_task(context) if orchestration == "drive_task" else keep_dead_letters(context)
    with pytest.raises(StopIteration, match="the app did not start this instance"):
        next(work)
    lines = [vars(one) for one in caplog.records if one.name == "hubledger.tasks"]
    assert [(one["instance_id"], one["error"]) for one in lines] == [(instance_id, f"input {given!r}")]


def test_an_activity_ends_before_its_message_is_seen_again() -> None:
    durable = json.loads((ROOT / "host.json").read_text())["extensions"]["durableTask"]
    for queue in ("workItemQueueVisibilityTimeout", "controlQueueVisibilityTimeout"):
        assert parse_time_span(durable["storageProvider"][queue]) == VISIBILITY
    longest = Deadlines()
    assert longest.statement is not None
    assert max(SLICE, LONGEST_CHAIN) + longest.sign_in + longest.statement < VISIBILITY


def test_the_warning_about_tracing_is_silenced_and_nothing_more() -> None:
    durable = json.loads((ROOT / "host.json").read_text())["extensions"]["durableTask"]
    assert durable["tracing"] == {"distributedTracingEnabled": True, "version": "None"}
