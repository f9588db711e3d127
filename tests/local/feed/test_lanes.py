"""local/feed/feeding.py"""

import threading

import pytest

from local.feed.feeding import DEPTH, Gateways, Lanes, Send
from tests.local.feed.builders import minute, send, story
from tests.patience import allowed


class Taking:
    """Collect the sends of all lanes, in the order of publishing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.taken: list[Send] = []

    def __call__(self, send: Send) -> None:
        with self._lock:
            self.taken.append(send)


def test_the_lanes_publish_all_and_each_keeps_its_order() -> None:
    gateways, taking = Gateways(["0", "1", "2"], 0.0), Taking()
    sends = [send for minute in story() for send in gateways.add(minute)]
    lanes = Lanes([taking] * 4)
    for each in sends:
        lanes.put(each)
    lanes.finish()
    for lane in {each.lane for each in sends}:
        assert [each for each in taking.taken if each.lane == lane] == [each for each in sends if each.lane == lane]
    assert len(taking.taken) == len(sends)


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
