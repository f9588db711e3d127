from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from msgspec import structs

from core.errors import TaskConflict, TaskOverlap, TooManyTasks
from core.incarnations.next_incarnation import Incarnations
from core.letters.listing import LetterChoice
from core.letters.redrive import LOOKED_AT, MOST_OPEN, LetterOrder, NextLetters, Redrive, RedriveOutcome, piece_limit
from core.model.events import PartitionId, SequenceNumber
from core.model.letters import LetterPosition, OrderedMove
from core.settle.partition_store import Partitions
from core.store.database import StreamClosed
from core.tasks.statuses import TASK_MOVES, TaskVerb
from tests.core.letters.test_held import World, of_key
from tests.core.letters.test_held import statuses as statuses_of
from tests.fakes.builders import FakeClock, commit, event, keep_letters, letter, partition, settled
from tests.fakes.kept import Engine
from tests.fakes.replaying import ALL, Redriving, request_redrive, with_exhausted_letters
from tests.fakes.store import Store, opening

LETTERS = dict.fromkeys(range(0, 12, 2), "a")
ZERO = LetterChoice(partition_id=PartitionId("0"))
SLOW = 4  # letters a second: pieces of two


@pytest.fixture
def desk(store: Store) -> Redriving:
    return with_exhausted_letters(store, LETTERS)


def positions(place: str, *numbers: int) -> tuple[LetterPosition, ...]:
    return tuple(LetterPosition(PartitionId(place), SequenceNumber(number)) for number in numbers)


def walked(*numbers: int) -> NextLetters:
    return NextLetters(tuple(map(SequenceNumber, numbers)), SequenceNumber(numbers[-1]))


def statuses(engine: Engine, place: str = "0") -> list[str]:
    return [one.status for one in engine.letters() if one.partition_id == place]


def begun(desk: Redriving, rate: int | None = None) -> Redrive:
    planned = desk.ask(12, rate=rate)
    desk.move(planned, "begin")
    return desk.now(planned)


def test_a_job_moves_every_letter_of_its_filter_and_its_outcome_counts_them(desk: Redriving, engine: Engine) -> None:
    job = desk.ask(12)
    assert desk.slice(job).is_over
    ended = desk.now(job)
    assert (ended.task.status, ended.moved, ended.unmoved, ended.task.total) == ("done", 12, 0, 12)
    assert statuses(engine) == statuses(engine, "1") == ["waiting"] * 6
    assert desk.moved(job) == [(place, number) for place in "01" for number in LETTERS]
    assert {(one.kind, one.done_by, one.why) for one in engine.attempts()} == {("requeue", "somebody", "because")}
    assert len(engine.attempts()) == 12
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
        begin = first if move == "requeue" else last
        looked_at.append((abs(progress.part.position - begin) + 1, progress.report.moved))
    assert looked_at[:3] == [(LOOKED_AT, 1), (2 * LOOKED_AT, 1), (last + 1, 2)]
    ended = desk.now(job)
    assert (ended.task.status, ended.moved, ended.unmoved) == ("done", 2, 0)
    assert sorted(desk.moved(job)) == [("0", first), ("0", last)]


def test_a_job_is_kept_as_it_was_requested_and_a_selection_moves_its_own(desk: Redriving, engine: Engine) -> None:
    wanted = LetterChoice(status="exhausted", partition_id=PartitionId("1"), partition_key=None)
    filtered = desk.ask(6, structs.replace(wanted, failed_from=desk.clock.now() - timedelta(days=9)), rate=7)
    assert desk.now(filtered) == filtered
    assert (filtered.task.requested_by, filtered.task.reason, filtered.task.status) == (
        "somebody",
        "because",
        "planned",
    )
    job = desk.ask(3, (*positions("0", 2, 4), *positions("1", 10), *positions("1", 3)), "discard")
    assert desk.slice(job).is_over
    assert desk.moved(job) == [("0", 2), ("0", 4), ("1", 10)]
    assert statuses(engine) == ["exhausted", "discarded", "discarded", "exhausted", "exhausted", "exhausted"]
    assert desk.now(job).selection == (*positions("0", 2, 4), *positions("1", 10))


def test_a_letter_that_changed_or_failed_after_the_request_keeps_its_status(desk: Redriving, engine: Engine) -> None:
    later = [replace(letter(event(number)), status="exhausted") for number in (11, 12)]
    batch = commit(desk.store.read_partition(partition()), 11, 12, settled({}, letters=later))
    desk.store.commit_batch(replace(batch, committed_at=desk.clock.now() + timedelta(seconds=1)))
    job = desk.ask(12)
    desk.slice(desk.ask(1, positions("0", 4), "discard"))
    desk.slice(job)
    ended = desk.now(job)
    assert (ended.task.status, ended.moved, ended.unmoved) == ("done", 11, 1)
    assert statuses(engine)[2] == "discarded"
    assert statuses(engine)[6:] == ["exhausted", "exhausted"]
    assert ("0", 4) not in desk.moved(job)


def test_more_letters_than_expected_open_nothing(desk: Redriving) -> None:
    assert request_redrive(LetterOrder("requeue", ALL, 11), desk.means) == 12
    held = LetterOrder("requeue", LetterChoice(status="held"), 0)
    assert request_redrive(held, desk.means) == 0
    assert desk.store.read_redrives(desk.means.stream, 10, None) == ()


@pytest.mark.parametrize(("expected", "moved"), [(8, 8), (12, 10)])
def test_letters_that_come_back_amid_a_job_are_moved_up_to_the_confirmed_number(
    desk: Redriving, engine: Engine, expected: int, moved: int
) -> None:
    """Of the letters 6 and 8 of both partitions, all are being tried at the request. Then somebody discards 10."""
    change = "UPDATE event_hub_dead_letter SET status = '{}' WHERE sequence_number {}"
    engine.by_hand(change.format("retrying", "IN (6, 8)"))
    job = desk.ask(expected, rate=SLOW)
    desk.slice(job, seconds=0)
    engine.by_hand(change.format("exhausted", "IN (6, 8)"))
    engine.by_hand(change.format("discarded", "= 10"))
    desk.slice(job)
    ended = desk.now(job)
    assert (ended.task.status, ended.moved, ended.unmoved + ended.gone) == ("done", moved, expected - moved)
    assert len(desk.moved(job)) == moved


def test_the_same_filter_has_one_open_job_whatever_the_move(desk: Redriving) -> None:
    job = desk.ask(6, ZERO)
    with pytest.raises(TaskOverlap) as overlap:
        desk.ask(6, ZERO, "discard")
    assert overlap.value.task_id == job.task.task_id
    desk.ask(12)
    desk.slice(job)
    desk.ask(2, positions("0", 2, 4), "discard")
    with pytest.raises(TaskOverlap):
        desk.ask(2, positions("0", 4, 2))
    desk.ask(6, ZERO)


def test_no_more_jobs_are_open_than_the_limit(desk: Redriving) -> None:
    for number in range(MOST_OPEN):
        desk.ask(1, positions("0", 2 * (number % 6)) if number < 6 else positions("1", 2 * (number - 6)))
    with pytest.raises(TooManyTasks):
        desk.ask(12)


@pytest.mark.parametrize("verb", ["pause", "cancel", "fail"])
def test_a_job_that_does_not_run_writes_nothing(desk: Redriving, engine: Engine, verb: TaskVerb) -> None:
    job, piece = begun(desk), walked(0)
    assert not desk.move(job, "begin")
    assert desk.move(job, verb)
    before, letters = desk.now(job), engine.letters()
    with pytest.raises(TaskConflict):
        desk.store.commit_piece(job, piece, desk.clock.now())
    with pytest.raises(TaskConflict):
        desk.store.close_partition(job, desk.clock.now())
    assert (desk.now(job), engine.letters(), engine.attempts()) == (before, letters, [])
    assert before.task.status == TASK_MOVES[verb].target


def test_a_piece_that_is_sent_again_is_refused_and_changes_nothing(desk: Redriving, engine: Engine) -> None:
    job, piece = begun(desk), walked(0, 2)
    desk.store.commit_piece(job, piece, desk.clock.now())
    after, letters = desk.now(job), engine.letters()
    with pytest.raises(TaskConflict):
        desk.store.commit_piece(job, piece, desk.clock.now())
    assert (desk.now(job), engine.letters()) == (after, letters)
    assert after.moved == len(engine.attempts()) == 2


def test_no_piece_begins_before_its_time_which_a_clock_that_was_ahead_does_not_set(desk: Redriving) -> None:
    job = begun(desk, rate=SLOW)
    desk.store.commit_piece(job, walked(0), desk.clock.now())
    job = desk.now(job)
    assert job.task.next_piece_at == desk.clock.now() + timedelta(seconds=0.25)
    with pytest.raises(TaskConflict):
        desk.store.commit_piece(job, walked(2), desk.clock.now() + timedelta(seconds=0.24))
    desk.store.commit_piece(job, walked(2), desk.clock.now() - timedelta(hours=1))


@pytest.mark.parametrize(("rate", "limit"), [(None, 1_000), (1, 1), (2, 1), (500, 250), (100_000, 1_000)])
def test_a_piece_is_at_most_half_a_second_of_the_rate(rate: int | None, limit: int) -> None:
    assert piece_limit(rate) == limit


def test_the_cap_of_one_letter_a_second_holds_between_hosts_whose_clocks_differ(desk: Redriving) -> None:
    job, ahead = desk.ask(12, rate=1), FakeClock()
    ahead.advance(3_600.005)
    Redriving(desk.store, ahead, seed=1).slice(job, seconds=0)
    desk.slice(job, seconds=0)
    assert desk.rests == [timedelta(seconds=1.005)]


@pytest.mark.parametrize("move", ["requeue", "discard"])
def test_an_incarnation_that_opens_amid_a_job_cancels_it(desk: Redriving, engine: Engine, move: OrderedMove) -> None:
    job = desk.ask(12, move=move, rate=SLOW)
    desk.slice(job, seconds=0)
    Incarnations(desk.store.database, Partitions(desk.store.database)).open_incarnation(opening(desk.store))
    keep_letters(desk.store, LETTERS, status="exhausted", due_at=None)  # of the next incarnation, with the same numbers
    before = engine.letters()
    assert desk.slice(job).is_over
    ended = desk.now(job)
    assert (ended.task.status, ended.moved, len(desk.moved(job))) == ("cancelled", 2, 2)
    assert engine.letters() == before


def test_letters_that_were_counted_before_the_next_incarnation_are_never_those_of_the_next(
    desk: Redriving, engine: Engine
) -> None:
    assert desk.means.listing.count_matching(ALL, ("exhausted",)) == 12  # remembers the stream for some seconds
    Incarnations(desk.store.database, Partitions(desk.store.database)).open_incarnation(opening(desk.store))
    keep_letters(desk.store, LETTERS, status="exhausted", due_at=None)
    for chosen, count in ((positions("0", 2, 4), 2), (ALL, 12)):
        with pytest.raises(StreamClosed):
            desk.ask(count, chosen, "discard")
    assert desk.store.read_redrives(desk.means.stream, 10, None) == ()
    assert {one.status for one in engine.letters()} == {"exhausted"}


@pytest.fixture
def held(store: Store) -> tuple[World, Redriving]:
    world = World(store)
    world.broken = {0}
    world.ingest(of_key(0, 1, 2, 3))
    desk = Redriving(store, world.clock)
    world.clock.advance(1)
    return world, desk


def test_under_the_order_of_keys_a_retry_moves_the_first_letter(held: tuple[World, Redriving], engine: Engine) -> None:
    world, desk = held
    desk.slice(desk.ask(1))  # held letters are not movable
    assert statuses_of(engine) == {0: "waiting", 1: "held", 2: "held", 3: "held"}
    world.broken = set()
    world.retry()
    assert set(statuses_of(engine).values()) == {"resolved"}


def test_under_the_order_of_keys_events_that_arrive_amid_a_discard_are_freed_at_its_end(
    held: tuple[World, Redriving], engine: Engine
) -> None:
    world, desk = held
    job = desk.ask(4, move="discard", rate=SLOW)
    desk.slice(job, seconds=0)
    assert statuses_of(engine) == {0: "waiting", 1: "held", 2: "discarded", 3: "discarded"}
    world.ingest(of_key(4, 5))
    desk.slice(job)
    assert statuses_of(engine) == {**dict.fromkeys(range(4), "discarded"), 4: "waiting", 5: "held"}
    assert (desk.now(job).moved, desk.now(job).unmoved) == (4, 0)
