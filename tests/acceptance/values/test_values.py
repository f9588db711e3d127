import json
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from azure.eventhub import EventData
from azure.eventhub.amqp import AmqpAnnotatedMessage

from local.event_hubs import codec as amqp
from local.event_hubs.codec import Described, Raw, Symbol, ULong, decode, encode
from tests.acceptance.started import AT_ONCE, OFTEN, App, publish_raw
from tests.fakes.kept import KeptLetter

DEEP: Any = "deep"
for _ in range(200):
    DEEP = [DEEP]
LONG, ULONG = 2**63 - 1, 2**64 - 1
AT = 1_767_225_600_120
PROPERTIES = 0x74
SECTIONS = {"data": 0x75, "sequence": 0x76, "value": 0x77}
URI = "com.microsoft:uri"
NOT_DELIVERED = object()  # by the trigger

# name: the value, the JSON of a worker's letter, and that of a trigger's
Values = tuple[Any, Any, Any]
VALUES: dict[str, Values] = {
    "null": (None, None, None),
    "true": (True, True, True),
    "ubyte": (amqp.UByte(255), 255, 255),
    "ushort": (amqp.UShort(65_535), 65_535, 65_535),
    "uint": (amqp.UInt(2**32 - 1), 2**32 - 1, 2**32 - 1),
    "ulong": (ULong(ULONG), {"$integer": str(ULONG)}, {"$integer": str(ULONG)}),
    "byte": (Raw(b"\x51\x80"), -128, -128),
    "short": (Raw(b"\x61\x80\x00"), -32_768, -32_768),
    "int": (amqp.Int(-(2**31)), -(2**31), -(2**31)),
    "long": (LONG, {"$integer": str(LONG)}, {"$integer": str(LONG)}),
    "float": (amqp.Float(1.1), 1.100000023841858, 1.1),
    "double": (1.1, 1.1, 1.1),
    "NaN": (float("nan"), {"$double": "NaN"}, "NaN"),
    "infinity": (float("inf"), {"$double": "Infinity"}, "Infinity"),
    "minus infinity": (amqp.Float("-inf"), {"$double": "-Infinity"}, "-Infinity"),
    "decimal32": (Raw(b"\x74\x31\x80\x00\x6e"), {"$decimal": "1.10"}, NOT_DELIVERED),
    "decimal64": (Raw(b"\x84\xb1\xc0" + b"\x00" * 5 + b"\x01"), {"$decimal": "-1"}, NOT_DELIVERED),
    "decimal128": (Raw(b"\x94\x30\x40" + b"\x00" * 13 + b"\x0a"), {"$decimal": "10"}, 10.0),
    "char": (Raw(b"\x73\x00\x01\xf4\x69"), "👩", NOT_DELIVERED),
    "timestamp": (amqp.Timestamp(AT), {"$timestamp": "2026-01-01T00:00:00.120000+00:00"}, "2026-01-01T00:00:00.12Z"),
    "late timestamp": (amqp.Timestamp(LONG), {"$integer": str(LONG)}, "9999-12-31T23:59:59.9999999"),
    "uuid": (Raw(b"\x98" + UUID(int=7).bytes), {"$uuid": str(UUID(int=7))}, str(UUID(int=7))),
    "binary": (b"\x00\xff", {"$binary": "AP8="}, "AP8="),
    "binary text": (b"text", {"$binary": "dGV4dA=="}, "dGV4dA=="),
    "string": ("ß\x00👩", "ß\x00👩", "ß\x00👩"),
    "symbol": (Symbol("symbol"), "symbol", "symbol"),
    "list": ([1, [b"\x00"]], [1, [{"$binary": "AA=="}]], [1, [[0]]]),
    "map": ({"a": {"b": 1}}, {"a": {"b": 1}}, NOT_DELIVERED),
    "like a tag": ({"$binary": "AA=="}, {"$map": [["$binary", "AA=="]]}, NOT_DELIVERED),
    "array": (amqp.Array(["a", "b"]), ["a", "b"], ["a", "b"]),
    "described": (Described(Symbol(URI), "https://a/"), {"$described": [URI, "https://a/"]}, "https://a/"),
    "described number": (Described(ULong(7), 1), {"$described": [7, 1]}, NOT_DELIVERED),
}


def section(code: int, value: Any) -> bytes:
    return encode(Described(ULong(code), value))


def _body(kind: str, *values: Any) -> list[bytes]:
    return [section(SECTIONS[kind], value) for value in values]


# the sections of a body, and the body of the event on both ways
BODIES: dict[str, tuple[list[bytes], bytes]] = {
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


def messages(values: Mapping[str, Values], bodies: Mapping[str, tuple[list[bytes], bytes]]) -> list[bytes]:
    properties = (section(PROPERTIES, {name: value, "beside": 1}) for name, (value, _, _) in values.items())
    data = section(SECTIONS["data"], b"poison")
    return [*(each + data for each in properties), *(b"".join(sections) for sections, _ in bodies.values())]


def letters_of(app: App, encoded: Sequence[bytes], *others: AmqpAnnotatedMessage) -> list[KeptLetter]:
    """Publish encoded events, and with the SDK one with every kind of property that it encodes, and others.

    Then publish one that is written, and return the letters once all are accounted for.
    """
    event = EventData(b"poison")
    event.properties = {"nan": float("nan"), "raw": b"\x00\xff", "text": "ß", "id": UUID(int=7), "yes": True}
    publish_raw(app.producer, encoded)
    app.producer.send_batch([event, *others], partition_id="0")
    app.published["0"] += len(encoded) + 1 + len(others)
    app.publish(1)
    app.until_all_accounted()
    return app.engine.letters()


def assert_values(letters: Sequence[KeptLetter], values: Mapping[str, Values], way: int) -> None:
    found = {name: letter.properties for name, letter in zip(values, letters, strict=False)}
    whole = {name: {name: each[way], "beside": 1} for name, each in values.items()}
    assert json.dumps(found, sort_keys=True) == json.dumps(whole, sort_keys=True)  # tells 1, 1.0 and true apart


def test_the_worker_has_every_value_whole_in_its_letters(app: App) -> None:
    app.start_worker(DEAD_LETTER_BASE_SECONDS="3600")
    deep = section(PROPERTIES, {"deep": DEEP}) + section(SECTIONS["data"], b"poison")
    of_the_sdk = (
        AmqpAnnotatedMessage(sequence_body=[[1, "a"], [None]]),
        AmqpAnnotatedMessage(value_body={"a": [b"\0"]}),
    )
    letters = letters_of(app, [*messages(VALUES, BODIES), deep], *of_the_sdk)
    assert len(letters) == len(VALUES) + len(BODIES) + 1 + 3
    assert_values(letters, VALUES, 1)
    assert [one.body for one in letters[len(VALUES) :][: len(BODIES)]] == [body for _, body in BODIES.values()]
    octets = b64decode(str(letters[-4].properties["$amqp"]))
    assert octets == encode({"deep": DEEP}) and decode(octets)
    event, sequence, value = letters[-3:]
    tagged = {"nan": {"$double": "NaN"}, "raw": {"$binary": "AP8="}, "id": {"$uuid": str(UUID(int=7))}}
    assert event.properties == {**tagged, "text": "ß", "yes": True}
    assert (sequence.body, value.body) == (b'[1,"a",null]', b'{"a":[{"$binary":"AA=="}]}')


def assert_delivered(letters: Sequence[KeptLetter]) -> None:
    assert_values(letters, DELIVERED, 2)
    assert [one.body for one in letters[len(DELIVERED) : -1]] == [body for _, body in DELIVERED_BODIES.values()]
    plain = {"nan": "NaN", "raw": "AP8=", "text": "ß", "id": str(UUID(int=7)), "yes": True}
    assert letters[-1].properties == plain
    assert len(letters) == len(DELIVERED) + len(DELIVERED_BODIES) + 1


def test_an_event_that_the_host_lost_has_the_values_that_the_trigger_delivers(app: App) -> None:
    app.start(**{**OFTEN, **AT_ONCE}, DEAD_LETTER_BASE_SECONDS="3600")
    app.skip(1_000)
    letters = letters_of(app, messages(DELIVERED, DELIVERED_BODIES))
    assert app.lines("ingest") == []
    assert_delivered(letters)


def test_the_trigger_has_the_values_of_the_host_whole_in_its_letters(app: App) -> None:
    app.start(**AT_ONCE, DEAD_LETTER_BASE_SECONDS="3600")
    letters = letters_of(app, messages(DELIVERED, DELIVERED_BODIES))
    assert_delivered(letters)
    place = list(DELIVERED).index("NaN")
    shown = app.request(f"api/revealed/dead-letters/0/{place}")["properties"]
    assert shown == letters[place].properties == {"NaN": "NaN", "beside": 1}
