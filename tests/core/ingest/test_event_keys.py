"""Events with a key of their own: they are held by it, counted without it, and stored whole in their letters."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from msgspec import structs

from core.errors import EventKeyChanged, PoisonEvent, SettingsRefused
from core.ingest.ingest import Ingestion, ingest_batch
from core.letters.retry import Keeper, claim_due, retry_chunk
from core.model.event_keys import fault_of_choice, kafka_header, under_key, with_key
from core.model.events import Event, captured
from core.model.letters import LetterPolicy
from core.model.property_values import Unread, decode_sent, encode_properties
from core.model.rows import References, Row
from core.model.transforms import WITHOUT_KEY, Transform, unknown_fields_of
from core.settle.partition_store import Partitions
from examples.home_security.transform import SensorReading
from tests.fakes.builders import STREAM, FakeClock, batch, event, partition, stamps
from tests.fakes.kept import Engine
from tests.fakes.replaying import World, order
from tests.fakes.store import Store

DEVICE = "iothub-connection-device-id"
HOLDING = LetterPolicy(order="hold_key")


def of_device(number: int, device: str | None, **properties: object) -> Event:
    """Return an event as an IoT Hub sends it, without a partition key."""
    sent = {DEVICE: device, "iothub-enqueuedtime": "2026-01-02T03:04:05.1Z", "x-opt-offset": "9", "content-type": None}
    return structs.replace(event(number, "body", key=None), annotations=sent, properties=properties)


class Devices:
    """A stream keyed by device, whose events fail while their device is `broken`."""

    def __init__(self, store: Store) -> None:
        self.store, self.clock = store, FakeClock()
        self.own, self.broken, self.seen = stamps(3, self.clock), {"d1"}, list[Event]()
        self.transform = with_key(Transform("test/1", self._rows_of, None, (SensorReading,)), f"system:{DEVICE}")

    def ingest(self, *events: Event) -> None:
        given = batch([under_key(one, self.transform.key_of) for one in events])
        ingest_batch(given, Ingestion(self.store, self.transform, self.own, letters=HOLDING))

    def retry(self) -> None:
        self.clock.advance(3_600)
        keeper = Keeper(STREAM, self.store, self.transform, lambda *_: None, self.own, HOLDING)
        for chunk in claim_due(keeper):
            retry_chunk(chunk, keeper, "retry-1")

    def _rows_of(self, given: Event, references: References) -> Iterable[Row]:
        self.seen.append(given)
        if given.system_properties.get(DEVICE) in self.broken:
            raise KeyError("broken")
        return [SensorReading("home", "sensor", "kind", None, 1, given.enqueued_at)]


def test_a_device_s_events_are_held_counted_and_retried_with_all_that_was_sent(store: Store, engine: Engine) -> None:
    devices = Devices(store)
    devices.ingest(*[of_device(n, d, mark=n) for n, d in enumerate(["d1", "d2", "d1", None])])
    kept = [(one.sequence_number, one.status, one.partition_key) for one in engine.letters()]
    assert kept == [(0, "waiting", "d1"), (2, "held", "d1")]
    checkpoint = store.read_partition(partition()).checkpoint
    assert checkpoint is not None and unknown_fields_of(checkpoint.unknown_fields) == {WITHOUT_KEY: 1}
    devices.broken, devices.seen = set(), []
    devices.retry()
    assert [(one.status) for one in engine.letters()] == ["resolved"] * 2
    assert [(one.key, one.partition_key, one.properties["mark"]) for one in devices.seen] == [
        ("d1", None, 0),
        ("d1", None, 2),
    ]
    assert devices.seen[0].system_properties == of_device(0, "d1").system_properties
    assert str(devices.seen[0].system_properties["iothub-enqueuedtime"]) == "2026-01-02 03:04:05.100000+00:00"


@pytest.mark.parametrize("is_lost", [False, True])
@pytest.mark.parametrize("keep_bodies", [False, True])
def test_a_letter_has_its_system_properties_before_and_after_the_hub_has_forgotten_its_event(
    store: Store, keep_bodies: bool, is_lost: bool
) -> None:
    seen, mended = list[Event](), list[bool]()

    def rows_of(given: Event, references: References) -> Iterable[Row]:
        if not mended:
            raise PoisonEvent("no rows yet")
        seen.append(given)
        return [SensorReading("home", "sensor", "kind", None, 1, given.enqueued_at)]

    transform = with_key(Transform("test/1", rows_of, None, (SensorReading,)), f"system:{DEVICE}")
    log = [under_key(of_device(n, device, mark=n), transform.key_of) for n, device in enumerate(["d1", "d2", "d1"])]
    world = World(store, {"0": log}, transform, letters=LetterPolicy(keep_bodies=keep_bodies))
    mended.append(True)
    if is_lost:
        world.hub.expire_before("0", 3)
    job = world.replay(order(keys=["d1"]))
    is_there = keep_bodies or not is_lost
    assert (job.counts.events, job.counts.gone) == ((2, 0) if is_there else (0, 3))
    assert list(map(_sent, seen)) == ([_sent(log[0]), _sent(log[2])] if is_there else [])


def _sent(event: Event) -> tuple[object, ...]:
    return event.key, event.partition_key, event.properties, event.body, dict(event.system_properties)


def test_a_different_key_is_refused_while_letters_are_open_under_the_former_one(store: Store) -> None:
    devices = Devices(store)

    def opened(event_key: str) -> int:
        return Partitions(store.database, event_key=event_key).open_stream(STREAM)

    opened("kafka")
    opened(devices.transform.key_name)
    devices.ingest(of_device(0, "d1"))
    opened(devices.transform.key_name)
    for other in ("", "kafka"):
        with pytest.raises(
            EventKeyChanged, match=f"the key of events was system:{DEVICE}, and is .* Set EVENT_KEY back"
        ):
            opened(other)
    devices.broken = set()
    devices.retry()
    opened("")
    opened("kafka")


def test_a_key_is_read_from_each_place_that_the_setting_names_or_it_is_the_partition_key() -> None:
    def key(choice: str, given: Event) -> str | None:
        return under_key(given, with_key(Transform("1", lambda *_: ()), choice).key_of).key

    kafka = [
        structs.replace(event(0, key="p"), annotations={"x-opt-kafka-key": sent})
        for sent in ("a2V5LTE=", "key-1", "AP8Q", 7)
    ]
    assert [key("kafka", one) for one in kafka] == ["key-1", "key-1", "AP8Q", "p"]
    given = of_device(0, "d1", tenant="t", floor=3, open=True, raw=b"\0")
    assert key(f"system:{DEVICE}", given) == "d1"
    assert key("system:x-opt-sequence-number", given) == "0"
    assert [key(f"property:{name}", given) for name in ("tenant", "floor", "open", "raw", "none")] == [
        "t",
        "3",
        None,
        "AA==",  # the worker's bytes, as the trigger has them
        None,
    ]
    header = structs.replace(given, properties={"raw": "AA==", "text": "möwe", "number": 7})
    assert [kafka_header(header, name) for name in ("raw", "text", "number", "none")] == [
        *(b"\0", "möwe".encode()),
        *[None] * 2,
    ]
    unread = structs.replace(given, properties=Unread("json", "{"), partition_key="p")
    assert key("property:tenant", unread) == "p" and under_key(given, lambda one: 1 / 0) is given
    assert [fault_of_choice(one) is None for one in ("", "kafka", "system:a", "property:b c")] == [True] * 4
    for wrong in ("partition", "system:", "kafka:a", "Kafka", "system"):
        assert "system:NAME, property:NAME or kafka, not" in str(fault_of_choice(wrong))
    for error in (SystemExit(3), GeneratorExit(), ZeroDivisionError()):

        def raising(given: Event, error: BaseException = error) -> str:
            raise error

        assert under_key(unread, raising) is unread
    assert key("property:id", of_device(0, "d1", id=UUID(int=1))) == "00000000-0000-0000-0000-000000000001"
    with pytest.raises(SettingsRefused, match="the room has key_of"):
        with_key(replace(Transform("1", lambda *_: ()), key_of=lambda one: "k"), "kafka")


def test_system_properties_are_stored_beside_properties_of_any_names() -> None:
    names: tuple[Any, ...] = ({}, {"a": 1}, {"$system": 1}, {"$properties": {}, "$system": {}}, Unread("json", "{"))
    for properties in names:
        for system in ({}, {"message-id": "m", "n": [1.5, {"k": None}]}):
            text = encode_properties(properties, system)
            assert decode_sent(text) == (properties, system), text
            assert system or text == encode_properties(properties)
    record = {"creation-time": 2**62, "iothub-enqueuedtime": -5, "message-id": 7, "correlation-id": b"id\xff"}
    assert captured(record) == {
        "creation-time": "9999-12-31 23:59:59.999000+00:00", "iothub-enqueuedtime": "1970-01-01 00:00:00+00:00",
        "message-id": "7", "correlation-id": "6964FF",
    }  # fmt: skip
    own = structs.replace(event(0, key="p"), own_key="d1", annotations={"message-id": "m"})
    again = Event.from_columns(0, "0", own.enqueued_at, "d1", ({}, own.stored_annotations), b"")
    assert (again.key, again.partition_key, again.sent_annotations) == ("d1", "p", {"message-id": "m"})
