"""core/ledger/totals.py: the rate between two looks of the watch."""

from datetime import timedelta

from core.ledger.totals import Minute, rates
from tests.fakes.builders import EPOCH


def at(seconds: float, accounted: int) -> Minute:
    return Minute(EPOCH + timedelta(seconds=seconds), 0, accounted)


def test_the_rate_is_the_numbers_accounted_for_in_the_seconds_between_two_looks() -> None:
    assert rates([at(0, 100), at(60, 160), at(120.5, 160), at(720.5, 6_160)]) == [None, 1.0, 0.0, 10.0]


def test_the_first_minute_has_no_rate() -> None:
    assert rates([]) == []
    assert rates([at(0, 5)]) == [None]


def test_a_count_that_falls_and_two_looks_at_one_moment_are_no_rate_below_zero_and_none_without_end() -> None:
    assert rates([at(0, 100), at(60, 90), at(60, 95)]) == [None, 0.0, 5.0]
