import threading
from collections.abc import Callable

import pytest

from local.event_hubs import partition_index
from local.feed.feeding import DEPTH, LARGEST, Feed, Gateways, Lanes, Pace, Send, feed
from local.feed.planned_events import Minute
from local.feed.record import ONCE, Copies
from tests.local.feed.builders import minute, send, story
from tests.patience import allowed


class Time:
    """A clock that moves only by sleep and work."""

    def __init__(self) -> None:
        self.now = 100.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Feeding:
    def __init__(self, *answers: Copies) -> None:
        self._answers = list(answers)
        self.took: list[Minute] = []
        self.recorded: list[Minute] = []
        self.completed = False

    def publish(self, send: Send) -> Copies:
        self.took += send.minutes
        return self._answers.pop(0) if self._answers else ONCE

    def add(self, minute: Minute, copies: Copies) -> None:
        self.recorded.append(minute)

    def complete(self) -> None:
        self.completed = True

    def run(self, minutes: list[Minute], stopping: Callable[[], bool] = lambda: False) -> int:
        pace = Pace(None, lambda: 0.0, lambda seconds: None)
        return feed(minutes, Feed(Gateways(["0"], 0.0), [self.publish], self, pace, lambda _: None, stopping))


def test_a_feed_that_is_stopped_has_recorded_exactly_what_it_published() -> None:
    feeding = Feeding()
    published = feeding.run(story(), lambda: len(feeding.took) >= 20)
    assert published == sum(len(minute.events) for minute in feeding.took)
    assert len(feeding.took) == 20, "what waits in the lanes is dropped"
    assert feeding.took == feeding.recorded
    assert feeding.completed


def test_after_a_minute_that_was_given_up_nothing_follows_and_one_that_may_be_in_the_hub_is_recorded() -> None:
    minutes = [minute() for _ in range(5)]
    given_up, doubtful = Feeding(ONCE, Copies(0, 0)), Feeding(Copies(0, 1))
    assert (given_up.run(minutes), doubtful.run(minutes[:1])) == (1, 0)
    assert (given_up.took, given_up.recorded) == (minutes[:2], minutes[:1])
    assert doubtful.recorded == minutes[:1]


def test_a_publisher_that_fails_leaves_the_record_incomplete() -> None:
    class Broken(Feeding):
        def publish(self, send: Send) -> Copies:
            raise OSError("no hub")

    broken = Broken()
    with pytest.raises(OSError, match="no hub"):
        broken.run([minute()])
    assert not broken.completed


def test_the_sends_of_a_story_keep_the_order_of_each_home_at_the_partition_of_its_key() -> None:
    time, minutes, ids = Time(), story(homes=400, events=6_000), [str(number) for number in range(12)]
    gateways, sends = Gateways(ids, 60.0, time.clock), list[Send]()
    for each in minutes:
        time.now += 0.01
        sends += gateways.add(each)
    sends += gateways.rest()
    homes: dict[str | None, list[Minute]] = {}
    for sent in sends:
        assert sent.events <= LARGEST
        assert len({each.partition_key for each in sent.minutes}) == len(sent.minutes), "one minute of a home"
        for each in sent.minutes:
            place = partition_index(each.partition_key or "", len(ids))
            assert (sent.partition_id, sent.lane) == (str(place), place)
            homes.setdefault(each.partition_key, []).append(each)
    for home, own in homes.items():
        assert own == [each for each in minutes if each.partition_key == home]
    assert sum(map(len, homes.values())) == len(minutes)


def test_a_send_that_waits_does_not_hold_up_those_of_other_lanes() -> None:
    gate, other = threading.Event(), threading.Event()

    def publish(each: Send) -> None:
        if each.lane == 0:
            assert gate.wait(allowed(10))
        else:
            other.set()

    lanes = Lanes([publish] * 2)
    for lane in (0, 0, 1):
        lanes.put(send(minute(), lane=lane))
    assert other.wait(allowed(10))
    gate.set()
    lanes.finish()


def test_an_error_of_a_lane_ends_all_and_reaches_the_caller() -> None:
    def fail(each: Send) -> None:
        raise OSError("no hub")

    lanes = Lanes([fail, fail])
    with pytest.raises(OSError, match="no hub"):
        for number in range(10 * DEPTH):
            lanes.put(send(minute(), lane=number))
        lanes.finish()


def publish(pace: Pace, time: Time, times: int, work: float = 0.0) -> None:
    for _ in range(times):
        pace.wait(4)
        time.now += work
