"""local/feed/dangers.py: what the trigger makes of its messages, and what the app's own reader makes of them."""

from collections.abc import Callable, Iterator

import pytest

from core.model.events import Event
from core.remote.hub.events import to_event
from local.feed.dangers import (
    KINDS,
    WireBody,
    dangers_of,
    fields,
    map_property,
    sequence,
    short_decimal,
    text,
    with_dangers,
)
from local.feed.homes import Expected, HomeScript, HomeShares, home_minutes
from local.feed.planned_events import POISON, WRITTEN, Minute, PlannedEvent
from local.feed.publisher import NOT_FINITE, Publisher, Resends
from local.functions_host.sdk_messages import Delivery, delivery_of
from tests.fakes import trigger_events
from tests.local.feed.builders import send
from tests.local.feed.test_publisher import Hub, go_on

SCRIPT = HomeScript(homes=50, events=2_000, seed=3, shares=HomeShares(late=0.0))
ENDS = {
    text: Delivery.BINDING_FAILS,
    sequence: Delivery.BINDING_FAILS,
    fields: Delivery.BINDING_FAILS,
    map_property: Delivery.READER_STOPS,
    short_decimal: Delivery.DROPPED,
}

Published = Callable[[PlannedEvent[Expected]], bytes]


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


def a_reading() -> PlannedEvent[Expected]:
    events = (one for minute in home_minutes(SCRIPT) for one in minute.events)
    return next(one for one in events if one.expected.ppm is not None)


def read(message: bytes) -> Event:
    return to_event(trigger_events.received(message))


def test_each_kind_fails_in_its_way_of_the_trigger_and_keeps_its_key(published: Published) -> None:
    assert set(KINDS) == set(ENDS)
    messages = {kind: published(kind(a_reading(), "h-1 7")) for kind in KINDS}
    assert {kind: delivery_of(message) for kind, message in messages.items()} == ENDS
    assert {read(message).partition_key for message in messages.values()} == {"h-1"}


def test_the_app_s_own_reader_reads_the_planned_body_and_letters_have_the_properties(published: Published) -> None:
    for kind in KINDS:
        planned = kind(a_reading(), "h-1 7")
        found = read(published(planned))
        assert bytes(found.body) == planned.body, kind.__name__
        assert planned.expected.outcome == (POISON if kind in (text, sequence) else WRITTEN)
        names = set(NOT_FINITE) if planned.expected.outcome == POISON else {"undeliverable"}
        assert set(found.properties) == (set() if kind is fields else names)


def test_a_story_has_so_many_of_them_each_kind_in_turn_and_as_many_rows_otherwise() -> None:
    minutes = list(with_dangers(home_minutes(SCRIPT), SCRIPT, dangers_of(None, 7)))
    bodies = [one.body for minute in minutes for one in minute.events]
    assert len(bodies) == 2_000
    encoded = [body for body in bodies if isinstance(body, WireBody)]
    assert len(encoded) == 7
    assert [len([body for body in encoded if body.startswith(begin)]) for begin in (b'"', b"[")] == [2, 1]
    again = list(with_dangers(home_minutes(SCRIPT), SCRIPT, dangers_of(None, 7)))
    assert [one.body for minute in again for one in minute.events] == bodies
