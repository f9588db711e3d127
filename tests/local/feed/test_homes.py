"""local/feed/homes.py"""

from datetime import UTC, datetime

import pytest

from core.model.events import Event, SequenceNumber
from core.model.rows import References
from core.settle.settle import settle
from core.transforms.loading import load_transform
from local.feed.planned_events import FILTERED, POISON, REFERENCE, WRITTEN, Minute
from tests.local.feed.builders import story


def of_home(minutes: list[Minute]) -> dict[str, list[Minute]]:
    found: dict[str, list[Minute]] = {}
    for minute in minutes:
        found.setdefault(minute.partition_key or "", []).append(minute)
    return found


def registrations(minute: Minute) -> list[int]:
    """Return the positions of registrations in a minute."""
    return [at for at, event in enumerate(minute.events) if event.expected.kind == "registration"]


@pytest.mark.slow
def test_every_home_that_speaks_registers_before_the_end_and_later_than_its_first_readings_when_it_is_late() -> None:
    for events in range(300, 2_000, 100):
        for own in of_home(story(homes=60, events=events, seed=events)).values():
            first = next(number for number, minute in enumerate(own) if registrations(minute))
            assert all(event.expected.outcome != WRITTEN for minute in own[:first] for event in minute.events)


def test_the_feed_expects_the_outcomes_of_the_app() -> None:
    """The two rules were written apart; where they differ, one is wrong. A letter settles when all homes are known."""
    transform, references, now = load_transform("examples.home_security"), References({}), datetime.now(UTC)
    planned_events = [(minute.partition_key, event) for minute in story() for event in minute.events]
    events = [Event(SequenceNumber(n), str(n), now, key, {}, one.body) for n, (key, one) in enumerate(planned_events)]
    first = [settle([event], references, transform) for event in events]
    for event, settled, (_, planned) in zip(events, first, planned_events, strict=True):
        letters = [letter.error_class for letter in settled.letters]
        found = letters[0] if letters else FILTERED if settled.filtered else WRITTEN
        assert found == planned.expected.outcome, event.body
        final = settle([event], references, transform) if found == REFERENCE else settled
        alerts = sum(len(rows) for kind, rows in final.rows.items() if kind.__name__ == "HomeAlert")
        assert (len(final.letters) == 1, alerts) == (found == POISON, planned.expected.alerts), event.body
