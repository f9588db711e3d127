"""Events of every type over AMQP, through the trigger and through the worker: each letter has exactly its values."""

import json
import subprocess
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from azure.eventhub import EventData, EventHubProducerClient
from azure.eventhub.amqp import AmqpAnnotatedMessage

from local.event_hubs.codec import (
    Array,
    Described,
    Float,
    Int,
    Raw,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    decode,
    encode,
)
from local.event_hubs.codec import encode as encoded
from tests.acceptance.gaps.apps import App, working
from tests.acceptance.worker.started import TIMES, start
from tests.fakes.kept import KeptLetter

DEEP: Any = "deep"
for _ in range(200):
    DEEP = [DEEP]
LONG, ULONG = 2**63 - 1, 2**64 - 1
AT = 1_767_225_600_120
PROPERTIES = 0x74
SECTIONS = {"data": 0x75, "sequence": 0x76, "value": 0x77}
NOT_DELIVERED = object()  # by the trigger

# name: the value, the JSON of a worker's letter, and that of a trigger's
Values = tuple[Any, Any, Any]
VALUES: dict[str, Values] = {
    "null": (None, None, None),
    "true": (True, True, True),
    "ubyte": (UByte(255), 255, 255),
    "ushort": (UShort(65_535), 65_535, 65_535),
    "uint": (UInt(2**32 - 1), 2**32 - 1, 2**32 - 1),
    "ulong": (ULong(ULONG), {"$integer": str(ULONG)}, {"$integer": str(ULONG)}),
    "byte": (Raw(b"\x51\x80"), -128, -128),
    "short": (Raw(b"\x61\x80\x00"), -32_768, -32_768),
    "int": (Int(-(2**31)), -(2**31), -(2**31)),
    "long": (LONG, {"$integer": str(LONG)}, {"$integer": str(LONG)}),
    "float": (Float(1.1), 1.100000023841858, 1.1),
    "double": (1.1, 1.1, 1.1),
    "NaN": (float("nan"), {"$double": "NaN"}, "NaN"),
    "infinity": (float("inf"), {"$double": "Infinity"}, "Infinity"),
    "minus infinity": (Float("-inf"), {"$double": "-Infinity"}, "-Infinity"),
    "decimal32": (Raw(b"\x74\x31\x80\x00\x6e"), {"$decimal": "1.10"}, NOT_DELIVERED),
    "decimal64": (Raw(b"\x84\xb1\xc0" + b"\x00" * 5 + b"\x01"), {"$decimal": "-1"}, NOT_DELIVERED),
    "decimal128": (Raw(b"\x94\x30\x40" + b"\x00" * 13 + b"\x0a"), {"$decimal": "10"}, 10.0),
    "char": (Raw(b"\x73\x00\x01\xf4\x69"), "👩", NOT_DELIVERED),
    "timestamp": (Timestamp(AT), {"$timestamp": "2026-01-01T00:00:00.120000+00:00"}, "2026-01-01T00:00:00.12Z"),
    "late timestamp": (Timestamp(LONG), {"$integer": str(LONG)}, "9999-12-31T23:59:59.9999999"),
    "uuid": (Raw(b"\x98" + UUID(int=7).bytes), {"$uuid": str(UUID(int=7))}, str(UUID(int=7))),
    "binary": (b"\x00\xff", {"$binary": "AP8="}, "AP8="),
    "binary text": (b"text", {"$binary": "dGV4dA=="}, "dGV4dA=="),
    "string": ("ß\x00👩", "ß\x00👩", "ß\x00👩"),
    "symbol": (Symbol("symbol"), "symbol", "symbol"),
    "list": ([1, [b"\x00"]], [1, [{"$binary": "AA=="}]], [1, [[0]]]),
    "map": ({"a": {"b": 1}}, {"a": {"b": 1}}, NOT_DELIVERED),
    "like a tag": ({"$binary": "AA=="}, {"$map": [["$binary", "AA=="]]}, NOT_DELIVERED),
    "array": (Array(["a", "b"]), ["a", "b"], ["a", "b"]),
    "described": (Described(Symbol("com.microsoft:uri"), "https://a/"), None, "https://a/"),
    "described number": (Described(ULong(7), 1), {"$described": [7, 1]}, NOT_DELIVERED),
}
VALUES["described"] = (VALUES["described"][0], {"$described": ["com.microsoft:uri", "https://a/"]}, "https://a/")
# the sections of a body, and the body of the event on both ways
BODIES: dict[str, tuple[list[bytes], bytes]] = {}


def section(code: int, value: Any) -> bytes:
    return encoded(Described(ULong(code), value))


def _body(kind: str, *values: Any) -> list[bytes]:
    return [section(SECTIONS[kind], value) for value in values]


BODIES |= {
    "data": (_body("data", b"poi", b"son"), b"poison"),
    "sequence": (_body("sequence", [1, b"\x00"], [None]), b'[1,{"$binary":"AA=="},null]'),
    "value": (_body("value", {"a": float("nan")}), b'{"a":{"$double":"NaN"}}'),
    "text": (_body("value", "poison"), b'"poison"'),
    "null": (_body("value", None), b""),
    "described": (_body("value", Described(Symbol("t"), 1)), b'{"$described":["t",1]}'),
}


# Those that the trigger delivers too
DELIVERED = {name: each for name, each in VALUES.items() if each[2] is not NOT_DELIVERED}
DELIVERED_BODIES = {name: BODIES[name] for name in ("data", "null")}


def publish_deliverable(producer: EventHubProducerClient) -> int:
    """Publish what the trigger delivers of all that is below; return the number of events."""
    count = _publish(producer, [*_with_properties(DELIVERED), *_with_bodies(DELIVERED_BODIES)])
    producer.send_batch([event_of_the_sdk()], partition_id="0")
    return count + 1


def publish_every_type(producer: EventHubProducerClient) -> int:
    """Publish an event for each value and body to partition 0, the deep one, and those that the SDK can encode; return
    their number."""
    deep = section(PROPERTIES, {"deep": DEEP}) + section(0x75, b"poison")
    count = _publish(producer, [*_with_properties(VALUES), *_with_bodies(BODIES), deep])
    batch = producer.create_batch(partition_id="0")
    batch.add(event_of_the_sdk())
    batch.add(AmqpAnnotatedMessage(sequence_body=[[1, "a"], [None]]))
    batch.add(AmqpAnnotatedMessage(value_body={"a": [b"\x00"]}))
    producer.send_batch(batch)
    return count + 3


def _with_properties(values: Mapping[str, Values]) -> list[bytes]:
    properties = (section(PROPERTIES, {name: value, "beside": 1}) for name, (value, _, _) in values.items())
    return [each + section(0x75, b"poison") for each in properties]


def _with_bodies(bodies: Mapping[str, tuple[list[bytes], bytes]]) -> list[bytes]:
    return [b"".join(sections) for sections, _ in bodies.values()]


def _publish(producer: EventHubProducerClient, messages: list[bytes]) -> int:
    """Put encoded messages into the batch of the SDK, which cannot encode every type."""
    batch: Any = producer.create_batch(partition_id="0")
    batch._message[5].extend(messages)
    batch._count = len(messages)
    producer.send_batch(batch)
    return len(messages)


def event_of_the_sdk() -> EventData:
    """Return an event with every kind of property that the SDK encodes by itself."""
    event = EventData(b"poison")
    event.properties = {"nan": float("nan"), "raw": b"\x00\xff", "text": "ß", "id": UUID(int=7), "yes": True}
    return event


AT_ONCE = {"AzureFunctionsJobHost__extensions__eventHubs__minEventBatchSize": "1", "DEAD_LETTER_BASE_SECONDS": "3600"}


def letters_of(app: App, publish: Callable[[EventHubProducerClient], int] = publish_deliverable) -> list[KeptLetter]:
    """Publish events, then one that is written; return the letters once all are accounted for."""
    connection = app.emulator.connection_string
    with EventHubProducerClient.from_connection_string(connection, eventhub_name="telemetry") as producer:
        app.published["0"] += publish(producer)
    app.send("0", [b"reading home-1"])
    app.send("1", [b"reading home-1"])
    app.until_all_accounted()
    return app.engine.letters()


def assert_values(letters: Sequence[KeptLetter], values: Mapping[str, Values], way: int) -> None:
    """Check the properties of the events of values."""
    found = {name: letter.properties for name, letter in zip(values, letters, strict=False)}
    whole = {name: {name: each[way], "beside": 1} for name, each in values.items()}
    assert json.dumps(found, sort_keys=True) == json.dumps(whole, sort_keys=True)  # tells 1, 1.0 and true apart


def bodies(letters: Sequence[KeptLetter], first: int, count: int) -> list[bytes]:
    return [letter.body for letter in letters[first : first + count]]


def test_the_worker_has_every_value_whole_in_its_letters(tmp_path: Path) -> None:
    with working(tmp_path) as app:
        settings = {**app.settings(), "DEAD_LETTER_BASE_SECONDS": "3600"}
        worker = start(settings, *TIMES, output=subprocess.DEVNULL)
        try:
            letters = letters_of(app, publish_every_type)
        finally:
            worker.kill()
            worker.communicate()
    assert len(letters) == len(VALUES) + len(BODIES) + 1 + 3
    assert_values(letters, VALUES, 1)
    assert bodies(letters, len(VALUES), len(BODIES)) == [body for _, body in BODIES.values()]
    deep = b64decode(str(letters[-4].properties["$amqp"]))
    assert deep == encode({"deep": DEEP}) and decode(deep)
    event, sequence, value = letters[-3:]
    assert event.properties == {
        "nan": {"$double": "NaN"},
        "raw": {"$binary": "AP8="},
        "text": "ß",
        "id": {"$uuid": "00000000-0000-0000-0000-000000000007"},
        "yes": True,
    }
    assert (sequence.body, value.body) == (b'[1,"a",null]', b'{"a":[{"$binary":"AA=="}]}')


def test_an_event_that_the_host_lost_has_the_same_values(tmp_path: Path) -> None:
    with working(tmp_path) as app:
        app.start(**AT_ONCE, WATCH_SCHEDULE="* * * * * *", GAP_GRACE_SECONDS="1")
        app.skip(1_000)
        letters = letters_of(app)
        assert app.lines("ingest") == []
    assert_values(letters, DELIVERED, 2)
    assert_delivered(letters)


def test_the_trigger_has_the_values_of_the_host_whole_in_its_letters(tmp_path: Path) -> None:
    with working(tmp_path) as app:
        app.start(**AT_ONCE)
        letters = letters_of(app)
        place = list(DELIVERED).index("NaN")
        shown = app.request(f"api/revealed/dead-letters/0/{place}")["properties"]
    assert_values(letters, DELIVERED, 2)
    assert_delivered(letters)
    assert shown == letters[place].properties == {"NaN": "NaN", "beside": 1}


def assert_delivered(letters: Sequence[KeptLetter]) -> None:
    """Check the bodies, and the event of the SDK, after the values that the trigger delivers."""
    assert bodies(letters, len(DELIVERED), len(DELIVERED_BODIES)) == [body for _, body in DELIVERED_BODIES.values()]
    nan = {"nan": "NaN", "raw": "AP8=", "text": "ß", "id": "00000000-0000-0000-0000-000000000007", "yes": True}
    assert letters[-1].properties == nan
    assert len(letters) == len(DELIVERED) + len(DELIVERED_BODIES) + 1
