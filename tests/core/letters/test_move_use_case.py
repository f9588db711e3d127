"""core/letters/retry.py: letters are given back, each only once; and what a person's order does to their retries."""

from datetime import timedelta

import pytest

from core.letters.retry import claim_due, next_due_at, release
from tests.core.letters.world import LEASE, World, at
from tests.fakes.builders import NOON, keep_letters
from tests.fakes.faulty_database import Fault
from tests.fakes.moving import discard, requeue


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

    def test_in_vain_changes_nothing(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "reading a"})
        world.round()
        before = world.letters(), world.inner.attempts()
        for ask in (discard, requeue):
            assert ask(at(0, 7), world.keeper) == ()
        assert before == (world.letters(), world.inner.attempts())


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
