"""local/feed/flights.py and what it is made of, held against the app."""

from collections import Counter
from datetime import UTC, datetime

import pytest

from core.model.commits import Settled
from core.model.events import Event, SequenceNumber
from core.model.rows import References
from core.settle.settle import settle
from core.transforms.loading import load_transform
from examples.flight_info.transform import FlightChange, FlightStatus
from hubledger.testing import assert_poison
from local.feed.flights import UNUSABLE, Change, ExpectedChange, change_body, expect_change
from local.feed.planned_events import POISON, WRITTEN, ZONES
from tests.local.feed.builders import NOON, flight_story

TRANSFORM = load_transform("examples.flight_info")
CHANGES = [
    Change("LH", 400, "2026-01-02", "boarding", "A12", NOON, NOON + 1, NOON + 2_000_000),
    Change("9W", 7, "2026-01-01", "cancelled", None, NOON, None, NOON),
]


def settled(body: bytes, partition_key: str = "400") -> Settled:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return settle([Event(SequenceNumber(0), "0", now, partition_key, {}, body)], References({}), TRANSFORM)


@pytest.mark.slow
def test_the_feed_expects_the_outcomes_of_the_app() -> None:
    """The two rules were written apart; where they differ, one is wrong."""
    seen = Counter[str]()
    for minute in flight_story(events=6_000):
        for body, expected in minute.events:
            found = settled(body, minute.partition_key or "")
            seen[expected.outcome] += 1
            if expected.outcome == POISON:
                assert [letter.error_class for letter in found.letters] == [POISON], body
            else:
                assert [row_of(row) for _, _, row in found.rows[FlightChange]] == [expected], body
                assert [row_of(row) for _, _, row in found.rows[FlightStatus]] == [expected], body
    assert min(seen[WRITTEN], seen[POISON]) > 500


def row_of(row: object) -> ExpectedChange:
    assert isinstance(row, FlightChange | FlightStatus)
    departs, arrives, changed = map(microseconds, (row.departs_at, row.arrives_at, row.changed_at))
    day = row.departure_date.isoformat()
    flight = (row.carrier, row.flight_number, day)
    return ExpectedChange(WRITTEN, *flight, row.status, row.departure_gate, departs, arrives, changed)


def microseconds(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1_000_000)


def test_an_impossible_value_is_poison_for_the_feed_and_for_the_app() -> None:
    for change in CHANGES:
        assert expect_change(change).outcome == WRITTEN
        for name, wrong in UNUSABLE.items():
            assert expect_change(wrong(change)).outcome == POISON, name
            assert_poison(TRANSFORM, change_body(wrong(change), ZONES[0]))
