"""core/letters/redrive.py: a slice of work goes on after a rival and after a lost answer, and stops for a fault."""

from datetime import timedelta

import pytest

from core.errors import StoreUnavailable
from core.letters.redrive import Redrive, piece_limit
from tests.fakes.builders import FakeClock, keep_letters
from tests.fakes.faulty_database import Fault, FaultyStore
from tests.fakes.memory_store import MemoryStore
from tests.fakes.redriving import Redriving

NUMBERS = range(6)


@pytest.fixture
def desk() -> Redriving:
    """Six exhausted letters."""
    store = MemoryStore()
    keep_letters(store, dict.fromkeys(NUMBERS, "a"), status="exhausted", due_at=None)
    made = Redriving(store)
    made.clock.advance(60)
    return made


def driver(desk: Redriving, job: Redrive, *faults: Fault | None) -> Redriving:
    """A driver whose pieces have these faults; the rival does one piece before it."""
    rival = Redriving(desk.store, desk.clock, seed=9)
    faulty = FaultyStore(desk.store, on_letters=faults, meanwhile=lambda: rival.slice(job, seconds=0))
    return Redriving(faulty, desk.clock, seed=1)


@pytest.mark.parametrize("fault", [Fault.RIVAL, Fault.UNANSWERED, Fault.LOST])
def test_a_slice_goes_on_after_a_rival_and_after_a_lost_answer(desk: Redriving, fault: Fault) -> None:
    job = desk.ask(6, rate=4)
    assert driver(desk, job, fault, fault, None, fault).slice(job).is_over
    assert (desk.now(job).task.status, desk.now(job).moved) == ("done", 6)
    assert desk.moved(job) == [("0", number) for number in NUMBERS]


def test_a_fault_ends_the_slice_and_the_pieces_before_it_remain(desk: Redriving) -> None:
    job = desk.ask(6, rate=4)
    with pytest.raises(StoreUnavailable):
        driver(desk, job, None, Fault.NOT_REACHED).slice(job)
    assert desk.now(job).moved == 2
    assert desk.slice(job).is_over


@pytest.mark.parametrize(("rate", "limit"), [(None, 1_000), (1, 1), (2, 1), (500, 250), (100_000, 1_000)])
def test_a_piece_is_at_most_half_a_second_of_the_rate(rate: int | None, limit: int) -> None:
    assert piece_limit(rate) == limit


def test_the_cap_of_one_letter_a_second_holds_between_hosts_whose_clocks_differ(desk: Redriving) -> None:
    job, ahead = desk.ask(6, rate=1), FakeClock()
    ahead.advance(60.005)
    Redriving(desk.store, ahead, seed=1).slice(job, seconds=0)
    desk.slice(job, seconds=0)
    assert desk.rests == [timedelta(seconds=1.005)]
