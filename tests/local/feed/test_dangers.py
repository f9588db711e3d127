"""local/feed/dangers.py: what transform and trigger make of its events, and the app's own reader of their messages."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from core.model.events import Event
from core.model.rows import References
from core.remote.hub.events import to_event
from examples.home_security.transform import Home, SensorReading
from local.feed.dangers import (
    DEADLY,
    KILLING,
    KINDS,
    REFUSED,
    REFUSED_EVENTS,
    dangers_of,
    fields,
    map_property,
    references,
    sequence,
    short_decimal,
    text,
    transform,
    with_dangers,
)
from local.feed.homes import Expected, HomeScript, HomeShares, home_minutes
from local.feed.planned_events import CRASH, POISON, REFUSAL, WRITTEN, Minute, PlannedEvent
from local.feed.publisher import NOT_FINITE, Publisher, Resends
from local.functions_host.sdk_messages import Delivery, delivery_of
from tests.fakes import trigger_events
from tests.fakes.builders import event
from tests.local.feed.builders import send
from tests.local.feed.test_publisher import Hub, go_on

SCRIPT = HomeScript(homes=200, events=6_000, seed=3, shares=HomeShares(late=0.0))
ENDS = {
    text: Delivery.BINDING_FAILS,
    sequence: Delivery.BINDING_FAILS,
    fields: Delivery.BINDING_FAILS,
    map_property: Delivery.READER_STOPS,
    short_decimal: Delivery.DROPPED,
}

Published = Callable[[PlannedEvent[Expected]], bytes]


def made(killing: int | None, undeliverable: int = 0) -> list[PlannedEvent[Expected]]:
    dangers = dangers_of(killing, undeliverable)
    return [one for minute in with_dangers(home_minutes(SCRIPT), SCRIPT, dangers) for one in minute.events]


def test_a_story_keeps_its_length_and_registrations_and_gets_its_dangers_spread_by_its_seed() -> None:
    plain = [one for minute in home_minutes(SCRIPT) for one in minute.events]
    for killing in (0, 1, 3):
        story = made(killing)
        outcomes = [one.expected.outcome for one in story]
        assert len(outcomes) == 6_000
        assert (outcomes.count(CRASH), outcomes.count(REFUSAL)) == (killing, REFUSED_EVENTS)
        assert "reference" not in outcomes
        assert [one for one in story if b'"registration"' in one.body] == [
            one for one in plain if b'"registration"' in one.body
        ]
        places = [at for at, outcome in enumerate(outcomes) if outcome in (CRASH, REFUSAL)]
        assert min(later - earlier for earlier, later in pairwise(places)) > 300
        assert made(killing) == story


def test_a_refused_body_makes_a_row_that_no_database_takes_and_other_bodies_are_those_of_homes() -> None:
    (row,) = transform(event(0, REFUSED.decode()), References({}))
    assert isinstance(row, SensorReading)
    assert row.ppm == 2**63
    assert list(references(event(0, REFUSED.decode()))) == []
    body = '{"home_id":"h","kind":"registration","time_zone":"Etc/UTC","armed":true}'
    assert list(transform(event(0, body), References({}))) == [Home("h", "Etc/UTC", True)]


def test_a_killing_body_ends_the_process_with_a_message() -> None:
    program = (
        "from datetime import UTC, datetime\n"
        "from core.model.events import Event\nfrom core.model.rows import References\n"
        "from local.feed.dangers import transform\n"
        f"transform(Event(7, '0', datetime.now(UTC), None, {{}}, {KILLING!r}), References({{}}))\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (DEADLY, "event 7 kills its process\n")


@pytest.fixture
def published() -> Iterator[Published]:
    """Publish an event of the home h-1, and return its message as the hub hands it out."""
    resends = Resends()

    def publish(planned: PlannedEvent[Expected]) -> bytes:
        hub = Hub()
        minutes = [Minute("h-1", [planned])] * 2  # a gateway's send
        Publisher(hub, go_on, resends, NOT_FINITE).publish(send(*minutes))
        (batch,) = hub.taken
        assert len(batch) == 2
        return trigger_events.handed_out(bytes(batch._message[5][0]))

    yield publish
    resends.close()


def test_each_kind_fails_in_its_way_of_the_trigger_and_the_app_s_own_reader_reads_its_planned_body(
    published: Published,
) -> None:
    assert set(KINDS) == set(ENDS)
    reading = next(one for minute in home_minutes(SCRIPT) for one in minute.events if one.expected.ppm is not None)
    for kind in KINDS:
        planned = kind(reading, "h-1 7")
        message = published(planned)
        assert delivery_of(message) == ENDS[kind]
        found: Event = to_event(trigger_events.received(message))
        assert (found.partition_key, bytes(found.body)) == ("h-1", planned.body), kind.__name__
        assert planned.expected.outcome == (POISON if kind in (text, sequence) else WRITTEN)
        names = set(NOT_FINITE) if planned.expected.outcome == POISON else {"undeliverable"}
        assert set(found.properties) == (set() if kind is fields else names)
