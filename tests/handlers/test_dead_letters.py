"""handlers/dead_letters.py: the orchestrator step by step, the watch against a client that keeps its promises."""

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from core.incarnations.next_incarnation import Incarnations, Opening
from core.settle.partition_store import Partitions
from core.store.columns import instant_text
from handlers.app import app
from handlers.dead_letters import BRIEF, IDLE_AFTER, ORCHESTRATOR, keep_dead_letters, keep_running
from handlers.tasks import PAUSE, SECOND, STALLED_AFTER
from tests.handlers.running import Running, client_function, functions

LOOK = timedelta(minutes=10)
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
CHUNKS = [{"sequence_numbers": [number], "alone": number > 2} for number in (1, 2, 3, 4)]


class Context:
    """Names what an orchestrator asks for, as it asks."""

    def __init__(self) -> None:
        self.current_utc_datetime = NOW
        self.instance_id = "dead-letters-1"
        self.begun_again = False
        self.custom_status: str | None = None

    def set_custom_status(self, given: str) -> None:
        self.custom_status = given

    def call_activity(self, name: str, given: Any) -> tuple[str, Any]:
        return (name, given)

    def create_timer(self, at: datetime) -> tuple[str, datetime]:
        return ("timer", at)

    def task_all(self, tasks: list[Any]) -> tuple[str, list[Any]]:
        return ("all", tasks)

    def continue_as_new(self, given: Any) -> None:
        self.begun_again = True


def a_round(*answers: Any) -> tuple[list[Any], Context]:
    """Run a round with these answers, and return its requests."""
    context = Context()
    orchestrator = keep_dead_letters(context)
    asked = [next(orchestrator)]
    for answer in answers:
        asked.append(orchestrator.send(answer))
    with pytest.raises(StopIteration):
        orchestrator.send(None)
    return asked, context


def test_a_round_with_nothing_due_asks_once_sleeps_and_begins_again() -> None:
    due_at = NOW + timedelta(seconds=30)
    asked, context = a_round(30.0)
    assert asked == [("find_wait", "dead-letters-1"), ("timer", due_at + SECOND)]
    assert context.custom_status == due_at.isoformat()
    assert context.begun_again


def test_a_round_retries_all_chunks_side_by_side_and_those_that_may_kill_the_process_one_by_one() -> None:
    asked, context = a_round(0.0, CHUNKS, [{}, {}], {})
    assert asked[1:] == [
        ("claim_letters", None),
        ("all", [("retry_letters", CHUNKS[0]), ("retry_letters", CHUNKS[1])]),
        ("retry_letters", CHUNKS[2]),
        ("retry_letters", CHUNKS[3]),
    ]
    assert context.begun_again


def test_a_round_that_finds_due_letters_and_gets_none_pauses() -> None:
    asked, context = a_round(0.0, [])
    assert asked[1:] == [("claim_letters", None), ("timer", NOW + BRIEF + SECOND)]
    assert context.begun_again


def test_a_keeper_whose_incarnation_is_closed_ends() -> None:
    context = Context()
    orchestrator = keep_dead_letters(context)
    next(orchestrator)
    with pytest.raises(StopIteration):
        orchestrator.send(None)
    assert not context.begun_again


def test_a_round_whose_look_fails_pauses() -> None:
    context = Context()
    orchestrator = keep_dead_letters(context)
    next(orchestrator)
    assert orchestrator.throw(Exception("WorkerProcessExitException")) == ("timer", NOW + PAUSE + SECOND)


class Client:
    """The Durable client of a task hub with one instance, in this state."""

    def __init__(self, state: str | None, age: timedelta = timedelta(), sleeps: timedelta | None = timedelta()) -> None:
        self.state = state
        self._wakes_at = None if sleeps is None else (NOW + sleeps).isoformat()
        self._updated_at = NOW - age
        self.done: list[str] = []

    async def get_status(self, instance_id: str) -> Any:
        if self.state is None:
            return SimpleNamespace(runtime_status=None)
        return SimpleNamespace(
            runtime_status=SimpleNamespace(value=self.state),
            last_updated_time=self._updated_at,
            custom_status=self._wakes_at,
        )

    async def start_new(self, name: str, instance_id: str) -> None:
        self.done.append(f"start {name} {instance_id}")

    async def terminate(self, instance_id: str, reason: str) -> None:
        self.done.append(f"terminate {instance_id}")

    async def resume(self, instance_id: str, reason: str) -> None:
        self.done.append(f"resume {instance_id}")


def watched(client: Client, patience: timedelta = IDLE_AFTER) -> list[str]:
    asyncio.run(keep_running(client, "dead-letters-1", NOW, LOOK, patience))
    return client.done


@pytest.mark.parametrize("state", [None, "Completed", "Failed", "Terminated", "Canceled"])
def test_a_keeper_that_does_not_run_is_started(state: str | None) -> None:
    assert watched(Client(state)) == [f"start {ORCHESTRATOR} dead-letters-1"]


@pytest.mark.parametrize("state", ["Pending", "Running", "ContinuedAsNew"])
def test_a_keeper_that_runs_is_left_alone(state: str) -> None:
    assert watched(Client(state)) == []


def test_a_keeper_without_a_new_round_for_too_long_is_ended_so_that_a_new_one_can_start() -> None:
    for patience in (IDLE_AFTER, STALLED_AFTER):
        silent = Client("Running", patience + SECOND, sleeps=-patience - SECOND)
        assert watched(silent, patience) == ["terminate dead-letters-1"]
        assert watched(Client("Running", patience - SECOND, sleeps=None), patience) == []
        assert watched(Client("Running", patience + SECOND, sleeps=SECOND), patience) == []  # it sleeps


@pytest.mark.parametrize(("overdue", "done"), [(timedelta(), []), (timedelta(minutes=6), ["terminate dead-letters-1"])])
def test_a_silent_keeper_whose_letters_are_overdue_is_ended_after_minutes(
    running: Running, overdue: timedelta, done: list[str]
) -> None:
    running.ingest([0], [b"{}"])
    due_at = datetime.now(UTC) - overdue
    running.sqlite.sql(f"UPDATE event_hub_dead_letter SET status = 'waiting', due_at = '{instant_text(due_at)}'")
    client = Client("Running", NOW - datetime.now(UTC) + timedelta(minutes=6), sleeps=None)
    asyncio.run(client_function("watch_dead_letters")(None, client=client))
    assert client.done == done


def test_a_keeper_whose_last_round_lies_in_the_future_is_ended_because_the_clock_was_ahead(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its next event lies in the future too, so it would stand still until then, without a custom status."""
    assert watched(Client("Running", -timedelta(days=1), sleeps=None)) == ["terminate dead-letters-1"]
    assert [line.partition(";")[0] for line in caplog.messages] == ["keeper stalled"]
    assert watched(Client("Running", -timedelta(seconds=59), sleeps=None)) == []


@pytest.mark.parametrize("sleeps", [None, timedelta(hours=3), -timedelta(days=7)])
def test_a_suspended_keeper_is_resumed_with_a_line(sleeps: timedelta | None, caplog: pytest.LogCaptureFixture) -> None:
    assert watched(Client("Suspended", timedelta(days=7), sleeps)) == ["resume dead-letters-1"]
    assert caplog.messages == ["keeper resumed; it was suspended"]


@pytest.mark.parametrize("sleeps", [None, -LOOK, LOOK, LOOK + timedelta(seconds=59)])
def test_a_keeper_that_wakes_in_time_is_left_alone(sleeps: timedelta | None) -> None:
    assert watched(Client("Running", sleeps=sleeps)) == []


def test_a_keeper_that_sleeps_beyond_its_next_look_is_ended_because_the_clock_was_ahead() -> None:
    assert watched(Client("Running", sleeps=timedelta(hours=3))) == ["terminate dead-letters-1"]


@pytest.mark.parametrize(
    ("keeper", "ends"),
    [("dead-letters-1", False), ("dead-letters-0", True), ("dead-letters-2", True)],
)
def test_only_the_keeper_of_the_newest_incarnation_goes_on(running: Running, keeper: str, ends: bool) -> None:
    running.ingest([0], [b"{}"])
    assert (functions()["find_wait"](keeper) is None) == ends


def test_the_keeper_of_an_incarnation_that_this_process_has_yet_to_learn_of_goes_on(running: Running) -> None:
    running.ingest([0], [b"{}"])
    find_wait, own = functions()["find_wait"], app()
    assert find_wait("dead-letters-1") is not None
    store, stream, now = Incarnations(own.brief, Partitions(own.brief)), own.settings.stream, own.clock.now()
    found = store.partitions.read_incarnation(stream)
    store.open_incarnation(Opening(found, stream, now, {}, "ada", "recreated", now))
    assert find_wait("dead-letters-2") is not None
