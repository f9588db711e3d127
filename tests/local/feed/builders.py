"""Small stories for tests of the feed. Equal stories are one list, which tests do not change."""

from functools import cache

from local.feed import homes as feed_homes
from local.feed.feeding import Send
from local.feed.flights import ExpectedChange, FlightScript, FlightShares, flight_minutes
from local.feed.homes import EXPECT_FILTERED, HomeScript, HomeShares, Reading, home_minutes, reading_body
from local.feed.planned_events import ZONES, Minute, PlannedEvent

NOON = 1_767_268_800_000_000  # 2026-01-01T12:00:00Z
FAULTY = HomeShares(malformed=0.1, unknown_kind=0.05, duplicate=0.1, late=0.2, rearmed=0.2)
FAULTY_FLIGHTS = FlightShares(malformed=0.1, unusable=0.1, duplicate=0.1)


@cache
def story(homes: int = 40, events: int = 2_000, seed: int = 1, shares: HomeShares = FAULTY) -> list[Minute]:
    return list(home_minutes(HomeScript(homes, events, seed, shares=shares)))


@cache
def flight_story(
    numbers: int = 40, events: int = 2_000, seed: int = 1, shares: FlightShares = FAULTY_FLIGHTS
) -> list[Minute[ExpectedChange]]:
    return list(flight_minutes(FlightScript(numbers, events, seed, shares=shares)))


def minute(home_id: str = "home-000001", events: int = 1) -> Minute:
    reading = Reading("hub-1", "heartbeat", None, None, NOON)
    body = reading_body(home_id, reading, ZONES[0]).encode()
    return Minute(home_id, [PlannedEvent(body, EXPECT_FILTERED)] * events)


def registration(home_id: str = "home-000001", armed: bool = True) -> Minute:
    return Minute(home_id, [PlannedEvent(b"{}", feed_homes.expect_registration("Etc/UTC", armed))])


def send(*minutes: Minute, lane: int = 0) -> Send:
    return Send(lane, "0", list(minutes))
