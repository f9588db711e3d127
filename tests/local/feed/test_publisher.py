import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.eventhub import EventDataBatch
from azure.eventhub.exceptions import (
    AuthenticationError,
    ConnectError,
    ConnectionLostError,
    EventDataSendError,
    EventHubError,
)

from core.errors import PoisonEvent
from core.model.events import Event
from core.model.rows import References
from core.remote.hub.events import to_event, to_host_event
from local.event_hubs.events import read_publication
from local.feed import devices
from local.feed.dangers import KINDS, fields, map_property, sequence, short_decimal, text
from local.feed.devices import of_device
from local.feed.homes import HomeScript, HomeShares, home_minutes, registration_body
from local.feed.planned_events import POISON, WRITTEN, ZONES, Minute
from local.feed.publisher import NOT_FINITE, Publisher, Resends
from local.feed.record import Copies
from local.feed.sample import Sample, read_sample, sample_minutes
from local.functions_host.sdk_messages import Delivery, delivery_of
from tests.fakes import trigger_events
from tests.local.feed.builders import minute, registration, send

GOLDEN = Path(__file__).parents[2] / "fixtures" / "system_properties.json"


def busy() -> EventHubError:
    error = EventDataSendError("the hub is too busy")
    error.error = "server-busy"
    return error


class Hub:
    """Take batches, and meet each send with the next given fault."""

    def __init__(self, *faults: EventHubError) -> None:
        self._faults = list(faults)
        self.taken: list[EventDataBatch] = []
        self.asked: list[str] = []

    def create_batch(self, *, partition_id: str) -> EventDataBatch:
        self.asked.append(partition_id)
        return EventDataBatch(partition_id=partition_id)

    def send_batch(self, event_data_batch: EventDataBatch, *, timeout: float) -> None:
        if self._faults:
            raise self._faults.pop(0)
        self.taken.append(event_data_batch)


@pytest.fixture
def resends() -> Iterator[Resends]:
    counter = Resends()
    yield counter
    counter.close()


def go_on(seconds: float) -> bool:
    return False


def stop(seconds: float) -> bool:
    return True


def test_a_send_that_the_client_repeats_by_itself_leaves_a_doubt_unless_the_hub_was_busy(resends: Resends) -> None:
    class Repeating(Hub):
        def __init__(self, fault: EventHubError) -> None:
            super().__init__()
            self._fault = fault

        def send_batch(self, event_data_batch: EventDataBatch, *, timeout: float) -> None:
            log = logging.getLogger("azure.eventhub._producer_client")
            log.debug("Producer for partition ID %s not available: %s.", "all", self._fault)

    lost, refused = Repeating(ConnectionLostError("gone")), Repeating(busy())
    assert Publisher(lost, go_on, resends).publish(send(minute())) == Copies(1, 2)
    assert Publisher(refused, go_on, resends).publish(send(minute())) == Copies(1, 1)


def test_a_connection_lost_before_the_send_is_tried_again_without_a_doubt(resends: Resends) -> None:
    class Closed(Hub):
        def __init__(self, *refusals: EventHubError) -> None:
            super().__init__()
            self._refusals = list(refusals)

        def create_batch(self, *, partition_id: str) -> EventDataBatch:
            batch = super().create_batch(partition_id=partition_id)
            if self._refusals:
                raise self._refusals.pop(0)
            return batch

    hub = Closed(ConnectError("gone"), ConnectError("gone"))
    assert Publisher(hub, go_on, resends).publish(send(minute())) == Copies(1, 1)
    assert (len(hub.asked), len(hub.taken)) == (3, 1)
    hub = Closed(AuthenticationError("who are you"))
    with pytest.raises(AuthenticationError):
        Publisher(hub, go_on, resends).publish(send(minute()))
    assert len(hub.asked) == 1


SCRIPT = HomeScript(homes=200, events=6_000, seed=3, shares=HomeShares(late=0.0))
ENDS = {
    text: Delivery.BINDING_FAILS,
    sequence: Delivery.BINDING_FAILS,
    fields: Delivery.BINDING_FAILS,
    map_property: Delivery.READER_STOPS,
    short_decimal: Delivery.DROPPED,
}


def test_each_kind_fails_as_in_the_trigger_and_the_app_s_own_reader_reads_its_planned_body(resends: Resends) -> None:
    assert set(KINDS) == set(ENDS)
    reading = next(one for minute in home_minutes(SCRIPT) for one in minute.events if one.expected.ppm is not None)
    for kind in KINDS:
        planned, hub = kind(reading, "h-1 7"), Hub()
        minutes = [Minute("h-1", [planned])] * 2  # a gateway's send
        Publisher(hub, go_on, resends, NOT_FINITE).publish(send(*minutes))
        (batch,) = hub.taken
        assert len(batch) == 2
        message = trigger_events.handed_out(bytes(batch._message[5][0]))
        assert delivery_of(message) == ENDS[kind]
        found: Event = to_event(trigger_events.received(message))
        assert (found.partition_key, bytes(found.body)) == ("h-1", planned.body), kind.__name__
        assert planned.expected.outcome == (POISON if kind in (text, sequence) else WRITTEN)
        names = set(NOT_FINITE) if planned.expected.outcome == POISON else {"undeliverable"}
        assert set(found.properties) == (set() if kind is fields else names)


def annotations_of(message: bytes) -> dict[bytes, bytes]:
    """Return the annotations of a message, each name and value as it is encoded."""
    (found,) = read_publication(message, 0).events
    return {
        bytes(name): bytes(value) for name, value in zip(found.annotations[::2], found.annotations[1::2], strict=True)
    }


def test_an_event_of_a_device_is_encoded_as_an_iot_hub_s_and_is_refused_from_a_different_device(
    resends: Resends,
) -> None:
    hub, (planned,) = Hub(), registration("dev-1").events
    body = registration_body("dev-1", ZONES[0], True, None).encode()
    minutes = [Minute(device, [planned._replace(body=body)]) for device in ("dev-1", "dev-2")]
    Publisher(hub, go_on, resends, stamp=of_device).publish(send(*minutes))
    golden = next(one for one in json.loads(GOLDEN.read_text())["cases"] if one["case"] == "iothub")
    ours = [bytes(message) for message in hub.taken[0]._message[5]]
    found, wanted = annotations_of(ours[0]), annotations_of(bytes.fromhex(golden["message_hex"]))
    time = next(name for name in wanted if b"enqueuedtime" in name)
    assert (found.pop(time)[0], len(wanted.pop(time))) == (0x83, 9), "a timestamp"
    assert found == {name: value for name, value in wanted.items() if b"dt-" not in name}
    events = [to_event(trigger_events.received(trigger_events.handed_out(one))) for one in ours]
    assert [(one.partition_key, one.properties) for one in events] == [(None, devices.PROPERTIES)] * 2
    (home,) = devices.transform(events[0], References({}))
    assert home.home_id == "dev-1"  # type: ignore[attr-defined]
    with pytest.raises(PoisonEvent, match="device dev-2 sent an event of a different home"):
        devices.transform(events[1], References({}))


SYSTEM: dict[str, object] = {
    "message-id": "m-1", "subject": "s", "correlation-id": "c-1", "content-type": "text/plain", "group-sequence": 4,
    "content-encoding": "gzip", "creation-time": "2026-01-02T03:04:05.12+00:00", "x-opt-kafka-key": "a2V5LTE=",
    "iothub-connection-device-id": "d-1", "iothub-enqueuedtime": "2026-01-02T03:04:05.1Z",
}  # fmt: skip


def test_an_event_of_a_file_is_published_with_all_that_it_has(resends: Resends, tmp_path: Path) -> None:
    sent = {"partition_key": "p-1", "properties": {"cloudEvents:id": "A-1", "n": 7}, "system_properties": SYSTEM}
    file = tmp_path / "events.jsonl"
    lines = [
        {"$event": {"body": {"id": 1}, **sent}},
        {"$event": {"base64": "AP8=", "properties": {"a": "b"}}},
        {"id": 2},
    ]
    file.write_text("".join(f"{json.dumps(each)}\n" for each in lines), encoding="utf-8")
    minutes, hub = list(sample_minutes(Sample(file, read_sample(file)), 3, 1, 0.0)), Hub()
    Publisher(hub, go_on, resends).publish(send(*minutes))
    messages = [trigger_events.handed_out(bytes(each)) for each in hub.taken[0]._message[5]]
    whole, raw, bare = (to_host_event(trigger_events.received(each)) for each in messages)
    assert (whole.partition_key, whole.body, whole.properties) == ("p-1", b'{"id": 1}', sent["properties"])
    assert whole.sent_annotations == SYSTEM
    assert (raw.partition_key, raw.body, raw.properties, raw.sent_annotations) == (None, b"\0\xff", {"a": "b"}, {})
    assert (bare.partition_key, bare.body, bare.properties, bare.sent_annotations) == (None, b'{"id": 2}', {}, {})
