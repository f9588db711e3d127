"""local/feed/pacing.py"""

import pytest

from local.feed.pacing import LONGEST_DEBT, Pace


class Time:
    """A clock that only sleeping and working move."""

    def __init__(self) -> None:
        self.now = 100.0
        self.sleeps = 0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.sleeps += 1
        self.now += seconds


def publish(pace: Pace, time: Time, times: int, work: float = 0.0, events: int = 4) -> None:
    for _ in range(times):
        pace.wait(events)
        time.now += work


def test_the_rate_is_kept() -> None:
    time = Time()
    publish(Pace(1_000, time.clock, time.sleep), time, 2_500)
    assert time.now - 100 == pytest.approx(10.0, rel=0.01)


def test_the_rate_is_kept_while_publishing_takes_time() -> None:
    time = Time()
    publish(Pace(1_000, time.clock, time.sleep), time, 2_500, work=0.003)
    assert time.now - 100 == pytest.approx(10.0, rel=0.01)


def test_it_sleeps_seldom_at_a_high_rate() -> None:
    time = Time()
    publish(Pace(8_000, time.clock, time.sleep), time, 2_000)
    assert time.sleeps <= 200


def test_full_speed_never_sleeps() -> None:
    time = Time()
    publish(Pace(None, time.clock, time.sleep), time, 1_000)
    assert time.sleeps == 0


def test_a_short_stop_is_made_up_for() -> None:
    time = Time()
    pace = Pace(1_000, time.clock, time.sleep)
    publish(pace, time, 250)
    time.now += 1.0
    publish(pace, time, 750)
    assert time.now - 100 == pytest.approx(4.0, rel=0.01)


def test_a_long_stop_is_not_followed_by_a_flood() -> None:
    time = Time()
    pace = Pace(1_000, time.clock, time.sleep)
    publish(pace, time, 1)
    time.now += 60.0
    publish(pace, time, 1_000)
    assert time.now - 160 == pytest.approx(4.0 - LONGEST_DEBT, abs=0.05)
