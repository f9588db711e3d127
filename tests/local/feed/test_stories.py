from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from core.model.commits import Settled
from core.model.events import Event, SequenceNumber
from core.model.rows import References
from core.settle.settle import settle
from core.transforms.loading import load_transform
from examples.flight_info.transform import FlightChange, FlightStatus
from hubledger.testing import assert_poison
from local.feed.businesses import FLIGHTS, HOMES, Domain
from local.feed.flights import UNUSABLE, Change, ExpectedChange, change_body, expect_change
from local.feed.planned_events import FILTERED, FIRST_INSTANT, POISON, REFERENCE, WRITTEN, ZONES, Minute
from tests.local.feed.builders import NOON, flight_story, story

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def settled(transform: Any, body: bytes, key: str | None) -> Settled:
    return settle([Event(SequenceNumber(0), "0", NOW, key, {}, body)], References({}), transform)


@pytest.mark.parametrize("domain", [HOMES, FLIGHTS], ids=lambda domain: domain.transform)
def test_a_story_is_that_of_its_seed_and_has_exactly_the_requested_number_of_events(domain: Domain) -> None:
    def told(senders: int = 40, events: int = 2_000, seed: int = 1) -> list[Minute[Any]]:
        return list(domain.story(senders, events, seed, FIRST_INSTANT, None))

    assert told() == told() != told(seed=2)
    for senders in (1, 2, 7, 40):
        for events in range(1, 60):
            assert sum(len(minute.events) for minute in told(senders, events, events)) == events


def test_the_feed_expects_the_outcomes_of_the_app_for_homes() -> None:
    """A letter settles when all homes are known."""
    transform, references = load_transform("examples.home_security"), References({})
    planned_events = [(minute.partition_key, event) for minute in story() for event in minute.events]
    events = [Event(SequenceNumber(n), str(n), NOW, key, {}, one.body) for n, (key, one) in enumerate(planned_events)]
    first = [settle([event], references, transform) for event in events]
    for event, settled, (_, planned) in zip(events, first, planned_events, strict=True):
        letters = [letter.error_class for letter in settled.letters]
        found = letters[0] if letters else FILTERED if settled.filtered else WRITTEN
        assert found == planned.expected.outcome, event.body
        final = settle([event], references, transform) if found == REFERENCE else settled
        alerts = sum(len(rows) for kind, rows in final.rows.items() if kind.__name__ == "HomeAlert")
        assert (len(final.letters) == 1, alerts) == (found == POISON, planned.expected.alerts), event.body


@pytest.mark.slow
def test_the_feed_expects_the_outcomes_of_the_app_for_flights() -> None:
    transform, seen = load_transform("examples.flight_info"), Counter[str]()
    for minute in flight_story(events=6_000):
        for body, expected, _ in minute.events:
            found = settled(transform, body, minute.partition_key)
            seen[expected.outcome] += 1
            if expected.outcome == POISON:
                assert [letter.error_class for letter in found.letters] == [POISON], body
            else:
                for kind in (FlightChange, FlightStatus):
                    assert [row_of(row) for _, _, row in found.rows[kind]] == [expected], body
    assert min(seen[WRITTEN], seen[POISON]) > 500
    for change in (
        Change("LH", 400, "2026-01-02", "boarding", "A12", NOON, NOON + 1, NOON + 2_000_000),
        Change("9W", 7, "2026-01-01", "cancelled", None, NOON, None, NOON),
    ):
        assert expect_change(change).outcome == WRITTEN
        for name, wrong in UNUSABLE.items():
            assert expect_change(wrong(change)).outcome == POISON, name
            assert_poison(transform, change_body(wrong(change), ZONES[0]))


def row_of(row: object) -> ExpectedChange:
    assert isinstance(row, FlightChange | FlightStatus)
    times = (row.departs_at, row.arrives_at, row.changed_at)
    departs, arrives, changed = (None if one is None else round(one.timestamp() * 1_000_000) for one in times)
    flight = (row.carrier, row.flight_number, row.departure_date.isoformat())
    return ExpectedChange(WRITTEN, *flight, row.status, row.departure_gate, departs, arrives, changed)
