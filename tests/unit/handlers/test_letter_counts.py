"""handlers/letter_counts.py: counts that are quick are always new, slow ones never keep a request waiting."""

from collections.abc import Callable

import pytest

from core.errors import StoreUnavailable
from core.ledger.books import LetterBooks
from handlers.letter_counts import FAST, KEEP, OLDEST, Clock, LetterCounts
from tests.fakes.builders import FakeClock


class Counting:
    """Counts how often it counted, and takes as long as it is told; what is put off runs when it is told to."""

    def __init__(self, takes: float) -> None:
        self.takes, self.counted, self.fault = takes, 0, False
        self.time = FakeClock()
        self.put_off: list[Callable[[], None]] = []
        self.counts = LetterCounts(self.count, Clock(self.time.monotonic, self.put_off.append))

    def count(self) -> LetterBooks:
        self.time.advance(self.takes)
        if self.fault:
            raise StoreUnavailable("the database does not answer")
        self.counted += 1
        return LetterBooks({"waiting": self.counted}, self.counted)

    def shown(self) -> int:
        return self.counts.get().letters.counts["waiting"]

    def run(self) -> None:
        while self.put_off:
            self.put_off.pop()()


def test_a_quick_count_is_taken_for_every_request() -> None:
    own = Counting(FAST / 2)
    assert [own.shown() for _ in range(4)] == [1, 2, 3, 4]


def test_a_slow_count_is_taken_once_and_then_in_the_background() -> None:
    own = Counting(FAST * 5)
    assert [own.shown() for _ in range(4)] == [1, 1, 1, 1]
    own.time.advance(KEEP)
    before = own.time.seconds
    assert [own.shown(), own.shown(), len(own.put_off), own.time.seconds] == [1, 1, 1, before]
    own.run()
    assert own.shown() == 2


def test_a_store_that_became_quick_is_counted_for_every_request_again() -> None:
    own = Counting(FAST * 5)
    own.shown()
    own.takes = 0
    own.time.advance(KEEP)
    own.shown()
    own.run()
    assert [own.shown(), own.shown()] == [3, 4]


def test_a_fault_in_the_background_is_told_once_the_count_is_too_old() -> None:
    own = Counting(FAST * 5)
    own.shown()
    own.fault = True
    own.time.advance(KEEP)
    assert own.shown() == 1
    own.run()
    own.time.advance(OLDEST)
    with pytest.raises(StoreUnavailable):
        own.shown()
    own.fault = False
    assert own.shown() == 2


def test_the_first_fault_is_the_request_s() -> None:
    own = Counting(FAST * 5)
    own.fault = True
    with pytest.raises(StoreUnavailable):
        own.shown()


def test_after_a_move_the_next_request_counts_anew() -> None:
    own = Counting(FAST * 5)
    own.shown()
    own.counts.forget()
    assert own.shown() == 2
