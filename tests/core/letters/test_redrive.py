"""Promises of every store about redrives: each letter is moved once, listed and counted, and a job ends."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from msgspec import structs

from core.errors import StoreUnavailable, TaskConflict, TaskOverlap, TooManyTasks
from core.letters.listing import LetterChoice
from core.letters.redrive import LOOKED_AT, MOST_OPEN, LetterOrder, NextLetters, Redrive, RedriveOutcome, piece_limit
from core.model.events import PartitionId, SequenceNumber
from core.model.letters import LetterPosition, OrderedMove
from core.tasks.statuses import TASK_MOVES, TaskVerb
from tests.fakes.builders import FakeClock, commit, event, keep_letters, letter, partition, settled
from tests.fakes.faulty_database import Fault, FaultyStore
from tests.fakes.kept import Engine
from tests.fakes.memory_store import MemoryStore
from tests.fakes.redriving import ALL, Redriving, request_redrive, with_exhausted_letters
from tests.fakes.store import Store

LETTERS = dict.fromkeys(range(0, 12, 2), "a")
ZERO = LetterChoice(partition_id=PartitionId("0"))


@pytest.fixture
def desk(store: Store) -> Redriving:
    """Six exhausted letters of partition 0, six of partition 1."""
    return with_exhausted_letters(store, LETTERS)


def positions(place: str, *numbers: int) -> tuple[LetterPosition, ...]:
    return tuple(LetterPosition(PartitionId(place), SequenceNumber(number)) for number in numbers)


def walked(*numbers: int) -> NextLetters:
    return NextLetters(tuple(map(SequenceNumber, numbers)), SequenceNumber(numbers[-1]))


def statuses(engine: Engine, place: str = "0") -> list[str]:
    return [one.status for one in engine.letters() if one.partition_id == place]


def test_a_job_moves_every_letter_of_its_filter(desk: Redriving, engine: Engine) -> None:
    job = desk.ask(12)
    assert desk.slice(job).is_over
    ended = desk.now(job)
    assert (ended.task.status, ended.moved, ended.unmoved, ended.task.total) == ("done", 12, 0, 12)
    assert statuses(engine) == statuses(engine, "1") == ["waiting"] * 6
    assert desk.moved(job) == [(place, number) for place in "01" for number in LETTERS]
    assert {(one.kind, one.done_by, one.why) for one in engine.attempts()} == {("requeue", "somebody", "because")}
    assert len(engine.attempts()) == 12


def test_the_outcome_of_a_retry_counts_its_letters_by_their_next_try(desk: Redriving) -> None:
    job = desk.ask(12)
    assert desk.slice(job).is_over
    assert desk.store.outcome(job.task.task_id, 100) == RedriveOutcome(12, 0, 0, 0, 12, 0)
    assert desk.slice(desk.ask(1, positions("0", 4), "discard")).is_over
    assert desk.store.outcome(job.task.task_id, 100) == RedriveOutcome(12, 0, 0, 0, 11, 1)
    assert desk.store.outcome(job.task.task_id, 2) == RedriveOutcome(2, 0, 0, 0, 2, 0)


@pytest.mark.parametrize("move", ["requeue", "discard"])
def test_a_walk_looks_at_so_many_letters_at_once_and_goes_on_after_them(store: Store, move: OrderedMove) -> None:
    """Between the two letters of the filter are others: none is looked at twice, and no statement reads them all."""
    first, last = 0, 2 * LOOKED_AT + 100
    exhausted: dict[str, Any] = {"status": "exhausted", "due_at": None}
    keep_letters(store, {first: "a"}, **exhausted, error_class="poison")
    keep_letters(store, dict.fromkeys(range(1, last), "a"), **exhausted)
    keep_letters(store, {last: "a"}, **exhausted, error_class="poison")
    desk = Redriving(store)
    desk.clock.advance(3_600)
    job = desk.ask(2, LetterChoice(error_class="poison"), move)
    looked_at = []
    while not desk.slice(job, 0).is_over:
        (progress,) = desk.now(job).progress
        looked_at.append(
            (abs(progress.part.position - (first if move == "requeue" else last)) + 1, progress.report.moved)
        )
    assert looked_at[:3] == [(LOOKED_AT, 1), (2 * LOOKED_AT, 1), (last + 1, 2)]
    ended = desk.now(job)
    assert (ended.task.status, ended.moved, ended.unmoved) == ("done", 2, 0)
    assert sorted(desk.moved(job)) == [("0", first), ("0", last)]


def test_a_job_of_a_selection_moves_only_its_letters(desk: Redriving, engine: Engine) -> None:
    job = desk.ask(3, (*positions("0", 2, 4), *positions("1", 10), *positions("1", 3)), "discard")
    assert desk.slice(job).is_over
    assert desk.moved(job) == [("0", 2), ("0", 4), ("1", 10)]
    assert statuses(engine) == ["exhausted", "discarded", "discarded", "exhausted", "exhausted", "exhausted"]
    assert desk.now(job).selection == (*positions("0", 2, 4), *positions("1", 10))


def test_a_different_count_opens_nothing(desk: Redriving) -> None:
    assert request_redrive(LetterOrder("requeue", ALL, 11), desk.means) == 12
    held = LetterOrder("requeue", LetterChoice(status="held"), 0)
    assert request_redrive(held, desk.means) == 0
    assert desk.store.read_redrives(desk.means.stream, 10, None) == ()


def test_a_letter_that_fails_after_the_request_is_not_of_the_job(desk: Redriving, engine: Engine) -> None:
    later = [replace(letter(event(number)), status="exhausted") for number in (11, 12)]
    batch = commit(desk.store.read_partition(partition()), 11, 12, settled({}, letters=later))
    desk.store.commit_batch(replace(batch, committed_at=desk.clock.now() + timedelta(seconds=1)))
    job = desk.ask(12)
    desk.slice(job)
    assert statuses(engine)[6:] == ["exhausted", "exhausted"]
    assert desk.now(job).moved == 12


def test_a_letter_that_changed_is_unmoved_and_keeps_its_status(desk: Redriving, engine: Engine) -> None:
    job = desk.ask(12)
    other = desk.ask(1, positions("0", 4), "discard")
    desk.slice(other)
    desk.slice(job)
    ended = desk.now(job)
    assert (ended.task.status, ended.moved, ended.unmoved) == ("done", 11, 1)
    assert statuses(engine)[2] == "discarded"
    assert ("0", 4) not in desk.moved(job)


def test_the_same_filter_has_one_open_job_whatever_the_move(desk: Redriving) -> None:
    job = desk.ask(6, ZERO)
    with pytest.raises(TaskOverlap) as overlap:
        desk.ask(6, ZERO, "discard")
    assert overlap.value.task_id == job.task.task_id
    desk.ask(12)
    desk.slice(job)
    desk.ask(6, ZERO)


def test_the_same_selection_has_one_open_job(desk: Redriving) -> None:
    job = desk.ask(2, positions("0", 2, 4))
    with pytest.raises(TaskOverlap):
        desk.ask(2, positions("0", 4, 2))
    desk.move(job, "cancel")
    desk.ask(2, positions("0", 4, 2))


def test_no_more_jobs_are_open_than_the_limit(desk: Redriving) -> None:
    for number in range(MOST_OPEN):
        desk.ask(1, positions("0", 2 * (number % 6)) if number < 6 else positions("1", 2 * (number - 6)))
    with pytest.raises(TooManyTasks):
        desk.ask(12)


def test_of_requests_at_the_same_time_one_opens_its_job(desk: Redriving, make_store: Callable[[], Store]) -> None:
    desks = [Redriving(make_store(), desk.clock, seed=number + 1) for number in range(4)]
    refused = []

    def ask(one: Redriving) -> None:
        try:
            one.ask(12)
        except TaskOverlap:
            refused.append(one)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, desks))
    assert len(refused) == 3


@pytest.mark.parametrize("verb", TASK_MOVES)
def test_a_job_that_does_not_run_writes_nothing(desk: Redriving, engine: Engine, verb: TaskVerb) -> None:
    planned = desk.ask(12)
    desk.move(planned, "begin")
    job = desk.now(planned)
    piece = walked(0)
    if verb in ("begin", "resume"):
        assert not desk.move(job, verb)
        return
    assert desk.move(job, verb)
    before, letters = desk.now(job), engine.letters()
    with pytest.raises(TaskConflict):
        desk.store.commit_piece(job, piece, desk.clock.now())
    with pytest.raises(TaskConflict):
        desk.store.close_partition(job, desk.clock.now())
    assert (desk.now(job), engine.letters(), engine.attempts()) == (before, letters, [])
    assert before.task.status == TASK_MOVES[verb].target


def test_a_piece_that_is_sent_again_is_refused_and_changes_nothing(desk: Redriving, engine: Engine) -> None:
    planned = desk.ask(12)
    desk.move(planned, "begin")
    job = desk.now(planned)
    piece = walked(0, 2)
    desk.store.commit_piece(job, piece, desk.clock.now())
    after, letters = desk.now(job), engine.letters()
    with pytest.raises(TaskConflict):
        desk.store.commit_piece(job, piece, desk.clock.now())
    assert (desk.now(job), engine.letters()) == (after, letters)
    assert after.moved == len(engine.attempts()) == 2


def test_no_piece_begins_before_its_time_which_a_clock_that_was_ahead_does_not_set(desk: Redriving) -> None:
    planned = desk.ask(12, rate=4)
    desk.move(planned, "begin")
    job = desk.now(planned)
    desk.store.commit_piece(job, walked(0), desk.clock.now())
    job = desk.now(job)
    assert job.task.next_piece_at == desk.clock.now() + timedelta(seconds=0.25)
    with pytest.raises(TaskConflict):
        desk.store.commit_piece(job, walked(2), desk.clock.now() + timedelta(seconds=0.24))
    desk.store.commit_piece(job, walked(2), desk.clock.now() - timedelta(hours=1))


def test_a_cancelled_job_counts_what_it_has_moved(desk: Redriving, engine: Engine) -> None:
    job = desk.ask(12, rate=4)
    desk.slice(job, seconds=0.6)
    assert desk.move(job, "cancel")
    assert desk.slice(job).is_over
    ended = desk.now(job)
    assert (ended.task.status, ended.moved) == ("cancelled", len(desk.moved(job)))
    assert 0 < ended.moved < 12
    assert statuses(engine).count("waiting") == ended.moved


def test_a_job_is_kept_as_it_was_requested(desk: Redriving) -> None:
    wanted = LetterChoice(status="exhausted", partition_id=PartitionId("1"), partition_key=None)
    job = desk.ask(6, structs.replace(wanted, failed_from=desk.clock.now() - timedelta(days=9)), rate=7)
    assert desk.now(job) == job
    assert (job.task.requested_by, job.task.reason, job.task.status) == ("somebody", "because", "planned")
    desk.store.tasks.note_fault(job.task.task_id, "the database is away", desk.clock.now())
    assert desk.now(job).task.fault == "the database is away"


NUMBERS = range(6)


@pytest.fixture
def few() -> Redriving:
    """Six exhausted letters."""
    store = MemoryStore()
    keep_letters(store, dict.fromkeys(NUMBERS, "a"), status="exhausted", due_at=None)
    made = Redriving(store)
    made.clock.advance(60)
    return made


def driver(few: Redriving, job: Redrive, *faults: Fault | None) -> Redriving:
    """A driver whose pieces have these faults; the rival does one piece before it."""
    rival = Redriving(few.store, few.clock, seed=9)
    faulty = FaultyStore(few.store, on_letters=faults, meanwhile=lambda: rival.slice(job, seconds=0))
    return Redriving(faulty, few.clock, seed=1)


@pytest.mark.parametrize("fault", [Fault.RIVAL, Fault.UNANSWERED, Fault.LOST])
def test_a_slice_goes_on_after_a_rival_and_after_a_lost_answer(few: Redriving, fault: Fault) -> None:
    job = few.ask(6, rate=4)
    assert driver(few, job, fault, fault, None, fault).slice(job).is_over
    assert (few.now(job).task.status, few.now(job).moved) == ("done", 6)
    assert few.moved(job) == [("0", number) for number in NUMBERS]


def test_a_fault_ends_the_slice_and_the_pieces_before_it_remain(few: Redriving) -> None:
    job = few.ask(6, rate=4)
    with pytest.raises(StoreUnavailable):
        driver(few, job, None, Fault.NOT_REACHED).slice(job)
    assert few.now(job).moved == 2
    assert few.slice(job).is_over


@pytest.mark.parametrize(("rate", "limit"), [(None, 1_000), (1, 1), (2, 1), (500, 250), (100_000, 1_000)])
def test_a_piece_is_at_most_half_a_second_of_the_rate(rate: int | None, limit: int) -> None:
    assert piece_limit(rate) == limit


def test_the_cap_of_one_letter_a_second_holds_between_hosts_whose_clocks_differ(few: Redriving) -> None:
    job, ahead = few.ask(6, rate=1), FakeClock()
    ahead.advance(60.005)
    Redriving(few.store, ahead, seed=1).slice(job, seconds=0)
    few.slice(job, seconds=0)
    assert few.rests == [timedelta(seconds=1.005)]
