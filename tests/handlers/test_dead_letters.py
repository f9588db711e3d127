"""handlers/dead_letters.py: the orchestrator step by step, the watch against a client that keeps its promises."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.incarnations.next_incarnation import Incarnations, Opening
from core.settle.partition_store import Partitions
from core.store.columns import instant_text
from handlers.app import app
from handlers.dead_letters import BRIEF, IDLE_AFTER, ORCHESTRATOR, keep_dead_letters, keep_running
from handlers.tasks import PAUSE, SECOND, STALLED_AFTER
from tests.fakes.builders import EPOCH
from tests.fakes.durable import DurableClient, OrchestrationContext
from tests.handlers.running import Running, client_function, functions

LOOK = timedelta(minutes=10)
KEEPER, NOW = "dead-letters-1", EPOCH
CHUNKS = [{"sequence_numbers": [number], "alone": number > 2} for number in (1, 2, 3, 4)]


def a_round(*answers: Any) -> tuple[list[Any], OrchestrationContext]:
    """Run a round with these answers, and return its requests."""
    context = OrchestrationContext(KEEPER)
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
    assert asked == [("find_wait", KEEPER), ("timer", due_at + SECOND)]
    assert context.custom_status == due_at.isoformat()
    assert context.again == [None]


def test_a_round_retries_all_chunks_side_by_side_and_those_that_may_kill_the_process_one_by_one() -> None:
    asked, context = a_round(0.0, CHUNKS, [{}, {}], {})
    assert asked[1:] == [
        ("claim_letters", None),
        ("all", [("retry_letters", CHUNKS[0]), ("retry_letters", CHUNKS[1])]),
        ("retry_letters", CHUNKS[2]),
        ("retry_letters", CHUNKS[3]),
    ]
    assert context.again == [None]


def test_a_round_that_finds_due_letters_and_gets_none_pauses() -> None:
    asked, context = a_round(0.0, [])
    assert asked[1:] == [("claim_letters", None), ("timer", NOW + BRIEF + SECOND)]
    assert context.again == [None]


def test_a_keeper_whose_incarnation_is_closed_ends() -> None:
    context = OrchestrationContext(KEEPER)
    orchestrator = keep_dead_letters(context)
    next(orchestrator)
    with pytest.raises(StopIteration):
        orchestrator.send(None)
    assert context.again == []


def test_a_round_whose_look_fails_pauses() -> None:
    context = OrchestrationContext(KEEPER)
    orchestrator = keep_dead_letters(context)
    next(orchestrator)
    assert orchestrator.throw(Exception("WorkerProcessExitException")) == ("timer", NOW + PAUSE + SECOND)


def keeper(status: str | None, age: timedelta = timedelta(), sleeps: timedelta | None = timedelta()) -> DurableClient:
    return DurableClient(status, age, None if sleeps is None else NOW + sleeps, NOW)


def watched(client: DurableClient, patience: timedelta = IDLE_AFTER) -> list[str]:
    asyncio.run(keep_running(client, KEEPER, NOW, LOOK, patience))
    return client.done


@pytest.mark.parametrize("state", [None, "Completed", "Failed", "Terminated", "Canceled"])
def test_a_keeper_that_does_not_run_is_started(state: str | None) -> None:
    client = keeper(state)
    assert (watched(client), client.started) == ([], [(ORCHESTRATOR, KEEPER, None)])


@pytest.mark.parametrize("state", ["Pending", "Running", "ContinuedAsNew"])
def test_a_keeper_that_runs_is_left_alone(state: str) -> None:
    client = keeper(state)
    assert (watched(client), client.started) == ([], [])


def test_a_keeper_without_a_new_round_for_too_long_is_ended_so_that_a_new_one_can_start() -> None:
    for patience in (IDLE_AFTER, STALLED_AFTER):
        silent = keeper("Running", patience + SECOND, sleeps=-patience - SECOND)
        assert watched(silent, patience) == ["terminate dead-letters-1"]
        assert watched(keeper("Running", patience - SECOND, sleeps=None), patience) == []
        assert watched(keeper("Running", patience + SECOND, sleeps=SECOND), patience) == []  # it sleeps


@pytest.mark.parametrize(("overdue", "done"), [(timedelta(), []), (timedelta(minutes=6), ["terminate dead-letters-1"])])
def test_a_silent_keeper_whose_letters_are_overdue_is_ended_after_minutes(
    running: Running, overdue: timedelta, done: list[str]
) -> None:
    running.ingest([0], [b"{}"])
    due_at = datetime.now(UTC) - overdue
    running.sqlite.sql(f"UPDATE event_hub_dead_letter SET status = 'waiting', due_at = '{instant_text(due_at)}'")
    client = keeper("Running", NOW - datetime.now(UTC) + timedelta(minutes=6), sleeps=None)
    asyncio.run(client_function("watch_dead_letters")(None, client=client))
    assert client.done == done


def test_a_keeper_whose_last_round_lies_in_the_future_is_ended_because_the_clock_was_ahead(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its next event lies in the future too, so it would stand still until then, without a custom status."""
    assert watched(keeper("Running", -timedelta(days=1), sleeps=None)) == ["terminate dead-letters-1"]
    assert [line.partition(";")[0] for line in caplog.messages] == ["keeper stalled"]
    assert watched(keeper("Running", -timedelta(seconds=59), sleeps=None)) == []


@pytest.mark.parametrize("sleeps", [None, timedelta(hours=3), -timedelta(days=7)])
def test_a_suspended_keeper_is_resumed_with_a_line(sleeps: timedelta | None, caplog: pytest.LogCaptureFixture) -> None:
    assert watched(keeper("Suspended", timedelta(days=7), sleeps)) == ["resume dead-letters-1"]
    assert caplog.messages == ["keeper resumed; it was suspended"]


@pytest.mark.parametrize("sleeps", [None, -LOOK, LOOK, LOOK + timedelta(seconds=59)])
def test_a_keeper_that_wakes_in_time_is_left_alone(sleeps: timedelta | None) -> None:
    assert watched(keeper("Running", sleeps=sleeps)) == []


def test_a_keeper_that_sleeps_beyond_its_next_look_is_ended_because_the_clock_was_ahead() -> None:
    assert watched(keeper("Running", sleeps=timedelta(hours=3))) == ["terminate dead-letters-1"]


def test_only_the_keeper_of_the_newest_incarnation_goes_on(running: Running) -> None:
    running.ingest([0], [b"{}"])
    ends = [functions()["find_wait"](f"dead-letters-{number}") is None for number in (0, 1, 2)]
    assert ends == [True, False, True]


def test_the_keeper_of_an_incarnation_that_this_process_has_yet_to_learn_of_goes_on(running: Running) -> None:
    running.ingest([0], [b"{}"])
    find_wait, own = functions()["find_wait"], app()
    assert find_wait(KEEPER) is not None
    store, stream, now = Incarnations(own.brief, Partitions(own.brief)), own.settings.stream, own.clock.now()
    found = store.partitions.read_incarnation(stream)
    store.open_incarnation(Opening(found, stream, now, {}, "ada", "recreated", now))
    assert find_wait("dead-letters-2") is not None
