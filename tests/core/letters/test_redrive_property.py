"""Whatever dies, is lost, driven twice, paused or fails again meanwhile: a redrive moves each of its letters once."""

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from core.errors import StoreFault
from core.letters.redrive import Redrive
from core.model.commits import LetterStatus
from core.model.events import SequenceNumber
from core.model.letters import LetterMove, OrderedMove
from tests.fakes.builders import keep_letters, partition
from tests.fakes.faulty_database import Fault, FaultyStore, Killed
from tests.fakes.memory_store import MemoryStore
from tests.fakes.redriving import Redriving

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
