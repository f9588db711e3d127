import asyncio
import itertools
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import azure.durable_functions as df
import pytest
from azure.functions.meta import Datum

from core.incarnations.next_incarnation import Incarnations, Opening
from core.letters.retry import LONGEST_CHAIN
from core.settle.partition_store import Partitions
from core.store.columns import instant_text
from core.store.sqlserver.connections import Deadlines
from handlers.app import app
from handlers.dead_letters import BRIEF, IDLE_AFTER, ORCHESTRATOR, keep_dead_letters, keep_running
from handlers.tasks import PAUSE, SECOND, SLICE, STALLED_AFTER, VISIBILITY, drive, drive_task
from local.functions_host.durable.engine import Engine, Surroundings
from local.functions_host.durable.functions import DurableFunctions
from local.functions_host.durable.instances import EventType, NewInstance, Outgoing, Status, control, stamped
from local.functions_host.durable.store import REMOVE_ACTIVITY, DurableStore
from local.functions_host.function import describe_function
from local.functions_host.invoker import Invocation, InvocationResult, Invoker
from local.functions_host.json_sections import parse_time_span
from local.functions_host.settings import DurableOptions
from tests.afterwards import after_the_test
from tests.fakes.builders import EPOCH
from tests.fakes.durable import DurableClient, OrchestrationContext
from tests.handlers.running import Running, client_function, functions
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
KEEPER, LAST = "dead-letters-1", {"keep_dead_letters": "retry_letters", "drive_task": "task_slice"}
INSTANCES = {"keep_dead_letters": KEEPER, "drive_task": f"task-{TASK}"}
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
    """Durable's storage. It loses an activity when told to, as one that is killed hard does."""

    loses_next = False

    def complete_activity(self, number: int, result: Outgoing) -> bool:
        if not self.loses_next:
            return super().complete_activity(number, result)
        self.loses_next = False
        self._database.execute(REMOVE_ACTIVITY, (number,))
        return False


class World:
    """Our engine with the app's orchestrations, and the Durable client of its task hub. An activity answers by its
    name. A name in `dying` dies once, and the answer of a name in `losing` is lost once."""

    def __init__(
        self, answers: Mapping[str, Callable[[Any], Any]], dying: Sequence[str] = (), losing: Sequence[str] = ()
    ) -> None:
        self.answers, self.dying, self.losing = answers, [*dying], [*losing]
        self.calls, self.clock, self.store = Counter[str](), BusyClock(), LossyStore(None)
        self.wake: Callable[[], None] = lambda: None
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
    async def running(self, orchestration: str) -> AsyncIterator[str]:
        ids = itertools.count()
        invoker = Invoker(ScriptedWorker(self.answer), self.clock, lambda: 0.5, None)
        engine = Engine(
            Surroundings(self.store, invoker, FUNCTIONS, self.clock, lambda: f"id{next(ids)}"), DurableOptions()
        )
        self.wake = engine.wake
        await self.start_new(orchestration, INSTANCES[orchestration], TASK)
        engine.start()
        try:
            yield INSTANCES[orchestration]
        finally:
            await engine.stop()

    async def start_new(self, name: str, instance_id: str, given: object = "") -> None:
        new = NewInstance(instance_id, f"execution of {instance_id}", name, json.dumps(json.dumps(given)))
        self.store.create(new, self.clock.now())
        self.wake()

    async def get_status(self, instance_id: str) -> Any:
        found = self.store.find(instance_id)
        assert found is not None
        status, told = df.OrchestrationRuntimeStatus(found.status.value), found.custom_status
        return SimpleNamespace(
            runtime_status=status, last_updated_time=found.updated_at, custom_status=told and json.loads(told)
        )

    async def terminate(self, instance_id: str, reason: str) -> None:
        self.control(EventType.EXECUTION_TERMINATED, instance_id)

    async def resume(self, instance_id: str, reason: str) -> None:
        self.control(EventType.EXECUTION_RESUMED, instance_id)

    async def watch(self, orchestration: str) -> None:
        client: Any = self
        if orchestration == "drive_task":
            await drive(client, TASK)
        else:
            await keep_running(client, KEEPER, self.clock.now(), SECOND, STALLED_AFTER)

    def control(self, kind: EventType, instance_id: str) -> None:
        now = self.clock.now()
        self.store.send(Outgoing(instance_id, None, stamped(control(kind, "why"), now), now))
        self.wake()

    def is_quiet(self) -> bool:
        return not self.store.ready(self.clock.now(), 1) and not self.store.activities_after(0, 1)

    def status(self, instance_id: str) -> Status:
        found = self.store.find(instance_id)
        assert found is not None
        return found.status


def letters() -> dict[str, Callable[[Any], Any]]:
    return {"find_wait": lambda _: 0.0, "claim_letters": lambda _: [*TOGETHER, ALONE], "retry_letters": lambda _: {}}


PARTS: dict[str, Callable[[Any], Any]] = {
    "open_task": lambda _: {"parts": ["0", "1", "2"]},
    "task_slice": lambda _: {"ok": {}},
}


@pytest.mark.asyncio
@pytest.mark.parametrize("look", [0.1, 2.3, 3.7])
async def test_a_keeper_looks_when_the_letter_is_due_and_sets_no_more_timers_than_it_has_looks(look: float) -> None:
    """Set at the wanted time, a look of 1 s takes over 1,200 timers here. The real host had 1,952 in 127 s."""
    span, looks = 127, list[datetime]()
    world = World({**letters(), "find_wait": lambda _: looks.append(world.clock._now) or look})  # type: ignore[func-returns-value]
    async with world.running("keep_dead_letters"):
        await eventually(lambda: (world.clock._now - NOON).total_seconds() > span)
    assert span / (max(look, 1) + 2) <= world.calls["find_wait"] <= span / max(look, 1)
    due = timedelta(seconds=look)
    assert all(due <= after - before <= due + 2 * SECOND for before, after in itertools.pairwise(looks))


@pytest.mark.asyncio
@pytest.mark.parametrize("dying", [*ACTIVITIES, "retry_letters " * 3, "task_slice " * 3])
async def test_the_death_of_a_worker_costs_the_keeper_a_round_and_a_task_a_pause(dying: str) -> None:
    world = World({**letters(), **PARTS}, dying.split())
    orchestration = "drive_task" if "task" in dying else "keep_dead_letters"
    async with world.running(orchestration) as instance_id:
        await eventually(lambda: not world.dying and world.calls[LAST[orchestration]] > 9)
        assert world.status(instance_id) is Status.RUNNING
    assert orchestration == "keep_dead_letters" or world.clock._now - NOON >= PAUSE


@pytest.mark.asyncio
@pytest.mark.parametrize("orchestration", [*ORCHESTRATORS])
async def test_an_orchestration_that_fails_in_its_own_turn_is_started_again_by_its_timer(orchestration: str) -> None:
    """No orchestrator can catch the death of the worker that runs it. In Azure it fails as Non-Deterministic."""
    world = World({**letters(), **PARTS}, [orchestration])
    async with world.running(orchestration) as instance_id:
        await eventually(lambda: world.status(instance_id) is Status.FAILED)
        assert not world.calls
        await world.watch(orchestration)
        await eventually(lambda: world.calls.total() > 9)
        assert world.status(instance_id) is Status.RUNNING


@pytest.mark.asyncio
@pytest.mark.parametrize("activity", ["find_wait", "claim_letters", "retry_letters"])
async def test_a_keeper_that_lost_an_activity_goes_on_after_its_timer_ended_it(activity: str) -> None:
    world = World(letters(), losing=[activity])
    async with world.running("keep_dead_letters") as instance_id:
        await eventually(lambda: not world.losing and world.is_quiet())
        before = world.calls.total()
        await world.clock.sleep(STALLED_AFTER)
        await eventually(world.is_quiet)
        assert (world.status(instance_id), world.calls.total()) == (Status.RUNNING, before)
        await world.watch("keep_dead_letters")
        await eventually(lambda: world.status(instance_id) is Status.TERMINATED)
        await world.watch("keep_dead_letters")
        await eventually(lambda: world.calls["retry_letters"] > 9)


@pytest.mark.asyncio
@pytest.mark.parametrize("orchestration", [*ORCHESTRATORS])
async def test_an_orchestration_that_was_suspended_goes_on_when_the_app_resumes_it(orchestration: str) -> None:
    world = World({**letters(), **PARTS})
    async with world.running(orchestration) as instance_id:
        world.control(EventType.EXECUTION_SUSPENDED, instance_id)
        await eventually(lambda: world.status(instance_id) is Status.SUSPENDED)
        await world.watch(orchestration)
        before = world.calls.total()
        await eventually(lambda: world.calls.total() > before + 9)
        assert world.status(instance_id) is Status.RUNNING


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


@pytest.mark.parametrize(("orchestration", "instance_id", "given"), FOREIGN.values(), ids=FOREIGN)
def test_an_instance_that_the_app_did_not_start_ends_at_once_with_a_line(
    orchestration: str, instance_id: str, given: object, caplog: pytest.LogCaptureFixture
) -> None:
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


LOOK, NOW = timedelta(minutes=10), EPOCH
CHUNKS = [{"sequence_numbers": [number], "alone": number > 2} for number in (1, 2, 3, 4)]
NOTHING = timedelta()


def a_round(*answers: Any) -> tuple[list[Any], OrchestrationContext]:
    context = OrchestrationContext(KEEPER)
    orchestrator = keep_dead_letters(context)
    asked = [next(orchestrator)]
    for answer in answers:
        asked.append(orchestrator.throw(answer) if isinstance(answer, Exception) else orchestrator.send(answer))
    with pytest.raises(StopIteration):
        orchestrator.send(None)
    return asked, context


def test_a_round_sleeps_until_a_letter_is_due_pauses_when_it_gets_none_or_fails_and_begins_again() -> None:
    due_at = NOW + timedelta(seconds=30)
    asked, context = a_round(30.0)
    assert asked == [("find_wait", KEEPER), ("timer", due_at + SECOND)]
    assert (context.custom_status, context.again) == (due_at.isoformat(), [None])
    asked, context = a_round(0.0, [])
    assert (asked[1:], context.again) == ([("claim_letters", None), ("timer", NOW + BRIEF + SECOND)], [None])
    assert a_round(Exception("WorkerProcessExitException"))[0][1:] == [("timer", NOW + PAUSE + SECOND)]
    asked, context = a_round()
    assert (asked, context.again) == ([("find_wait", KEEPER)], []), "its incarnation is closed"


def test_a_round_retries_all_chunks_side_by_side_and_those_that_may_kill_the_process_one_by_one() -> None:
    asked, context = a_round(0.0, CHUNKS, [{}, {}], {})
    first, second, *others = [("retry_letters", chunk) for chunk in CHUNKS]
    assert asked[1:] == [("claim_letters", None), ("all", [first, second]), *others]
    assert context.again == [None]


def watched(
    status: str | None, age: timedelta = NOTHING, sleeps: timedelta | None = NOTHING, patience: timedelta = IDLE_AFTER
) -> DurableClient:
    client = DurableClient(status, age, None if sleeps is None else NOW + sleeps, NOW)
    asyncio.run(keep_running(client, KEEPER, NOW, LOOK, patience))
    return client


@pytest.mark.parametrize("state", [None, "Completed", "Failed", "Terminated", "Canceled"])
def test_a_keeper_that_does_not_run_is_started(state: str | None) -> None:
    client = watched(state)
    assert (client.done, client.started) == ([], [(ORCHESTRATOR, KEEPER, None)])


@pytest.mark.parametrize("state", ["Pending", "Running", "ContinuedAsNew"])
def test_a_keeper_that_runs_and_wakes_in_time_is_left_alone(state: str) -> None:
    for sleeps in (NOTHING, None, -LOOK, LOOK, LOOK + timedelta(seconds=59)):
        client = watched(state, sleeps=sleeps)
        assert (client.done, client.started) == ([], [])


def test_a_keeper_that_is_silent_for_too_long_is_ended_so_that_a_new_one_can_start() -> None:
    for patience in (IDLE_AFTER, STALLED_AFTER):
        late = patience + SECOND
        assert watched("Running", late, -late, patience).done == ["terminate dead-letters-1"]
        assert watched("Running", patience - SECOND, None, patience).done == []
        assert watched("Running", late, SECOND, patience).done == []  # it sleeps


def test_a_keeper_of_a_clock_that_was_ahead_is_ended(caplog: pytest.LogCaptureFixture) -> None:
    """The next event of the keeper lies in the future, so the keeper would stand still until then."""
    for age, sleeps in ((-timedelta(days=1), None), (NOTHING, timedelta(hours=3))):
        caplog.clear()
        assert watched("Running", age, sleeps).done == ["terminate dead-letters-1"]
        assert [line.partition(";")[0] for line in caplog.messages] == ["keeper stalled"]
    assert watched("Running", -timedelta(seconds=59), None).done == []


@pytest.mark.parametrize("sleeps", [None, timedelta(hours=3), -timedelta(days=7)])
def test_a_suspended_keeper_is_resumed_with_a_line(sleeps: timedelta | None, caplog: pytest.LogCaptureFixture) -> None:
    assert watched("Suspended", timedelta(days=7), sleeps).done == ["resume dead-letters-1"]
    assert caplog.messages == ["keeper resumed; it was suspended"]


@pytest.mark.parametrize(("overdue", "done"), [(NOTHING, []), (timedelta(minutes=6), ["terminate dead-letters-1"])])
def test_a_silent_keeper_whose_letters_are_overdue_is_ended_after_minutes(
    running: Running, overdue: timedelta, done: list[str]
) -> None:
    running.ingest([0], [b"{}"])
    due_at = datetime.now(UTC) - overdue
    running.sqlite.sql(f"UPDATE event_hub_dead_letter SET status = 'waiting', due_at = '{instant_text(due_at)}'")
    client = DurableClient("Running", NOW - datetime.now(UTC) + timedelta(minutes=6), None, NOW)
    asyncio.run(client_function("watch_dead_letters")(None, client=client))
    assert client.done == done


def test_only_the_keeper_of_the_newest_incarnation_goes_on(running: Running) -> None:
    running.ingest([0], [b"{}"])
    find_wait, own = functions()["find_wait"], app()
    assert [find_wait(f"dead-letters-{number}") is None for number in (0, 1, 2)] == [True, False, True]
    store, stream, now = Incarnations(own.brief, Partitions(own.brief)), own.settings.stream, own.clock.now()
    found = store.partitions.read_incarnation(stream)
    store.open_incarnation(Opening(found, stream, now, {}, "ada", "recreated", now))
    assert find_wait("dead-letters-2") is not None
