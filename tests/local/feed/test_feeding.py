"""local/feed/feeding.py"""

import io
import json
from collections.abc import Callable

import pytest

from local.feed.feeding import LONGEST_DEBT, Feed, Gateways, Pace, Progress, Send, feed
from local.feed.planned_events import Minute
from local.feed.record import ONCE, Copies
from tests.local.feed.builders import minute, story

SEND = 4  # events


class Hub:
    """Answer each send with the given copies, then with one."""

    def __init__(self, *answers: Copies) -> None:
        self._answers = list(answers)
        self.took: list[Minute] = []

    def publish(self, send: Send) -> Copies:
        self.took += send.minutes
        return self._answers.pop(0) if self._answers else ONCE


class Kept:
    """A record in memory."""

    def __init__(self) -> None:
        self.minutes: list[Minute] = []
        self.completed = False

    def add(self, minute: Minute, copies: Copies) -> None:
        self.minutes.append(minute)

    def complete(self) -> None:
        self.completed = True


def at_once() -> Pace:
    return Pace(None, lambda: 0.0, lambda seconds: None)


def feed_with(hub: Hub, kept: Kept, stopping: Callable[[], bool] = lambda: False) -> Feed:
    return Feed(Gateways(["0"], 0.0), [hub.publish], kept, at_once(), lambda published: None, stopping)


def test_everything_is_published_and_recorded() -> None:
    minutes, hub, kept = story(events=300), Hub(), Kept()
    assert feed(minutes, feed_with(hub, kept)) == 300
    assert hub.took == kept.minutes == minutes
    assert kept.completed


def test_a_feed_that_is_stopped_has_recorded_exactly_what_it_published() -> None:
    hub, kept = Hub(), Kept()
    published = feed(story(), feed_with(hub, kept, lambda: len(hub.took) >= 20))
    assert published == sum(len(minute.events) for minute in hub.took)
    assert len(hub.took) == 20, "what waits in the lanes is dropped"
    assert hub.took == kept.minutes
    assert kept.completed


def test_after_a_minute_that_was_given_up_nothing_that_builds_on_it_is_published() -> None:
    minutes, hub, kept = [minute() for _ in range(5)], Hub(ONCE, Copies(0, 0)), Kept()
    assert feed(minutes, feed_with(hub, kept)) == 1
    assert hub.took == minutes[:2]
    assert kept.minutes == minutes[:1]


def test_a_minute_that_may_be_in_the_hub_is_recorded_and_not_counted() -> None:
    minutes, hub, kept = [minute()], Hub(Copies(0, 1)), Kept()
    assert feed(minutes, feed_with(hub, kept)) == 0
    assert kept.minutes == minutes


def test_a_publisher_that_fails_leaves_the_record_incomplete() -> None:
    class Broken(Hub):
        def publish(self, send: Send) -> Copies:
            raise OSError("no hub")

    kept = Kept()
    with pytest.raises(OSError, match="no hub"):
        feed([minute()], feed_with(Broken(), kept))
    assert not kept.completed


def test_the_progress_hears_the_number_of_published_events() -> None:
    heard = list[int]()
    feed(story(events=300), Feed(Gateways(["0"], 0.0), [Hub().publish], Kept(), at_once(), heard.append, lambda: False))
    assert heard == sorted(heard)
    assert heard[-1] <= 300


def test_what_waits_in_the_gateways_at_the_end_is_published() -> None:
    minutes, hub, kept = story(events=300), Hub(), Kept()
    own = Feed(
        Gateways(["0", "1"], 60.0, lambda: 0.0), [hub.publish], kept, at_once(), lambda published: None, lambda: False
    )
    assert feed(minutes, own) == 300
    assert sorted(hub.took, key=minutes.index) == minutes
    assert kept.completed


class Time:
    """A clock that moves only by sleep and work."""

    def __init__(self) -> None:
        self.now = 100.0
        self.sleeps = 0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.sleeps += 1
        self.now += seconds


def publish(pace: Pace, time: Time, times: int, work: float = 0.0) -> None:
    for _ in range(times):
        pace.wait(SEND)
        time.now += work


def test_the_rate_is_steady_while_publishing_takes_time_too() -> None:
    for work in (0.0, 0.003):
        time = Time()
        publish(Pace(1_000, time.clock, time.sleep), time, 2_500, work)
        assert time.now - 100 == pytest.approx(10.0, rel=0.01)


def test_it_sleeps_seldom_at_a_high_rate_and_never_at_full_speed() -> None:
    for rate, limit in ((8_000, 200), (None, 0)):
        time = Time()
        publish(Pace(rate, time.clock, time.sleep), time, 2_000)
        assert time.sleeps <= limit


def test_the_feed_catches_up_after_a_short_stop() -> None:
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


def lines(out: io.StringIO) -> list[dict]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_line_comes_every_other_second_with_the_rate_since_the_one_before() -> None:
    time, out = Time(), io.StringIO()
    progress = Progress(out, time.clock)
    for published in range(0, 4_001, 100):
        time.now = 100 + published / 1_000
        progress(published)
    assert lines(out) == [{"published": n, "events_per_second": 1_000} for n in (2_000, 4_000)]


def test_the_last_line_is_about_the_whole_time() -> None:
    time, out = Time(), io.StringIO()
    progress = Progress(out, time.clock)
    time.now = 105.0
    progress.end(1_000, doubtful_sends=0)
    assert lines(out) == [{"published": 1_000, "events_per_second": 200, "seconds": 5.0, "doubtful_sends": 0}]
