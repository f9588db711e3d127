"""local/feed/feeding.py"""

from collections.abc import Callable

import pytest

from local.feed.feeding import Feed, feed
from local.feed.gateways import Gateways, NoGateways, Send
from local.feed.pacing import Pace
from local.feed.planned import Minute
from local.feed.record import ONCE, Copies
from tests.unit.local.feed.builders import minute, story


class Hub:
    """Answers each send with the copies it was told, then with one."""

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
    return Feed(NoGateways(), [hub], kept, at_once(), lambda published: None, stopping)


def test_everything_is_published_and_recorded() -> None:
    minutes, hub, kept = story(events=300), Hub(), Kept()
    assert feed(minutes, feed_with(hub, kept)) == 300
    assert hub.took == kept.minutes == minutes
    assert kept.completed


def test_a_feed_that_is_stopped_has_recorded_exactly_what_it_published() -> None:
    hub, kept, answers = Hub(), Kept(), iter([False] * 20)
    assert feed(story(), feed_with(hub, kept, lambda: next(answers, True))) == sum(
        len(minute.events) for minute in hub.took
    )
    assert len(hub.took) == 20
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


def test_progress_hears_of_what_is_published() -> None:
    told = list[int]()
    feed(story(events=300), Feed(NoGateways(), [Hub()], Kept(), at_once(), told.append, lambda: False))
    assert told == sorted(told)
    assert told[-1] <= 300


def test_what_waits_in_the_gateways_at_the_end_is_published() -> None:
    minutes, hub, kept = story(events=300), Hub(), Kept()
    own = Feed(Gateways(["0", "1"], 60.0, lambda: 0.0), [hub], kept, at_once(), lambda published: None, lambda: False)
    assert feed(minutes, own) == 300
    assert sorted(hub.took, key=minutes.index) == minutes
    assert kept.completed
