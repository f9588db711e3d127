"""One poison event for each type of AMQP, over the SDK's own link, and the JSON that each way in makes of it."""

from typing import Any
from uuid import UUID

from azure.eventhub import EventData, EventHubProducerClient
from azure.eventhub.amqp import AmqpAnnotatedMessage

from local.event_hubs.codec import Array, Described, Float, Int, Raw, Symbol, Timestamp, UByte, UInt, ULong, UShort
from local.event_hubs.codec import encode as encoded

DEEP: Any = "deep"
for _ in range(200):
    DEEP = [DEEP]
LONG, ULONG = 2**63 - 1, 2**64 - 1
AT = 1_767_225_600_120
PROPERTIES = 0x74
SECTIONS = {"data": 0x75, "sequence": 0x76, "value": 0x77}
NO_DOTNET = object()  # .NET refuses the value; the host has null for all properties of the event

# name: the value, the JSON of a worker's letter, and that of a trigger's
VALUES: dict[str, tuple[Any, Any, Any]] = {
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
    "decimal32": (Raw(b"\x74\x31\x80\x00\x6e"), {"$decimal": "1.10"}, 1.1),
    "decimal64": (Raw(b"\x84\xb1\xc0" + b"\x00" * 5 + b"\x01"), {"$decimal": "-1"}, -1.0),
    "decimal128": (Raw(b"\x94\x30\x40" + b"\x00" * 13 + b"\x0a"), {"$decimal": "10"}, 10.0),
    "char": (Raw(b"\x73\x00\x01\xf4\x69"), "👩", "👩"),
    "timestamp": (Timestamp(AT), {"$timestamp": "2026-01-01T00:00:00.120000+00:00"}, "2026-01-01T00:00:00.12Z"),
    "late timestamp": (Timestamp(LONG), {"$integer": str(LONG)}, "9999-12-31T23:59:59.9999999"),
    "uuid": (Raw(b"\x98" + UUID(int=7).bytes), {"$uuid": str(UUID(int=7))}, str(UUID(int=7))),
    "binary": (b"\x00\xff", {"$binary": "AP8="}, "AP8="),
    "binary text": (b"text", {"$binary": "dGV4dA=="}, "dGV4dA=="),
    "string": ("ß\x00👩", "ß\x00👩", "ß\x00👩"),
    "symbol": (Symbol("symbol"), "symbol", "symbol"),
    "list": ([1, [b"\x00"]], [1, [{"$binary": "AA=="}]], [1, ["AA=="]]),
    "map": ({"a": {"b": 1}}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    "like a tag": ({"$binary": "AA=="}, {"$map": [["$binary", "AA=="]]}, {"$map": [["$binary", "AA=="]]}),
    "array": (Array(["a", "b"]), ["a", "b"], ["a", "b"]),
    "described": (Described(Symbol("com.microsoft:uri"), "https://a/"), None, "https://a/"),
    "described number": (Described(ULong(7), 1), {"$described": [7, 1]}, NO_DOTNET),
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
    "null": (_body("value", None), b"null"),
    "described": (_body("value", Described(Symbol("t"), 1)), b'{"$described":["t",1]}'),
}


def publish_every_type(producer: EventHubProducerClient) -> int:
    """Publish an event for each value and body to partition 0, and the deep one; return their number.

    The SDK cannot encode every type, so these messages come encoded into its batch.
    """
    batch: Any = producer.create_batch(partition_id="0")
    for name, (value, _, _) in VALUES.items():
        batch._message[5].append(section(PROPERTIES, {name: value, "beside": 1}) + section(0x75, b"poison"))
    for sections, _ in BODIES.values():
        batch._message[5].append(b"".join(sections))
    batch._message[5].append(section(PROPERTIES, {"deep": DEEP}) + section(0x75, b"poison"))
    batch._count = len(batch._message[5])
    producer.send_batch(batch)
    return len(VALUES) + len(BODIES) + 1


def publish_with_the_sdk(producer: EventHubProducerClient) -> int:
    """Publish the events that the SDK can encode by itself; return their number."""
    event = EventData(b"poison")
    event.properties = {"nan": float("nan"), "raw": b"\x00\xff", "text": "ß", "id": UUID(int=7), "yes": True}
    batch = producer.create_batch(partition_id="0")
    batch.add(event)
    batch.add(AmqpAnnotatedMessage(sequence_body=[[1, "a"], [None]]))
    batch.add(AmqpAnnotatedMessage(value_body={"a": [b"\x00"]}))
    producer.send_batch(batch)
    return 3
