"""local/feed/feeding.py"""

from local.event_hubs import partition_index
from local.feed.feeding import LARGEST, Gateways, Send
from local.feed.planned_events import Minute
from tests.local.feed.builders import minute, story

IDS = [str(number) for number in range(12)]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def gathered(minutes: list[Minute]) -> list[Send]:
    """Return all sends of a story, at a pace of a hundred minutes a second."""
    clock = Clock()
    gateways, sends = Gateways(IDS, 60.0, clock), list[Send]()
    for each in minutes:
        clock.now += 0.01
        sends += gateways.add(each)
    return sends + gateways.rest()


def test_every_minute_is_in_one_send_and_those_of_a_home_keep_their_order() -> None:
    minutes = story()
    sent = [each for send in gathered(minutes) for each in send.minutes]
    assert len(sent) == len(minutes)
    for home in {each.partition_key for each in minutes}:
        assert [each for each in sent if each.partition_key == home] == [
            each for each in minutes if each.partition_key == home
        ]


def test_a_home_is_where_the_hub_would_place_its_key() -> None:
    for send in gathered(story()):
        for each in send.minutes:
            assert send.partition_id == str(partition_index(each.partition_key or "", len(IDS)))
            assert send.lane == partition_index(each.partition_key or "", len(IDS))


def test_a_send_has_one_minute_of_a_home_and_no_more_events_than_it_may() -> None:
    for send in gathered(story(homes=2_000, events=10_000)):
        assert len({each.partition_key for each in send.minutes}) == len(send.minutes)
        assert send.events <= LARGEST


def test_a_minute_waits_for_a_moment_and_not_longer() -> None:
    clock = Clock()
    gateways = Gateways(["0"], 0.1, clock)
    assert gateways.add(minute("home-000001")) == []
    clock.now = 0.09
    assert gateways.add(minute("home-000002")) == []
    clock.now = 0.11
    assert [len(send.minutes) for send in gateways.add(minute("home-000003"))] == [2]
    assert [len(send.minutes) for send in gateways.rest()] == [1]
    assert gateways.rest() == []
