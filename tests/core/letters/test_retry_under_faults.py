"""core/letters/retry.py: a letter is settled or given back once, whatever fails and whoever else works on it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from core.errors import InfrastructureFault, LetterConflict, StoreUnavailable
from core.letters.retry import claim_due, next_due_at, release, retry_chunk
from core.model.letters import RetryReport
from examples.home_security.transform import HomeAlert
from tests.core.letters.world import LEASE, World, at, counts
from tests.fakes.builders import NOON, commit, keep_letters, partition
from tests.fakes.faulty_database import Fault, Killed
from tests.fakes.memory_store import MemoryStore
from tests.fakes.moving import discard, requeue

CALLS = ["claim_letters", "begin_chunk", "commit_retry"]


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

    def test_a_commit_that_was_made_although_its_answer_was_lost_is_counted(self) -> None:
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


class TestRivals:
    def test_a_letter_that_is_discarded_in_the_middle_is_left_out_and_the_others_commit(self) -> None:
        world = World(None, None, Fault.RIVAL)
        world.between = lambda: discard(at(1), world.another(seed=1))
        keep_letters(world.inner, dict.fromkeys(range(3), "double a"))
        (report,) = world.round()
        assert counts(report) == {"resolved": 2, "lost": 1}
        assert world.statuses() == ["resolved", "discarded", "resolved"]
        assert world.readings() == [0, 2]
        assert len(world.inner.retries()) == 1

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
        assert due <= NOON + timedelta(hours=1, minutes=1)
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


class TestOrders:
    def test_by_hand_retries_exhausted_letters_at_once_with_all_attempts(self) -> None:
        world = World(attempts=2)
        keep_letters(world.inner, {0: "bug"})
        world.round()
        assert world.statuses() == ["exhausted"]
        assert requeue(at(0), world.keeper) == tuple(at(0))
        assert (next_due_at(world.keeper), world.letter().attempts) == (NOON, 0)
        world.round()
        assert (world.letter().status, world.letter().attempts) == ("waiting", 1)


class TestReleasing:
    def test_gives_back_what_the_claim_still_holds_after_a_pause(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "reading a", 1: "reading b"})
        (chunk,) = claim_due(world.keeper)
        discard(at(1), world.another(seed=1))
        assert (release(chunk, world.keeper), world.statuses()) == (1, ["waiting", "discarded"])
        assert world.letter().due_at == NOON + timedelta(seconds=30)

    @pytest.mark.parametrize("fault", [Fault.LOST, Fault.UNANSWERED])
    def test_whose_answer_is_lost_is_sent_again_and_counts_once(self, fault: Fault) -> None:
        world = World(None, fault)
        keep_letters(world.inner, {0: "reading a"})
        (chunk,) = claim_due(world.keeper)
        assert (release(chunk, world.keeper), world.statuses()) == (1, ["waiting"])

    def test_of_a_chunk_that_another_holds_changes_nothing(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "reading a"})
        (chunk,) = claim_due(world.keeper)
        world.clock.advance(LEASE.total_seconds())
        claim_due(world.another(seed=1))
        before = world.letters()
        assert release(chunk, world.keeper) == 0
        assert world.letters() == before
