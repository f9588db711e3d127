"""Promises of every store about redrives that meet: other redrives, keepers, drivers, deaths, and a new incarnation."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import StoreFault
from core.incarnations.next_incarnation import Incarnations
from core.letters.listing import LetterChoice
from core.letters.redrive import Redrive
from core.model.commits import LetterStatus
from core.model.events import PartitionId, SequenceNumber
from core.model.letters import LetterMove, LetterPosition, OrderedMove
from core.settle.partition_store import Partitions
from core.store.database import StreamClosed
from tests.core.letters.test_held import World, of_key
from tests.core.letters.test_held import statuses as statuses_of
from tests.fakes.builders import claim, keep_letters, partition
from tests.fakes.faulty_database import Fault, FaultyStore, Killed
from tests.fakes.incarnations import opening
from tests.fakes.kept import Engine
from tests.fakes.memory_store import MemoryStore
from tests.fakes.redriving import ALL, Redriving, with_exhausted_letters
from tests.fakes.store import Store

LETTERS = dict.fromkeys(range(8), "a")
SLOW = 4  # letters a second: pieces of two


@pytest.fixture
def desk(store: Store) -> Redriving:
    """Eight exhausted letters of partition 0, eight of partition 1."""
    return with_exhausted_letters(store, LETTERS)


def test_jobs_over_the_same_letters_that_several_drivers_work_on_count_each_letter_once(
    desk: Redriving, make_store: Callable[[], Store], engine: Engine
) -> None:
    filters = [
        ALL,
        *(LetterChoice(partition_id=PartitionId(place)) for place in "01"),
        LetterChoice(status="exhausted"),
    ]
    jobs = [
        desk.ask(8 if one.partition_id else 16, one, "requeue" if number % 2 else "discard", rate=2_000_000)
        for number, one in enumerate(filters)
    ]
    drivers = [Redriving(make_store(), desk.clock, seed=number + 1) for number in range(4)]

    def work(place: int) -> None:
        for job in jobs[place:] + jobs[:place]:
            drivers[place].slice(job)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    for job in map(desk.now, jobs):
        listed = desk.moved(job)
        own = [one for one in engine.attempts() if one.touched_by == str(job.task.task_id)]
        assert job.task.status == "done"
        assert (job.moved + job.unmoved, len(set(listed))) == (job.task.total, len(listed))
        assert sorted(listed) == sorted((one.partition_id, one.sequence_number) for one in own)
        assert job.moved == len(listed)
    assert {one.status for one in engine.letters()} == {"discarded"}


def test_a_retry_leaves_a_letter_to_the_keeper_that_has_claimed_it(desk: Redriving, engine: Engine) -> None:
    first = desk.ask(8, LetterChoice(partition_id=PartitionId("0")))
    desk.slice(first)
    claimed = desk.store.claim_letters(claim(at=desk.clock.now(), most=3))
    assert len(claimed) == 3
    second = desk.ask(13)
    desk.slice(second)
    assert (desk.now(second).moved, desk.now(second).unmoved) == (13, 0)
    taken = {(one.position.partition_id, one.position.sequence_number) for one in claimed}
    assert taken.isdisjoint(desk.moved(second))
    assert {one.status for one in engine.letters() if (one.partition_id, one.sequence_number) in taken} == {"retrying"}


@pytest.mark.parametrize("move", ["requeue", "discard"])
def test_an_incarnation_that_opens_amid_a_job_cancels_it_and_no_letter_of_either_is_moved(
    desk: Redriving, engine: Engine, move: str
) -> None:
    job = desk.ask(16, move=move, rate=SLOW)  # type: ignore[arg-type]
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
    assert desk.means.listing.count_matching(ALL, ("exhausted",)) == 16  # remembers the stream for some seconds
    Incarnations(desk.store.database, Partitions(desk.store.database)).open_incarnation(opening(desk.store))
    keep_letters(desk.store, LETTERS, status="exhausted", due_at=None)
    selected = tuple(LetterPosition(PartitionId("0"), SequenceNumber(number)) for number in (2, 4))
    for chosen, count in ((selected, 2), (ALL, 16)):
        with pytest.raises(StreamClosed):
            desk.ask(count, chosen, "discard")
    assert desk.store.read_redrives(desk.means.stream, 10, None) == ()
    assert {one.status for one in engine.letters()} == {"exhausted"}


def test_under_the_order_of_keys_a_retry_moves_the_first_letter_and_the_others_follow_it(
    store: Store, engine: Engine
) -> None:
    world, desk = _held(store)
    job = desk.ask(1)  # held letters are not movable
    desk.slice(job)
    assert statuses_of(engine) == {0: "waiting", 1: "held", 2: "held", 3: "held"}
    world.broken = set()
    world.retry()
    assert set(statuses_of(engine).values()) == {"resolved"}


def test_under_the_order_of_keys_events_that_arrive_amid_a_discard_are_freed_at_its_end(
    store: Store, engine: Engine
) -> None:
    world, desk = _held(store)
    job = desk.ask(4, move="discard", rate=SLOW)
    desk.slice(job, seconds=0)
    assert statuses_of(engine) == {0: "waiting", 1: "held", 2: "discarded", 3: "discarded"}
    world.ingest(of_key(4, 5))
    desk.slice(job)
    assert statuses_of(engine) == {**dict.fromkeys(range(4), "discarded"), 4: "waiting", 5: "held"}
    assert (desk.now(job).moved, desk.now(job).unmoved) == (4, 0)


def _held(store: Store) -> tuple[World, Redriving]:
    """A key whose event 0 has failed, with 1 to 3 held after it."""
    world = World(store)
    world.broken = {0}
    world.ingest(of_key(0, 1, 2, 3))
    desk = Redriving(store, world.clock)
    world.clock.advance(1)
    return world, desk


NUMBERS = range(8)
PLACES = ("0", "1")
ACTS = st.one_of(
    st.tuples(st.just("drive"), st.integers(0, 1), st.sampled_from([*Fault, None])),
    st.tuples(st.sampled_from(["pause", "resume", "fail again"]), st.just(0), st.none()),
)


def world(order: str) -> tuple[MemoryStore, Redriving]:
    """Sixteen exhausted letters of two partitions; of one key each, of which all but the first are held."""
    store = MemoryStore()
    for place in PLACES:
        keep_letters(store, dict.fromkeys(NUMBERS, "a"), place, status="exhausted", due_at=None)
    if order == "held":
        store.sql("UPDATE event_hub_dead_letter SET partition_key = 'k'")
        held = "UPDATE event_hub_dead_letter SET status = 'held', held_behind = sequence_number - 1"
        store.sql(f"{held} WHERE sequence_number > 0")
    desk = Redriving(store)
    desk.clock.advance(60)
    return store, desk


def drive(desk: Redriving, job: Redrive, seed: int, fault: Fault | None) -> None:
    """Let one of two drivers work on the job for a while; it dies, loses its answer or a rival is faster, as the fault
    says."""
    rival = Redriving(desk.store, desk.clock, seed=seed + 10)
    faulty = FaultyStore(desk.store, on_letters=[None, fault], meanwhile=lambda: rival.slice(job, seconds=0))
    driver = Redriving(faulty, desk.clock, seed=seed + 1)
    try:
        driver.slice(job, seconds=0.6)
    except (StoreFault, Killed):
        desk.clock.advance(1)


def fail_again(desk: Redriving, moved: OrderedMove) -> None:
    """Every requeued letter fails its retry, and is exhausted again."""
    if moved == "requeue":
        for place in PLACES:
            numbers = tuple(map(SequenceNumber, NUMBERS))
            now = desk.clock.now()
            move = LetterMove("exhaust", partition(place), numbers, f"fail-{now}", now, now, "keeper", "it failed")
            desk.store.move_letters(replace(move))


@given(st.lists(ACTS, max_size=12), st.sampled_from(["requeue", "discard"]), st.sampled_from([None, 4, 6]))
def test_any_order_of_deaths_drivers_and_pauses_moves_each_letter_once(
    acts: list[tuple[str, int, Fault | None]], move: OrderedMove, rate: int | None
) -> None:
    store, desk = world("none")
    job, began = desk.ask(16, move=move, rate=rate), desk.clock.now()
    for what, seed, fault in acts:
        if what == "drive":
            drive(desk, job, seed, fault)
        elif what == "fail again":
            fail_again(desk, move)
        else:
            desk.move(job, "pause" if what == "pause" else "resume")
    desk.move(job, "resume")
    assert desk.slice(job).is_over
    ended = desk.now(job)
    every = [(place, number) for place in PLACES for number in NUMBERS]
    assert (ended.task.status, ended.moved, ended.unmoved) == ("done", 16, 0)
    assert sorted(desk.moved(job)) == every
    own = [one for one in store.attempts() if one.touched_by == str(job.task.task_id)]
    assert Counter((one.partition_id, one.sequence_number) for one in own) == Counter(every)
    if rate:
        assert (desk.clock.now() - began).total_seconds() >= (16 - rate // 2) / rate


@given(st.lists(ACTS, max_size=6))
def test_a_discard_of_a_whole_key_frees_no_letter_on_its_way(acts: list[tuple[str, int, Fault | None]]) -> None:
    store, desk = world("held")
    job = desk.ask(16, move="discard", rate=6)
    for what, seed, fault in acts:
        if what == "drive":
            drive(desk, job, seed, fault)
    desk.slice(job)
    statuses: list[LetterStatus | str] = [one.status for one in store.letters()]
    assert statuses == ["discarded"] * 16
    assert {one.kind for one in store.attempts()} == {"discard"}
