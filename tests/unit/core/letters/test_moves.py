"""core/letters/moves.py: letters are moved as a person orders, or given back, and each only once."""

from datetime import timedelta

import pytest

from core.ledger.store.incarnations import Incarnations
from core.letters.listing import LetterFilter
from core.letters.moves import CountDiffers, LetterOrder, carry_out, discard, release, requeue
from core.letters.retry import claim_due, next_due_at
from core.letters.store.listing import LetterListing
from core.store.stream import OneStream
from tests.contract.test_incarnations import opening
from tests.fakes.builders import NOON, STREAM, keep_letters
from tests.fakes.faulty_database import Fault
from tests.unit.core.letters.world import LEASE, PERSON, World, at


class TestOrders:
    def test_tells_what_moved_and_what_did_not_with_the_status_found(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "bug", 1: "bug"})
        keep_letters(world.inner, {5: "reading a"}, "1")
        world.round()
        report = discard([*at(1, 0, 0, 99), *at(5, place="1")], world.keeper, PERSON)
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
        assert requeue(at(0), world.keeper, PERSON).moved == tuple(at(0))
        assert (next_due_at(world.keeper), world.letter().attempts) == (NOON, 0)
        world.round()
        assert (world.letter().status, world.letter().attempts) == ("waiting", 1)

    def test_that_mean_a_different_number_of_letters_than_the_person_saw_move_nothing(self) -> None:
        world = World()
        keep_letters(world.inner, dict.fromkeys(range(3), "bug"))
        listing = LetterListing(OneStream(world.inner.database, STREAM))
        for chosen in (LetterFilter(), tuple(at(0, 1, 2, 99))):
            for seen in (2, 4):
                order = LetterOrder("discard", chosen, seen, PERSON)
                assert carry_out(order, listing, world.keeper) == CountDiffers(3)
        assert world.statuses() == ["waiting"] * 3

    def test_that_were_counted_before_the_next_incarnation_move_no_letter_of_the_next(self) -> None:
        world = World()
        keep_letters(world.inner, dict.fromkeys(range(3), "bug"))
        listing = LetterListing(OneStream(world.inner.database, STREAM))
        assert listing.count_matching(LetterFilter(), ("waiting",)) == 3  # remembers the stream for some seconds
        Incarnations(world.inner.database).open_incarnation(opening(world.inner))
        keep_letters(world.inner, dict.fromkeys(range(3), "bug"))
        order = LetterOrder("discard", tuple(at(0, 1)), 2, PERSON)
        assert carry_out(order, listing, world.keeper) == CountDiffers(0)
        assert world.statuses() == ["waiting"] * 6

    def test_in_vain_changes_nothing(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "reading a"})
        world.round()
        before = world.letters(), world.inner.attempts()
        for ask in (discard, requeue):
            assert ask(at(0, 7), world.keeper, PERSON).moved == ()
        assert before == (world.letters(), world.inner.attempts())

    def test_of_thousands_is_one_transaction_for_each_thousand(self) -> None:
        world = World()
        keep_letters(world.inner, dict.fromkeys(range(2_500), "bug"))
        world.faulty.calls.clear()
        assert len(discard(at(*range(2_500)), world.keeper, PERSON).moved) == 2_500
        assert world.faulty.calls == ["move_letters"] * 3

    @pytest.mark.parametrize("fault", [Fault.LOST, Fault.UNANSWERED])
    def test_whose_answer_is_lost_is_sent_again_and_done_once(self, fault: Fault) -> None:
        world = World(fault)
        keep_letters(world.inner, {0: "bug"})
        assert discard(at(0), world.keeper, PERSON).moved == tuple(at(0))
        assert len(world.inner.attempts()) == 1

    def test_nothing_is_no_call(self) -> None:
        world = World()
        assert discard([], world.keeper, PERSON).moved == ()
        assert world.faulty.calls == []


class TestReleasing:
    def test_gives_back_what_the_claim_still_holds_after_a_pause(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "reading a", 1: "reading b"})
        (chunk,) = claim_due(world.keeper)
        discard(at(1), world.another(seed=1), PERSON)
        report = release(chunk, world.keeper)
        assert (report.moved, [one.status for one in report.unmoved]) == (tuple(at(0)), ["discarded"])
        assert world.letter().due_at == NOON + timedelta(seconds=30)

    def test_of_a_chunk_that_another_holds_changes_nothing(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "reading a"})
        (chunk,) = claim_due(world.keeper)
        world.clock.advance(LEASE.total_seconds())
        claim_due(world.another(seed=1))
        before = world.letters()
        assert release(chunk, world.keeper).moved == ()
        assert world.letters() == before
