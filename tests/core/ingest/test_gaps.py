import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import (
    CheckpointConflict,
    GapNotHealed,
    HubUnreachable,
    StoreUnavailable,
    StreamIncarnationChanged,
)
from core.ingest.gaps import NO_GAP_READING, GapReading
from core.ingest.guard import Guarded, guard
from core.model.commits import Checkpoint, PartitionState
from core.model.events import BATCH_EVENTS as PIECE
from core.model.events import Event, SequenceNumber, Span, span
from core.store.database import write
from examples.home_security.transform import HomeAlert, SensorReading
from tests.core.ingest.conftest import World
from tests.fakes.builders import PATIENCE, batch, commit, event, events, partition, stamps
from tests.fakes.faulty_database import Fault
from tests.fakes.kept import Engine, PersistentEngine, assert_equals_one_pass
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.separate import handed_over, output, start
from tests.fakes.store import Store
from tests.patience import allowed, ended

Row = tuple[int, int, str]


def made(last: int = 29) -> World:
    world = World(events(0, last, "reading a"))
    world.deliver(0, 4)
    return world


@pytest.fixture
def world() -> World:
    return made()


@pytest.mark.parametrize(
    ("lost", "ranges", "rows"),
    [
        pytest.param(
            (), [(5, 9, 0), (10, 14, 0)], [(5, 9, "healed")], id="all came back, in a commit before the batch"
        ),
        pytest.param(
            (0, 1, 2, 3, 4, 5, 6, 7),
            [(5, 9, 3), (10, 14, 0)],
            [(5, 7, "absent"), (8, 9, "healed")],
            id="retention cut a part",
        ),
        pytest.param(range(10), [(5, 14, 5)], [(5, 9, "absent")], id="nothing is left: absent in the batch's commit"),
        pytest.param(
            (6, 7, 9),
            [(5, 8, 2), (9, 14, 1)],
            [(5, 5, "healed"), (6, 7, "absent"), (8, 8, "healed"), (9, 9, "absent")],
            id="holes",
        ),
    ],
)
def test_what_the_host_skipped_is_fetched_back_and_what_the_hub_lost_is_absent(
    world: World, lost: tuple[int, ...], ranges: list[tuple[int, int, int]], rows: list[Row]
) -> None:
    world.hub.lose("0", *lost)
    report = world.deliver(10, 14)
    assert (world.ranges(), world.gaps()) == ([(0, 4, 0), *ranges], rows)
    absent = [number for number in lost if number > 4]
    assert (report.healed, report.absent, report.redelivered) == (5 - len(absent), len(absent), 0)
    assert report.gaps == (span(5, 9),)
    world.assert_whole(14, *absent)
    world.hub.asked.clear()
    assert world.deliver(10, 14).redelivered == 5
    world.deliver(15, 19)
    assert world.hub.asked == [], "a batch that is redelivered or follows asks the hub for nothing"


def test_a_long_gap_comes_back_in_pieces_each_its_own_commit() -> None:
    world = made(last=3 * PIECE + 20)
    report = world.deliver(2 * PIECE + 7, 2 * PIECE + 8)
    sizes = [kept.last - kept.first + 1 for kept in world.store.ledger()]
    assert sizes == [5, PIECE - 1, PIECE, 3, 2]  # the first piece begins with the checkpoint's own event
    assert report.healed == 2 * PIECE + 2
    world.assert_whole(2 * PIECE + 8)


@pytest.mark.parametrize(
    ("numbers", "lost", "healed", "absent"),
    [
        pytest.param((5, 6, 7, 10, 11, 14), (), 4, (), id="holes come back"),
        pytest.param((5, 7, 9, 10, 13, 14), (8, 11), 2, (8, 11), id="some come back and some do not"),
        pytest.param((6, 7, 10, 11, 14), range(20), 0, (5, 8, 9, 12, 13), id="what is in hand is never absent"),
        pytest.param((8, 9, 12, 13, 14), (), 5, (), id="a gap before and holes inside"),
    ],
)
def test_holes_in_a_batch_are_fetched_back_with_one_question(
    world: World, numbers: tuple[int, ...], lost: tuple[int, ...], healed: int, absent: tuple[int, ...]
) -> None:
    world.hub.lose("0", *lost)
    world.hub.asked.clear()
    report = world.take(*(world.log[number] for number in numbers))
    assert (report.healed, report.absent, report.redelivered) == (healed, len(absent), 0)
    assert (len(report.commits), world.hub.asked) == (2, ["read_range"])
    world.assert_whole(14, *absent)


def test_a_hub_that_cannot_be_asked_holds_the_batch_and_leaves_the_gap_open(world: World) -> None:
    with pytest.raises(HubUnreachable, match="telemetry/hubledger/0 from 4 to 9 cannot be read"):
        world.deliver(10, 14, gap_reading=NO_GAP_READING)
    world.hub.fails = lambda: True
    for _ in range(2):
        with pytest.raises(HubUnreachable):
            world.deliver(10, 14)
    assert world.ranges() == [(0, 4, 0)]
    (kept,) = world.store.gaps()
    assert (kept.first, kept.last, kept.status, kept.attempts) == (5, 9, "open", 3)
    assert kept.found_at == world.clock.now()
    world.deliver(5, 8)
    world.store.close_gaps(partition())
    assert world.gaps() == [(5, 9, "open")], "the trigger hands over a part after all"
    world.deliver(9, 14)
    world.store.close_gaps(partition())
    assert world.gaps() == [(5, 9, "healed")]


def test_after_its_time_healing_stops_between_pieces_and_the_next_delivery_goes_on() -> None:
    world = made(last=4 * PIECE)

    def slow() -> datetime:
        world.clock.advance(40)
        return world.clock.now()

    reading = GapReading(world.hub, patience=timedelta(seconds=60))
    world.means = replace(world.means, clock=replace(world.means.clock, now=slow), gap_reading=reading)
    for _ in range(2):
        with pytest.raises(GapNotHealed) as caught:
            world.deliver(3 * PIECE, 4 * PIECE)
        assert (caught.value.partition, caught.value.last) == (partition(), 3 * PIECE - 1)
        assert world.gaps()[-1] == (caught.value.first, caught.value.last, "open")
    world.deliver(3 * PIECE, 4 * PIECE)
    world.assert_whole(4 * PIECE)


def test_a_memory_that_has_become_stale_makes_no_gap(world: World) -> None:
    steady = world.store.remembering(timedelta(hours=1), world.clock.monotonic)
    world.deliver(5, 9, store=steady)
    world.deliver(10, 14)
    world.hub.asked.clear()
    report = world.deliver(15, 19, store=steady)
    assert (world.hub.asked, world.gaps(), report.gaps) == ([], [], ())
    world.assert_whole(19)


@pytest.mark.parametrize("later", [3, 6])
def test_a_skipped_first_batch_is_fetched_back_from_where_the_hub_began(later: int) -> None:
    world = World(events(0, 20, "reading a"))
    world.hub.expire_before("0", 3)
    with pytest.raises(StoreUnavailable):
        world.deliver(10, 14, store=world.faulty(Fault.NOT_REACHED))
    world.hub.expire_before("0", later)  # retention moves on, the anchor stays
    report = world.deliver(10, 14)
    assert world.ranges() == [(3, 9, later - 3), (10, 14, 0)]
    assert (report.healed, report.absent, report.gaps) == (10 - later, later - 3, (span(3, 9),))
    assert [books.balanced for books in world.store.read_ledgers()] == [True]


def committed(number: int) -> PartitionState:
    checkpoint = Checkpoint(SequenceNumber(number), str(number * 64), event(number).enqueued_at, 1, UUID(int=1))
    return PartitionState(partition(), 1, checkpoint)


def anchored(number: int) -> PartitionState:
    """A partition without a commit that begins at a number."""
    return PartitionState(partition(), 1, None, SequenceNumber(number))


FIVE, HOLED = events(5, 9), (*events(0, 2), *events(5, 6), event(9))
EARLY = event(5, at=event(0).enqueued_at)


@pytest.mark.parametrize(
    ("given", "state", "run", "missing"),
    [
        pytest.param(FIVE, anchored(5), FIVE, None, id="all events from the anchor on are new"),
        pytest.param(FIVE, anchored(7), FIVE[2:], None, id="events before the anchor are dropped"),
        pytest.param(FIVE, anchored(10), (), None, id="a batch before the anchor is dropped whole"),
        pytest.param(FIVE, anchored(2), FIVE, span(2, 4), id="between anchor and batch is a gap"),
        pytest.param(FIVE, committed(4), FIVE, None, id="events that follow the checkpoint are new"),
        *(pytest.param(FIVE, committed(at), (), None, id=f"committed already at {at}") for at in (9, 10, 99)),
        *(pytest.param(FIVE, committed(at), events(at + 1, 9), None, id=f"redelivered to {at}") for at in (5, 6, 8)),
        pytest.param(FIVE, committed(3), FIVE, span(4, 4), id="one number is missing before the batch"),
        pytest.param(FIVE, committed(0), FIVE, span(1, 4), id="between checkpoint and batch is a gap"),
        pytest.param(HOLED, committed(0), HOLED[1:], span(3, 8), id="a gap reaches over all holes"),
        pytest.param(HOLED, committed(2), HOLED[3:], span(3, 8), id="a gap begins after the checkpoint"),
        pytest.param(HOLED, committed(4), HOLED[3:], span(7, 8), id="holes before the checkpoint are none"),
        pytest.param(HOLED, committed(7), HOLED[5:], span(8, 8), id="the checkpoint is in a hole"),
        pytest.param(HOLED, committed(8), HOLED[5:], None, id="the checkpoint ends the last hole"),
        pytest.param((EARLY,), committed(4), (EARLY,), None, id="new numbers of any time"),
        pytest.param((event(8, at=event(9).enqueued_at),), committed(9), (), None, id="of the checkpoint's instant"),
    ],
)
def test_a_batch_has_the_events_that_are_new_and_the_gap_before_and_among_them(
    given: tuple[Event, ...], state: PartitionState, run: tuple[Event, ...], missing: Span | None
) -> None:
    assert guard(batch(given), state) == Guarded(run, state.next_number, missing)


@pytest.mark.parametrize(
    ("asked", "missing"),
    [(span(3, 8), None), (span(0, 99), None), *((part, span(3, 8)) for part in (span(3, 7), span(4, 8), span(20, 30)))],
)
def test_what_the_hub_was_asked_for_is_no_gap_any_more(asked: Span, missing: Span | None) -> None:
    known = replace(batch(HOLED), asked=asked)
    assert guard(known, committed(0)) == Guarded(HOLED[1:], SequenceNumber(1), missing)


@pytest.mark.parametrize(
    ("numbers", "checkpoint"), [([3], 100), ([4], 4), ([4, 5, 6], 4), ([3, 4, 5], 9)], ids=lambda value: str(value)
)
def test_an_old_number_sent_after_the_checkpoint_is_another_incarnation(numbers: list[int], checkpoint: int) -> None:
    later = event(checkpoint).enqueued_at + timedelta(microseconds=1)
    changed = next(number for number in reversed(numbers) if number <= checkpoint)
    with pytest.raises(StreamIncarnationChanged) as refusal:
        guard(
            batch([event(number, at=later if number == changed else None) for number in numbers]), committed(checkpoint)
        )
    assert refusal.value.partition == partition()
    with pytest.raises(ValueError, match="telemetry/hubledger/0 is not anchored"):  # nothing is guessed
        guard(batch(events(0, 1)), PartitionState(partition(), 1, None))
    assert refusal.value.evidence == f"event {changed} was enqueued after the checkpoint at {checkpoint}"


BATCHES, SIZE = 30, 10
BODIES = ["reading a", "double b", "quiet", "poison", "bug", "home a 0", "home a 1", "look a", "look b", "home b 1"]
BODIES += ["huge a"]  # no database takes this
LOGS = st.lists(st.sampled_from(BODIES), min_size=1, max_size=25).map(
    lambda bodies: [event(number, body) for number, body in enumerate(bodies)]
)


@pytest.mark.slow
@given(LOGS, st.sets(st.integers(0, 24)), st.sets(st.integers(0, 24)), st.integers(0, 20))
@settings(max_examples=300)
def test_whatever_a_batch_lacks_comes_from_the_hub_or_is_absent(
    log: list[Event], not_in_hand: set[int], lost: set[int], beginning: int
) -> None:
    in_hand = [each for each in log if each.sequence_number not in not_in_hand and each.sequence_number >= beginning]
    if not in_hand:
        return
    world = World(log)
    if beginning:
        world.deliver(0, beginning - 1)
    world.hub.lose("0", *(lost & set(range(len(log)))))
    report = world.take(*in_hand)
    numbers = {each.sequence_number for each in in_hand}
    last = in_hand[-1].sequence_number
    since = beginning or min({0} if 0 in numbers else {min(world.hub.held["0"], default=99), min(numbers)})
    absent = (set(range(since, last + 1)) & lost) - numbers
    wanted = [each for each in log[: last + 1] if each.sequence_number not in absent]
    wanted = [each for each in wanted if beginning or each.sequence_number >= since]
    assert_equals_one_pass(world.store, {"0": wanted}, absent={"0": absent})
    assert (report.absent, report.redelivered) == (len(absent), 0)
    assert report.healed == len([each for each in wanted if each.sequence_number >= since]) - len(in_hand)
    assert [books.balanced for books in world.store.read_ledgers()] == [True]
    assert not [gap for gap in world.gaps() if gap[2] == "open"]


def assert_each_event_once(engine: Engine, length: int, filtered: int = 0) -> None:
    numbers = list(range(length))
    assert [kept.sequence_number for kept in engine.rows(SensorReading)] == numbers
    assert [kept.sequence_number for kept in engine.rows(HomeAlert)] == numbers
    accounted = [number for kept in engine.ledger() for number in range(kept.first, kept.last + 1)]
    assert accounted == list(range(length + filtered))
    assert [kept.commit_number for kept in engine.ledger()] == list(range(1, len(engine.ledger()) + 1))


def test_threads_that_heal_one_gap_commit_each_event_once(make_store: Callable[[], Store], engine: Engine) -> None:
    log = events(0, 2_999, "double home-1")
    hub = MemoryHub({"0": log})
    hub.lose("0", 1_000, 1_001, 2_500)
    stores = [make_store().patient(PATIENCE).remembering(timedelta(hours=1)) for _ in range(3)]
    handed_over(batch(log[:5]), stores[0], stamps(9), GapReading(hub))
    with ThreadPoolExecutor(3) as pool:
        healed = [
            pool.submit(handed_over, batch(log[-10:]), store, stamps(seed), GapReading(hub))
            for seed, store in enumerate(stores)
        ]
        for done in healed:
            done.result(timeout=allowed(60))
    held = [each for each in log if each.sequence_number not in (1_000, 1_001, 2_500)]
    assert_equals_one_pass(engine, {"0": held}, absent={"0": {1_000, 1_001, 2_500}})
    assert [books.balanced for books in stores[0].read_ledgers()] == [True]


@pytest.mark.slow
def test_processes_that_race_the_same_batches_commit_each_once(persistent: PersistentEngine) -> None:
    owners = [start(persistent, seed, BATCHES, SIZE) for seed in range(3)]
    for each in owners:
        output(each)
    assert_each_event_once(persistent, BATCHES * SIZE)


def commit_after_all(store: Store) -> SequenceNumber:
    """Commit one more event, behind whatever the killed process had on its way. Return its number.

    Only then is the killed process sure to commit nothing more: its checkpoint has moved.
    """
    while True:
        state = store.read_partition(partition())
        assert state.checkpoint is not None
        following = SequenceNumber(state.checkpoint.sequence_number + 1)
        try:
            store.commit_batch(commit(state, following, following))
            return following
        except CheckpointConflict:
            continue


def test_cuts_that_two_open_at_once_are_opened_once_and_are_no_fault(make_store: Callable[[], Store]) -> None:
    databases = [make_store().database for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for turn in range(10):
            cut = {"job": f"job-{turn}", "levels": "level"}
            at_once = [pool.submit(write, each, "a cut", "open_cut", **cut) for each in databases]
            assert [one.result() for one in at_once] == [[]] * 4


@pytest.mark.slow
@pytest.mark.parametrize("commits", [1, 7, 40])
def test_a_process_killed_in_the_middle_leaves_balanced_books(persistent: PersistentEngine, commits: int) -> None:
    killed = start(persistent, 1, 10_000, 200)
    assert killed.stdout is not None
    for _ in range(commits):
        killed.stdout.readline()
    os.kill(killed.pid, signal.SIGKILL)
    ended(killed, 60)
    store = persistent.open().patient(PATIENCE)
    last = commit_after_all(store)
    (books,) = store.read_ledgers()
    store.close()
    assert books.balanced
    assert books.commits > commits
    assert_each_event_once(persistent, last, filtered=1)
