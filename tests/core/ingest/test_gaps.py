"""core/ingest/gaps.py within ingest_batch: what is missing is fetched back, and only what the hub lost is absent."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from core.errors import GapNotHealed, HubUnreachable, StoreUnavailable
from core.ingest.gaps import NO_GAP_READING, GapReading, gap_rows
from core.ingest.ingest import Ingestion, IngestReport, ingest_batch
from core.model.events import BATCH_EVENTS as PIECE
from core.model.events import Event, SequenceNumber, Span
from core.model.ports import Clock
from tests.fakes.builders import FakeClock, batch, event, events, partition, stamps
from tests.fakes.faulty_database import Fault, FaultyStore
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.memory_store import MemoryStore
from tests.fakes.one_pass import assert_equals_one_pass
from tests.fakes.plain_transform import PLAIN
from tests.fakes.store import Store

Row = tuple[int, int, str]


def readings(first: int, last: int) -> tuple[Event, ...]:
    return events(first, last, "reading a")


def gap(first: int, last: int) -> Span:
    return Span(SequenceNumber(first), SequenceNumber(last))


class World:
    """A hub that holds events 0 to `last`, and a store in which 0 to 4 are committed."""

    def __init__(self, last: int = 29) -> None:
        self.store, self.clock = MemoryStore(), FakeClock()
        self.log = readings(0, last)
        self.hub = MemoryHub({"0": self.log})
        self.deliver(0, 4)

    def deliver(self, first: int, last: int, *, store: Store | None = None, seed: int | None = None) -> IngestReport:
        return self.deliver_events(self.log[first : last + 1], store or self.store, first if seed is None else seed)

    def deliver_events(self, given: tuple[Event, ...], store: Store | None = None, seed: int = 99) -> IngestReport:
        gap_reading = GapReading(self.hub, patience=timedelta(seconds=60))
        return ingest_batch(batch(given), Ingestion(store or self.store, PLAIN, stamps(seed, self.clock), gap_reading))

    def ranges(self) -> list[tuple[int, int, int]]:
        return [(kept.first, kept.last, kept.absent) for kept in self.store.ledger()]

    def gaps(self) -> list[Row]:
        return [(kept.first, kept.last, kept.status) for kept in self.store.gaps()]

    def lost(self, *numbers: int) -> None:
        self.hub.lose("0", *numbers)

    def assert_whole(self, upto: int, *absent: int) -> None:
        log = [each for each in self.log[: upto + 1] if each.sequence_number not in absent]
        assert_equals_one_pass(self.store, {"0": log}, absent={"0": set(absent)})
        assert [books.balanced for books in self.store.read_ledgers()] == [True]
        assert [one for one in self.gaps() if one[2] == "open"] == []


@pytest.fixture
def world() -> World:
    return World()


class TestBeforeABatch:
    def test_what_the_host_skipped_is_fetched_back_and_committed_first(self, world: World) -> None:
        report = world.deliver(10, 14)
        assert world.ranges() == [(0, 4, 0), (5, 9, 0), (10, 14, 0)]
        assert world.gaps() == [(5, 9, "healed")]
        assert (report.healed, report.absent, report.redelivered, report.gaps) == (5, 0, 0, (gap(5, 9),))
        world.assert_whole(14)

    def test_what_retention_cut_is_absent_and_nothing_else_is(self, world: World) -> None:
        world.hub.expire_before("0", 8)
        report = world.deliver(10, 14)
        assert world.ranges() == [(0, 4, 0), (5, 9, 3), (10, 14, 0)]
        assert world.gaps() == [(5, 7, "absent"), (8, 9, "healed")]
        assert (report.healed, report.absent) == (2, 3)
        world.assert_whole(14, 5, 6, 7)

    def test_a_gap_of_which_nothing_is_left_is_absent_within_the_commit_of_the_batch(self, world: World) -> None:
        world.hub.expire_before("0", 10)
        report = world.deliver(10, 14)
        assert world.ranges() == [(0, 4, 0), (5, 14, 5)]
        assert world.gaps() == [(5, 9, "absent")]
        assert (report.healed, report.absent, report.redelivered) == (0, 5, 0)
        world.assert_whole(14, *range(5, 10))

    def test_holes_that_the_hub_has_in_a_gap_are_absent_each(self, world: World) -> None:
        world.lost(6, 7, 9)
        world.deliver(10, 14)
        assert world.gaps() == [(5, 5, "healed"), (6, 7, "absent"), (8, 8, "healed"), (9, 9, "absent")]
        world.assert_whole(14, 6, 7, 9)

    def test_a_long_gap_comes_back_in_pieces_each_its_own_commit(self) -> None:
        world = World(last=3 * PIECE + 20)
        report = world.deliver(2 * PIECE + 7, 2 * PIECE + 8)
        sizes = [kept.last - kept.first + 1 for kept in world.store.ledger()]
        assert sizes == [5, PIECE - 1, PIECE, 3, 2]  # the first piece begins with the checkpoint's own event
        assert report.healed == 2 * PIECE + 2
        world.assert_whole(2 * PIECE + 8)

    def test_a_redelivered_batch_asks_the_hub_for_nothing(self, world: World) -> None:
        world.deliver(10, 14)
        world.hub.asked.clear()
        assert world.deliver(10, 14).redelivered == 5
        assert world.hub.asked == []

    def test_a_batch_that_follows_asks_the_hub_for_nothing(self, world: World) -> None:
        world.hub.asked.clear()
        world.deliver(5, 9)
        assert world.hub.asked == []


class TestInsideABatch:
    def test_holes_in_a_batch_are_fetched_back(self, world: World) -> None:
        given = (*world.log[5:8], *world.log[10:12], *world.log[14:15])
        report = world.deliver_events(given)
        assert (report.healed, report.absent, report.redelivered) == (4, 0, 0)
        assert (report.gaps, len(report.commits)) == ((gap(8, 13),), 2)
        world.assert_whole(14)

    def test_some_holes_come_back_and_some_do_not(self, world: World) -> None:
        world.lost(8, 11)
        given = tuple(each for each in world.log[5:15] if each.sequence_number not in (6, 8, 11, 12))
        report = world.deliver_events(given)
        assert (report.healed, report.absent) == (2, 2)
        world.assert_whole(14, 8, 11)

    def test_events_in_hand_are_never_absent_although_the_hub_lost_them_meanwhile(self, world: World) -> None:
        world.hub.expire_before("0", 20)
        given = (*world.log[6:8], *world.log[10:12])
        report = world.deliver_events(given)
        assert (report.healed, report.absent, report.redelivered) == (0, 3, 0)
        world.assert_whole(11, 5, 8, 9)

    def test_a_gap_before_and_holes_inside_are_one_question_to_the_hub(self, world: World) -> None:
        world.hub.asked.clear()
        world.deliver_events((*world.log[8:10], *world.log[12:15]))
        assert world.hub.asked == ["read_range"]
        world.assert_whole(14)


class TestTrouble:
    def test_a_hub_that_cannot_be_asked_holds_the_batch_and_leaves_the_gap_open(self, world: World) -> None:
        world.hub.fails = lambda: True
        for _ in range(3):
            with pytest.raises(HubUnreachable):
                world.deliver(10, 14)
        assert world.ranges() == [(0, 4, 0)]
        (kept,) = world.store.gaps()
        assert (kept.first, kept.last, kept.status, kept.attempts) == (5, 9, "open", 3)
        assert kept.found_at == world.clock.now()

    def test_a_hub_that_fails_between_pieces_leaves_what_was_committed(self) -> None:
        world = World(last=4 * PIECE)
        answers = iter([False] * (PIECE + 50) + [True])
        world.hub.fails = lambda: next(answers, False)
        with pytest.raises(HubUnreachable):
            world.deliver(3 * PIECE, 4 * PIECE)
        assert [kept.last for kept in world.store.ledger()] == [4, PIECE + 3]
        assert world.gaps() == [(5, PIECE + 3, "healed"), (PIECE + 4, 3 * PIECE - 1, "open")]
        world.deliver(3 * PIECE, 4 * PIECE)
        world.assert_whole(4 * PIECE)

    def test_after_its_time_healing_stops_between_pieces_and_the_next_delivery_goes_on(self) -> None:
        world = World(last=4 * PIECE)
        turns = 0
        while True:
            turns += 1
            try:
                own = Clock(_slow(world.clock), iter_ids(turns))
                gap_reading = GapReading(world.hub, patience=timedelta(seconds=60))
                ingest_batch(batch(world.log[3 * PIECE :]), Ingestion(world.store, PLAIN, own, gap_reading))
                break
            except GapNotHealed as fault:
                assert (fault.partition, fault.last) == (partition(), 3 * PIECE - 1)
                assert world.gaps()[-1] == (fault.first, fault.last, "open")
        assert turns == 3
        world.assert_whole(4 * PIECE)

    def test_an_owner_that_heals_the_same_gap_meanwhile_wins_and_the_other_drops_it(self, world: World) -> None:
        def rival(_: Store, __: object) -> None:
            world.deliver(10, 14, seed=50)

        report = world.deliver(10, 14, store=FaultyStore(world.store, on_commit=[Fault.RIVAL], rival=rival))
        assert (report.commits, report.redelivered, report.healed) == ((), 5, 0)
        world.assert_whole(14)

    def test_an_owner_that_heals_a_part_meanwhile_leaves_the_rest(self, world: World) -> None:
        def rival(_: Store, __: object) -> None:
            world.deliver(5, 7, seed=50)

        report = world.deliver(10, 14, store=FaultyStore(world.store, on_commit=[Fault.RIVAL], rival=rival))
        assert [(commit.first, commit.last.sequence_number) for commit in report.commits] == [(8, 9), (10, 14)]
        assert [kept.last for kept in world.store.ledger()] == [4, 7, 9, 14]

    @pytest.mark.parametrize("fault", [Fault.UNANSWERED, Fault.LOST])
    def test_a_lost_answer_while_healing_is_settled_as_usual(self, world: World, fault: Fault) -> None:
        world.hub.expire_before("0", 7)
        report = world.deliver(10, 14, store=FaultyStore(world.store, on_commit=[fault, fault]))
        assert (report.healed, report.absent, report.redelivered) == (3, 2, 0)
        world.assert_whole(14, 5, 6)

    def test_a_memory_that_has_become_stale_makes_no_gap(self, world: World) -> None:
        steady = world.store.remembering(timedelta(hours=1), world.clock.monotonic)
        world.deliver(5, 9, store=steady, seed=1)
        world.deliver(10, 14, seed=2)
        world.hub.asked.clear()
        report = world.deliver(15, 19, store=steady, seed=3)
        assert (world.hub.asked, world.gaps(), report.gaps) == ([], [], ())
        world.assert_whole(19)

    def test_a_gap_that_the_trigger_hands_over_after_all_is_closed_when_it_lies_before_the_checkpoint(
        self, world: World
    ) -> None:
        world.hub.fails = lambda: True
        with pytest.raises(HubUnreachable):
            world.deliver(10, 14)
        world.deliver(5, 8)
        world.store.close_gaps(partition())
        assert world.gaps() == [(5, 9, "open")]
        world.deliver(9, 14)
        world.store.close_gaps(partition())
        assert world.gaps() == [(5, 9, "healed")]

    def test_without_a_hub_reader_a_gap_holds_the_batch(self, world: World) -> None:
        with pytest.raises(HubUnreachable, match="telemetry/hubledger/0 from 4 to 9 cannot be read"):
            ingest_batch(batch(world.log[10:15]), Ingestion(world.store, PLAIN, stamps(7), NO_GAP_READING))


class TestTheBeginning:
    def test_a_skipped_first_batch_is_fetched_back_from_where_the_hub_begins(self) -> None:
        store, hub = MemoryStore(), MemoryHub({"0": readings(0, 20)})
        hub.expire_before("0", 3)
        report = ingest_batch(batch(readings(10, 14)), Ingestion(store, PLAIN, stamps(), GapReading(hub)))
        assert [(kept.first, kept.last, kept.absent) for kept in store.ledger()] == [(3, 9, 0), (10, 14, 0)]
        assert (report.healed, report.gaps) == (7, (gap(3, 9),))
        assert [books.balanced for books in store.read_ledgers()] == [True]

    def test_the_anchor_stays_where_it_was_although_retention_moves_on(self) -> None:
        store, hub = MemoryStore(), MemoryHub({"0": readings(0, 20)})
        hub.expire_before("0", 3)
        with pytest.raises(StoreUnavailable):
            faulty = FaultyStore(store, on_commit=[Fault.NOT_REACHED])
            ingest_batch(batch(readings(10, 14)), Ingestion(faulty, PLAIN, stamps(), GapReading(hub)))
        hub.expire_before("0", 6)
        ingest_batch(batch(readings(10, 14)), Ingestion(store, PLAIN, stamps(1), GapReading(hub)))
        assert [(kept.first, kept.last, kept.absent) for kept in store.ledger()] == [(3, 9, 3), (10, 14, 0)]


@pytest.mark.parametrize(
    ("numbers", "committed", "asked", "rows"),
    [
        ((), gap(0, 9), gap(10, 20), []),
        ((30,), gap(30, 30), gap(10, 20), []),
        ((10, 11), gap(10, 11), gap(10, 20), [(10, 11, "healed"), (12, 20, "open")]),
        ((12, 13), gap(10, 14), gap(10, 14), [(10, 11, "absent"), (12, 13, "healed"), (14, 14, "absent")]),
        ((25,), gap(10, 25), gap(10, 20), [(10, 20, "absent")]),
        ((8, 9, 12), gap(8, 12), gap(10, 20), [(10, 11, "absent"), (12, 12, "healed"), (13, 20, "open")]),
    ],
)  # fmt: skip
def test_a_range_that_was_asked_for_is_cut_into_what_came_back_what_did_not_and_what_is_open(
    numbers: tuple[int, ...], committed: Span, asked: Span, rows: list[Row]
) -> None:
    run = [event(number) for number in numbers]
    assert [(one.first, one.last, one.status) for one in gap_rows(run, committed, asked)] == rows


def _slow(clock: FakeClock) -> Callable:
    """Every look at the clock finds it 40 seconds later."""

    def now() -> object:
        clock.advance(40)
        return clock.now()

    return now


def iter_ids(seed: int) -> Callable:
    return stamps(1_000 + seed).new_id
