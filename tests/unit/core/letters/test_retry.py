"""core/letters/retry.py: claim, retry and move letters, over stores that fail at every point."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from core.errors import DataRefused, HubUnreachable, InfrastructureFault, LetterConflict, StoreUnavailable
from core.letters.retry import Keeper, Order, claim_due, discard, exhaust, next_due_at, release, requeue, retry_chunk
from core.model.backoff import Backoff
from core.model.clock import Clock
from core.model.events import Event, Partition, PartitionId
from core.model.letters import LetterChunk, LetterPolicy, LetterPosition, RetryReport
from core.model.rows import References, Row
from core.model.spans import SequenceNumber
from core.model.transform import Transform
from core.store import AppStore
from core.store.remembered import RememberingStore
from core.transforms.home_security import Home, HomeAlert, SensorReading
from tests.fakes.builders import NOON, STREAM, FakeClock, commit, event, home, ids, keep_letters, partition, settled
from tests.fakes.faulty_store import Fault, FaultyStore, Killed
from tests.fakes.kept import KeptLetter
from tests.fakes.memory_store import MemoryStore
from tests.fakes.plain_transform import PLAIN

LEASE = timedelta(seconds=300)
ASKED = Order("somebody", "because")
CALLS = ["claim_letters", "read_claimed", "commit_retry"]


def at(*numbers: int, place: str = "0") -> list[LetterPosition]:
    return [LetterPosition(PartitionId(place), SequenceNumber(number)) for number in numbers]


@dataclass
class Hub:
    """A hub that has these events; `down` says that it does not answer."""

    events: dict[int, Event] = field(default_factory=dict)
    down: bool = False
    asked: list[int] = field(default_factory=list)

    def find_event(self, _: Partition, number: SequenceNumber) -> Event | None:
        self.asked.append(number)
        if self.down:
            raise HubUnreachable("the hub does not answer")
        return self.events.get(number)


class World:
    """Keepers over one database in memory, on a fake clock. Chance is all: every pause is the longest."""

    def __init__(self, *faults: Fault | None, transform: Transform = PLAIN, attempts: int = 8) -> None:
        self.clock = FakeClock()
        self.inner = MemoryStore()
        self.hub = Hub()
        self.between: Callable[[], object] = lambda: None  # what somebody else does in the middle
        self.faulty = FaultyStore(self.inner, on_letters=faults, meanwhile=lambda: self.between())
        self.policy = LetterPolicy(Backoff(attempts=attempts), chunk=10, fan_out=3)
        self.keeper = self.another(self.faulty, transform)

    def another(self, store: AppStore | None = None, transform: Transform = PLAIN, seed: int = 0) -> Keeper:
        source = iter(ids(seed + 100))
        stamps = Clock(self.clock.now, lambda: next(source))
        return Keeper(STREAM, store or self.inner, transform, self.hub.find_event, stamps, self.policy)

    def round(self, keeper: Keeper | None = None) -> list[RetryReport]:
        own = keeper or self.keeper
        return [retry_chunk(chunk, own, "retry-1") for chunk in claim_due(own)]

    def letters(self) -> list[KeptLetter]:
        return self.inner.letters()

    def letter(self, number: int = 0) -> KeptLetter:
        return self.letters()[number]

    def statuses(self) -> list[str]:
        return [kept.status for kept in self.letters()]

    def readings(self) -> list[int]:
        return [kept.sequence_number for kept in self.inner.rows(SensorReading)]


def counts(report: RetryReport) -> dict[str, int]:
    """What a report counts of letters, less what is none."""
    names = ("resolved", "waiting", "exhausted", "released", "lost")
    return {name: getattr(report, name) for name in names if getattr(report, name)}


class TestClaiming:
    def test_gives_chunks_of_ids_and_holds_them_for_a_lease(self) -> None:
        world = World()
        keep_letters(world.inner, dict.fromkeys((1, 5), "quiet"), "0")
        keep_letters(world.inner, {3: "quiet"}, "1")
        chunks = claim_due(world.keeper)
        assert [(one.partition_id, one.sequence_numbers) for one in chunks] == [("0", (1, 5)), ("1", (3,))]
        assert len({one.claimed_by for one in chunks}) == 1
        assert {kept.claimed_until for kept in world.letters()} == {NOON + LEASE}

    def test_takes_no_more_than_the_fan_out_holds(self) -> None:
        world = World()
        keep_letters(world.inner, dict.fromkeys(range(100), "quiet"))
        assert [len(one.sequence_numbers) for one in claim_due(world.keeper)] == [10, 10, 10]

    def test_of_nothing_due_is_nothing(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "quiet"}, due_at=NOON + timedelta(seconds=1))
        assert claim_due(world.keeper) == ()
        assert next_due_at(world.keeper) == NOON + timedelta(seconds=1)

    def test_an_idle_round_is_one_call(self) -> None:
        world = World()
        assert next_due_at(world.keeper) is None
        assert world.faulty.calls == ["next_due_at"]


class TestAChunk:
    def test_is_read_decided_and_written_once(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "double a", 1: "quiet", 2: "bug", 3: "poison", 4: "home b 1"})
        (report,) = world.round()
        assert counts(report) == {"resolved": 3, "waiting": 1, "exhausted": 1}
        assert (report.commits, report.rows_written) == (1, 3)
        assert world.statuses() == ["resolved", "resolved", "waiting", "exhausted", "resolved"]
        assert world.faulty.calls == ["claim_letters", "read_partition", "read_claimed", "commit_retry"]

    def test_asks_for_its_references_in_one_call(self) -> None:
        world = World()
        world.inner.commit_batch(commit(world.inner.read_partition(partition("1")), 0, 0, settled({0: [home("a")]})))
        keep_letters(world.inner, {0: "look a", 1: "look a", 2: "look nobody"})
        (report,) = world.round()
        assert counts(report) == {"resolved": 2, "waiting": 1}
        assert world.faulty.calls.count("read_references") == 1
        assert world.letter(2).error_class == "reference"

    def test_a_letter_sees_what_an_earlier_one_of_the_chunk_writes(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "home a 1", 1: "look a"})
        (report,) = world.round()
        assert counts(report) == {"resolved": 2}

    def test_says_why_a_letter_is_settled(self) -> None:
        world = World(attempts=2)
        keep_letters(world.inner, {0: "reading a", 1: "quiet", 2: "poison", 3: "bug"})
        world.round()
        assert [kept.settled_why for kept in world.letters()] == [
            "its rows were written",
            "it was filtered",
            "poison: not tried again",
            "it failed 2 times",
        ]

    def test_is_tried_with_the_deployment_of_now(self) -> None:
        world = World(transform=Transform("mended/2", lambda event, references: ()))
        keep_letters(world.inner, {0: "bug"})
        world.round()
        assert (world.letter().status, world.letter().transform_version) == ("resolved", "mended/2")

    def test_pauses_grow_until_the_attempts_are_spent(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "bug"})
        pauses = []
        while (due := next_due_at(world.keeper)) is not None:
            pauses.append((due - world.clock.now()).total_seconds())
            world.clock.advance(pauses[-1])
            world.round()
        assert pauses == [0, 60, 120, 240, 480, 960, 1920]
        assert (world.letter().status, world.letter().attempts) == ("exhausted", 8)
        assert [kept.attempt for kept in world.inner.attempts()] == list(range(1, 8))

    def test_that_is_run_twice_is_told_the_second_time(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "reading a", 1: "bug"})
        (chunk,) = claim_due(world.keeper)
        assert counts(retry_chunk(chunk, world.keeper, "one")) == {"resolved": 1, "waiting": 1}
        before = world.letters(), world.inner.attempts(), world.inner.retries()
        assert counts(retry_chunk(chunk, world.keeper, "two")) == {"lost": 2}
        assert before == (world.letters(), world.inner.attempts(), world.inner.retries())

    def test_that_never_was_claimed_is_lost(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "reading a"})
        chunk = LetterChunk(PartitionId("0"), (SequenceNumber(0), SequenceNumber(9)), "nobody")
        assert counts(retry_chunk(chunk, world.keeper, "one")) == {"lost": 2}
        assert world.statuses() == ["waiting"]

    def test_forgets_the_references_that_it_wrote(self) -> None:
        world = World()
        store = RememberingStore(world.inner, timedelta(seconds=60), world.clock.monotonic)
        keeper = world.another(store)
        keep_letters(world.inner, {0: "home a 0"})
        world.round(keeper)
        keep_letters(world.inner, {1: "look a"})
        world.round(keeper)  # remembers the home
        keep_letters(world.inner, {2: "home a 1"})
        world.round(keeper)
        keep_letters(world.inner, {3: "look a"})
        world.round(keeper)
        assert [kept.row.sensor_id for kept in world.inner.rows(SensorReading)] == ["sensorFalse", "sensorTrue"]  # type: ignore[attr-defined]

    def test_an_older_home_does_not_take_the_place_of_a_newer_one(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "home a 0"})
        state = world.inner.read_partition(partition())
        world.inner.commit_batch(commit(state, 1, 1, settled({1: [home("a", armed=True)]})))
        assert counts(world.round()[0]) == {"resolved": 1}
        assert [kept.row for kept in world.inner.rows(Home)] == [home("a", armed=True)]

    def test_memory_that_runs_out_is_no_letters_fault(self) -> None:
        def rows_of(event: Event, references: References) -> Iterable[Row]:
            raise MemoryError

        world = World(transform=Transform("huge/1", rows_of))
        keep_letters(world.inner, {0: "reading a"})
        with pytest.raises(MemoryError):
            world.round()
        assert world.statuses() == ["retrying"]


class TestRefusedRows:
    @pytest.mark.parametrize("bad", [{0}, {9}, {4}, {2, 3}, {0, 9}, set(range(10)), set()])
    def test_are_halved_until_the_bad_letters_stand_alone(self, bad: set[int]) -> None:
        world = World()
        bodies = {number: f"huge {number}" if number in bad else f"reading {number}" for number in range(10)}
        keep_letters(world.inner, bodies)
        (report,) = world.round()
        assert (report.resolved, report.waiting) == (10 - len(bad), len(bad))
        assert world.readings() == [number for number in range(10) if number not in bad]
        for number in bad:
            kept = world.letter(number)
            assert (kept.error_class, kept.attempts) == ("refused", 2)
            assert "64 bits" in kept.error

    def test_cost_two_calls_more_for_each_halving(self) -> None:
        world = World()
        keep_letters(world.inner, {number: "huge a" if number == 9 else f"reading {number}" for number in range(10)})
        world.round()
        assert world.faulty.calls.count("commit_retry") <= 10

    def test_that_are_refused_without_rows_too_are_released(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "reading a"})
        (chunk,) = claim_due(world.keeper)

        class Refusing(MemoryStore):
            commit_retry = _refuse

        refusing = Refusing()
        refusing._tables = world.inner._tables
        report = retry_chunk(chunk, replace(world.keeper, store=refusing), "one")
        assert counts(report) == {"released": 1}
        assert refusing.letters()[0].status == "waiting"


def _refuse(self: MemoryStore, commit: object) -> int:
    raise DataRefused("no letter can be written")


class TestFaults:
    """A letter is settled exactly once, wherever the process dies and whatever answer is lost."""

    def settle_all(self, world: World) -> None:
        for _ in range(10):
            due = next_due_at(world.another())
            if due is None:
                return
            world.clock.advance(max(0.0, (due - world.clock.now()).total_seconds()))
            world.round(world.another())

    @pytest.mark.parametrize("fault", [Fault.KILLED, Fault.KILLED_AFTER])
    @pytest.mark.parametrize("call", range(len(CALLS)))
    def test_a_crash_at_any_call_loses_nothing_and_repeats_nothing(self, call: int, fault: Fault) -> None:
        world = World(*[None] * call, fault)
        keep_letters(world.inner, {0: "double a", 1: "home b 1"})
        with pytest.raises(Killed):
            world.round()
        committed = call == 2 and fault is Fault.KILLED_AFTER
        assert (world.statuses() == ["resolved"] * 2) is committed
        self.settle_all(world)
        assert world.statuses() == ["resolved"] * 2
        assert (world.readings(), len(world.inner.rows(HomeAlert)), len(world.inner.attempts())) == ([0], 1, 2)

    @pytest.mark.parametrize("fault", [Fault.NOT_REACHED, Fault.LOST, Fault.UNANSWERED])
    @pytest.mark.parametrize("call", range(len(CALLS)))
    def test_a_lost_call_loses_nothing_and_repeats_nothing(self, call: int, fault: Fault) -> None:
        world = World(*[None] * call, fault)
        keep_letters(world.inner, {0: "double a", 1: "home b 1"})
        try:
            world.round()
        except InfrastructureFault:
            assert (call, fault) != (2, Fault.UNANSWERED)
        self.settle_all(world)
        assert world.statuses() == ["resolved"] * 2
        assert (world.readings(), len(world.inner.rows(HomeAlert)), len(world.inner.attempts())) == ([0], 1, 2)

    def test_a_commit_that_stands_though_its_answer_was_lost_is_counted(self) -> None:
        world = World(None, None, Fault.UNANSWERED)
        keep_letters(world.inner, {0: "reading a", 1: "bug"})
        (report,) = world.round()
        assert counts(report) == {"resolved": 1, "waiting": 1}
        assert (report.commits, report.rows_written) == (1, 1)
        assert world.faulty.calls[-2:] == ["commit_retry", "find_letters"]

    def test_a_commit_that_does_not_stand_is_made_again(self) -> None:
        world = World(None, None, Fault.LOST)
        keep_letters(world.inner, {0: "reading a", 1: "bug"})
        (report,) = world.round()
        assert counts(report) == {"resolved": 1, "waiting": 1}
        assert world.faulty.calls[-3:] == ["commit_retry", "find_letters", "commit_retry"]
        assert len(world.inner.retries()) == 1

    def test_answers_that_are_lost_again_and_again_are_the_callers(self) -> None:
        world = World(None, None, *[Fault.LOST, None] * 20)
        keep_letters(world.inner, {0: "reading a"})
        with pytest.raises(InfrastructureFault):
            world.round()
        assert world.statuses() == ["waiting"]  # released
        assert world.letter().attempts == 1

    def test_what_an_outage_left_undone_is_released_when_the_store_is_back(self) -> None:
        world = World(None, None, Fault.NOT_REACHED)
        keep_letters(world.inner, {0: "reading a"})
        with pytest.raises(StoreUnavailable):
            world.round()
        kept = world.letter()
        assert (kept.status, kept.attempts, kept.due_at) == ("waiting", 1, NOON + timedelta(seconds=30))

    def test_what_an_outage_left_claimed_falls_free_when_the_lease_ends(self) -> None:
        world = World(None, *[Fault.NOT_REACHED] * 9)
        keep_letters(world.inner, {0: "reading a"})
        with pytest.raises(StoreUnavailable):
            world.round()
        assert world.statuses() == ["retrying"]
        self.settle_all(world)
        assert world.statuses() == ["resolved"]


class TestOthers:
    def test_a_letter_that_is_discarded_in_the_middle_is_left_out_and_the_others_commit(self) -> None:
        world = World(None, None, Fault.RIVAL)
        world.between = lambda: discard(at(1), world.another(seed=1), ASKED)
        keep_letters(world.inner, dict.fromkeys(range(3), "double a"))
        (report,) = world.round()
        assert counts(report) == {"resolved": 2, "lost": 1}
        assert world.statuses() == ["resolved", "discarded", "resolved"]
        assert world.readings() == [0, 2]
        assert len(world.inner.retries()) == 1

    def test_a_letter_that_was_settled_first_is_not_discarded(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "reading a"})
        world.round()
        report = discard(at(0), world.keeper, ASKED)
        assert [(one.position, one.status) for one in report.unmoved] == [(at(0)[0], "resolved")]
        assert world.statuses() == ["resolved"]

    def test_a_lease_that_ends_in_the_middle_gives_the_letters_to_the_other(self) -> None:
        world = World(None, None, Fault.RIVAL)
        other = world.another(seed=1)

        reports: list[RetryReport] = []

        def after_the_lease() -> None:
            world.clock.advance(LEASE.total_seconds())
            reports.extend(world.round(other))

        world.between = after_the_lease
        keep_letters(world.inner, {0: "double a", 1: "double b"})
        (report,) = world.round()
        assert counts(report) == {"lost": 2}
        assert [counts(one) for one in reports] == [{"resolved": 2}]
        assert (world.readings(), len(world.inner.attempts())) == ([0, 1], 2)

    def test_a_batch_on_the_same_partition_does_no_harm(self) -> None:
        world = World(None, None, Fault.RIVAL)
        world.between = lambda: world.inner.commit_batch(commit(world.inner.read_partition(partition()), 2, 3))
        keep_letters(world.inner, {0: "reading a", 1: "reading b"})
        assert counts(world.round()[0]) == {"resolved": 2}
        assert [kept.commit_number for kept in world.inner.retries()] == [3]
        assert world.inner.read_ledgers()[0].balanced

    @pytest.mark.parametrize("jump", [3600.0, -3600.0])
    def test_a_clock_that_jumps_an_hour_makes_letters_early_or_late_and_no_more(self, jump: float) -> None:
        world = World(None, None, Fault.RIVAL)
        world.between = lambda: world.clock.advance(jump)
        keep_letters(world.inner, {0: "reading a", 1: "bug"})
        assert counts(world.round()[0]) == {"resolved": 1, "waiting": 1}
        due = next_due_at(world.keeper)
        assert due is not None
        assert abs(due - NOON) <= timedelta(hours=1, minutes=1)
        assert (world.readings(), len(world.inner.attempts())) == ([0], 2)

    def test_a_keeper_whose_clock_is_an_hour_ahead_takes_letters_early_and_only_once(self) -> None:
        world = World()
        ahead = replace(
            world.another(seed=1), clock=replace(world.another(seed=1).clock, now=lambda: NOON + 12 * LEASE)
        )
        keep_letters(world.inner, {0: "reading a"})
        (chunk,) = claim_due(world.keeper)
        assert [counts(one) for one in world.round(ahead)] == [{"resolved": 1}]
        assert counts(retry_chunk(chunk, world.keeper, "late")) == {"lost": 1}
        assert world.readings() == [0]


class TestProcessKillers:
    """Letters whose claims are lost are tried alone, and after three lone tries for a person."""

    def world(self, kills: int = 99) -> World:
        self.deaths = 0

        def rows_of(event: Event, references: References) -> Iterable[Row]:
            if event.body == b"kill" and self.deaths < kills:
                self.deaths += 1
                raise Killed
            return PLAIN.rows_of(replace(event, body=b"reading a"), references)

        world = World(transform=Transform("killing/1", rows_of))
        keep_letters(world.inner, {0: "reading a", 1: "kill", 2: "reading a"})
        return world

    def keep(self, world: World) -> None:
        """What processes do that come one after the other until nothing waits."""
        for turn in range(30):
            due = next_due_at(world.keeper)
            if due is None:
                return
            world.clock.advance(max(0.0, (due - world.clock.now()).total_seconds()))
            own = world.another(world.faulty, world.keeper.transform, seed=turn)
            try:
                world.round(own)
            except Killed:
                continue
        raise AssertionError("it never ends")

    def test_are_set_aside_for_a_person_after_three_tries_alone(self) -> None:
        world = self.world()
        self.keep(world)
        killer = world.letter(1)
        assert (killer.status, killer.error_class, killer.attempts) == ("exhausted", "crash", 1)
        assert "died" in killer.error
        assert self.deaths == 3

    def test_take_no_other_letter_with_them(self) -> None:
        world = self.world()
        self.keep(world)
        assert [world.statuses()[number] for number in (0, 2)] == ["resolved", "resolved"]
        assert world.readings() == [0, 2]

    def test_that_stop_killing_are_settled_and_forgiven(self) -> None:
        world = self.world(kills=2)
        self.keep(world)
        assert world.statuses() == ["resolved"] * 3
        assert world.letter(1).lost_claims == 0

    def test_are_tried_again_when_a_person_asks(self) -> None:
        world = self.world(kills=3)
        self.keep(world)
        assert world.letter(1).status == "exhausted"
        assert requeue(at(1), world.keeper, ASKED).moved == tuple(at(1))
        self.keep(world)
        assert world.letter(1).status == "resolved"

    def test_are_marked_before_they_run_and_each_when_its_turn_comes(self) -> None:
        world = self.world()
        with pytest.raises(Killed):
            world.round()
        world.clock.advance(LEASE.total_seconds())
        world.faulty.calls.clear()
        with pytest.raises(Killed):
            world.round()
        calls = [call for call in world.faulty.calls if call in ("begin_lone_try", "commit_retry")]
        assert calls == ["begin_lone_try", "commit_retry", "begin_lone_try"]
        assert [kept.lost_claims for kept in world.letters()] == [0, 1, 1]
        assert [kept.began_at is not None for kept in world.letters()] == [False, True, False]


class TestBodiesThatWereNotKept:
    def world(self, *faults: Fault | None) -> World:
        world = World(*faults)
        bodies = {0: "reading a", 1: "bug", 2: "reading c"}
        keep_letters(world.inner, bodies, keeps_body=False)
        world.hub.events = {number: event(number, body) for number, body in bodies.items()}
        return world

    def test_are_asked_of_the_hub(self) -> None:
        world = self.world()
        assert counts(world.round()[0]) == {"resolved": 2, "waiting": 1}
        assert (world.hub.asked, world.readings()) == ([0, 1, 2], [0, 2])

    def test_are_not_asked_for_where_they_were_kept(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "reading a"})
        world.round()
        assert world.hub.asked == []

    def test_that_left_the_hub_end_their_letter_with_a_reason(self) -> None:
        world = self.world()
        del world.hub.events[1]
        assert counts(world.round()[0]) == {"resolved": 2, "exhausted": 1}
        kept = world.letter(1)
        assert (kept.status, kept.attempts, kept.error_class) == ("exhausted", 1, "unknown")
        assert kept.settled_why == "the event left the hub and its body was not kept"

    def test_of_another_hub_are_not_theirs(self) -> None:
        world = self.world()
        world.hub.events[1] = event(1, "reading b", at=NOON)
        world.hub.events[2] = event(3, "reading d")
        assert counts(world.round()[0]) == {"resolved": 1, "exhausted": 2}

    def test_wait_uncounted_while_the_hub_is_down(self) -> None:
        world = self.world()
        world.hub.down = True
        assert counts(world.round()[0]) == {"released": 3}
        assert world.hub.asked == [0]
        for kept in world.letters():
            assert (kept.status, kept.attempts, kept.due_at) == ("waiting", 1, NOON + timedelta(seconds=30))
        assert world.inner.attempts() == []

    def test_of_a_released_letter_do_not_hold_up_those_that_were_kept(self) -> None:
        world = self.world()
        keep_letters(world.inner, {3: "reading d"})
        world.hub.down = True
        assert counts(world.round()[0]) == {"resolved": 1, "released": 3}


class TestAsking:
    def test_tells_what_moved_and_what_did_not_with_the_status_found(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "bug", 1: "bug"})
        keep_letters(world.inner, {5: "reading a"}, "1")
        world.round()
        report = discard([*at(1, 0, 0, 99), *at(5, place="1")], world.keeper, ASKED)
        assert set(report.moved) == set(at(0, 1))
        assert {(one.position, one.status) for one in report.unmoved} == {
            (at(99)[0], None),
            (at(5, place="1")[0], "resolved"),
        }

    def test_by_hand_retries_exhausted_letters_at_once_with_all_attempts(self) -> None:
        world = World(attempts=2)
        keep_letters(world.inner, {0: "bug"})
        world.round()
        assert world.statuses() == ["exhausted"]
        assert requeue(at(0), world.keeper, ASKED).moved == tuple(at(0))
        assert (next_due_at(world.keeper), world.letter().attempts) == (NOON, 0)
        world.round()
        assert (world.letter().status, world.letter().attempts) == ("waiting", 1)

    def test_in_vain_changes_nothing(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "reading a"})
        world.round()
        before = world.letters(), world.inner.attempts()
        for ask in (discard, requeue, exhaust):
            assert ask(at(0, 7), world.keeper, ASKED).moved == ()
        assert before == (world.letters(), world.inner.attempts())

    def test_to_stop_keeps_the_letter_for_later(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "bug"})
        assert exhaust(at(0), world.keeper, ASKED).moved == tuple(at(0))
        assert (world.statuses(), next_due_at(world.keeper)) == (["exhausted"], None)

    def test_of_thousands_is_one_transaction_for_each_thousand(self) -> None:
        world = World()
        keep_letters(world.inner, dict.fromkeys(range(2_500), "bug"))
        world.faulty.calls.clear()
        assert len(discard(at(*range(2_500)), world.keeper, ASKED).moved) == 2_500
        assert world.faulty.calls == ["move_letters"] * 3

    def test_words_that_are_too_long_are_cut(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "bug"})
        discard(at(0), world.keeper, Order("b" * 1000, "w" * 1000))
        (made,) = world.inner.attempts()
        assert (len(made.done_by), len(made.why or "")) == (100, 400)

    @pytest.mark.parametrize("fault", [Fault.LOST, Fault.UNANSWERED])
    def test_whose_answer_is_lost_is_sent_again_and_done_once(self, fault: Fault) -> None:
        world = World(fault)
        keep_letters(world.inner, {0: "bug"})
        assert discard(at(0), world.keeper, ASKED).moved == tuple(at(0))
        assert len(world.inner.attempts()) == 1

    def test_nothing_is_no_call(self) -> None:
        world = World()
        assert discard([], world.keeper, ASKED).moved == ()
        assert world.faulty.calls == []


class TestReleasing:
    def test_gives_back_what_the_claim_still_holds_after_a_pause(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "reading a", 1: "reading b"})
        (chunk,) = claim_due(world.keeper)
        discard(at(1), world.another(seed=1), ASKED)
        report = release(chunk, world.keeper)
        assert (report.moved, [one.status for one in report.unmoved]) == (tuple(at(0)), ["discarded"])
        assert world.letter().due_at == NOON + timedelta(seconds=30)

    def test_of_a_chunk_that_another_holds_by_now_changes_nothing(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "reading a"})
        (chunk,) = claim_due(world.keeper)
        world.clock.advance(LEASE.total_seconds())
        claim_due(world.another(seed=1))
        before = world.letters()
        assert release(chunk, world.keeper).moved == ()
        assert world.letters() == before


def test_letters_that_are_all_held_and_cannot_be_settled_are_the_callers() -> None:
    class Stubborn(MemoryStore):
        def commit_retry(self, commit: object) -> int:
            raise LetterConflict(partition(), "claim")

    store = Stubborn()
    keep_letters(store, {0: "reading a"})
    keeper = replace(World().keeper, store=store)
    (chunk,) = claim_due(keeper)
    with pytest.raises(LetterConflict):
        retry_chunk(chunk, keeper, "one")
    assert [kept.status for kept in store.letters()] == ["waiting"]
