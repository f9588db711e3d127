"""Events of the real trigger: their messages as the hub hands them out, and the values that it gave the function."""

import json
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from azure.eventhub import EventData
from azure.eventhub._pyamqp._decode import decode_payload

from core.model.events import Event
from core.remote.hub.sdk_patches import reader_over
from handlers.event_batches import to_batch
from local.event_hubs.codec import encode
from local.event_hubs.events import read_publication, stamp
from local.functions_host.sdk_messages import annotated
from tests.fakes.host_events import decode

_FIXTURES = Path(__file__).parents[1] / "fixtures"
_LARGEST = "body data 900,000"  # its bytes are not in the file
_NO_BYTES = {"1,000 props"}
_REFUSED = "refused by the emulator"
NUMBER, OFFSET, TIME = 7, 448, "2026-11-21T12:00:00.123"
_MILLISECONDS = 1_795_262_400_123
_CONTEXT = dict.fromkeys(("FullyQualifiedNamespace", "EventHubName", "ConsumerGroup", "PartitionId"), "x")
_read_message = annotated(reader_over(decode_payload))


@dataclass(frozen=True, slots=True)
class Published:
    """A message, and the properties and system properties of its event. None where they were not recorded."""

    name: str
    message: bytes
    fate: str
    body: bytes
    properties: dict[str, Any] | None
    system_properties: dict[str, Any] | None

    def event(self) -> Event:
        """Return the event that the function's adapter makes of what the real trigger gave."""
        assert self.system_properties is not None
        metadata = {
            "PartitionContext": _CONTEXT,
            "SequenceNumberArray": [self.system_properties["SequenceNumber"]],
            "OffsetStringArray": [self.system_properties["OffsetString"]],
            "PropertiesArray": [self.properties],
            "SystemPropertiesArray": [self.system_properties],
            "EnqueuedTimeUtcArray": [self.system_properties["EnqueuedTimeUtc"]],
        }
        (event,) = to_batch(decode(metadata, [self.body]), "invocation-1").events
        return event


def published() -> list[Published]:
    return [*_of_dotnet(), *_raw()]


def delivered() -> list[Published]:
    return [one for one in published() if one.properties is not None]


@dataclass(frozen=True, slots=True)
class Annotated:
    """A message as the hub hands it out, and the texts of its properties in the real host, or None for no event."""

    name: str
    message: bytes
    system_properties: dict[str, Any]
    properties: dict[str, Any]


def annotated_events() -> list[Annotated]:
    """Return the events of every form of system properties."""
    return [_annotated(one) for one in json.loads((_FIXTURES / "system_properties.json").read_text())["cases"]]


def _annotated(one: dict[str, Any]) -> Annotated:
    system = json.loads(one["system_properties"])
    (event,) = read_publication(bytes.fromhex(one["message_hex"]), 0).events
    at = datetime.fromisoformat(system["x-opt-enqueued-time"])
    stamped = stamp(event, system["SequenceNumber"], system["Offset"], round(at.timestamp() * 1000))
    return Annotated(one["case"], stamped.payload, system, json.loads(one["properties"]))


def received(message: bytes) -> EventData:
    """Return the event of a message of the hub, as the SDK reads it."""
    return EventData._from_message(_read_message(memoryview(message)))


def handed_out(message: bytes) -> bytes:
    (event,) = read_publication(message, 0).events
    return stamp(event, NUMBER, OFFSET, _MILLISECONDS).payload


def _of_dotnet() -> Iterator[Published]:
    for number, one in enumerate(_read("trigger_values.json")):
        name = f".net {number} {one['properties']['case']}"
        body = b64decode(one["body_base64"])
        yield Published(
            name, bytes.fromhex(one["message"]), "delivered", body, one["properties"], one["system_properties"]
        )


def _raw() -> Iterator[Published]:
    for one in _read("trigger_messages.json"):
        if one["name"] in _NO_BYTES or one["trigger"] == _REFUSED:
            continue
        message = _largest() if one["name"] == _LARGEST else bytes.fromhex(one["message"])
        found = one.get("system_properties")
        system = None if found is None else _complete(found)
        body = b"" if system is None else _body(one, message)
        yield Published(one["name"], handed_out(message), one["trigger"], body, one.get("properties"), system)


def _body(one: dict[str, Any], message: bytes) -> bytes:
    """Return the body that the trigger gave: the file has it as text, U+FFFD in place of wrong bytes."""
    text, size = one["body_text"], one["body_bytes"]
    body = message[-size:] if text is None or "\ufffd" in text else text.encode()
    assert len(body) == size and text in (None, body.decode("utf-8", "replace"))
    return body


def _largest() -> bytes:
    properties = b"\x00\x53\x74" + encode({"case": "x", "v": 1})
    return properties + b"\x00\x53\x75" + encode(bytes(900_000))


def _complete(found: dict[str, Any]) -> dict[str, Any]:
    """Return system properties with the stamps, in the order of the real trigger. The recording left them out."""
    own = {name: value for name, value in found.items() if name != "PartitionKey"}
    stamps = {
        "x-opt-sequence-number": NUMBER,
        "x-opt-offset": str(OFFSET),
        "x-opt-enqueued-time": TIME + "+00:00",
        "SequenceNumber": NUMBER,
        "Offset": OFFSET,
        "OffsetString": str(OFFSET),
        "PartitionKey": found["PartitionKey"],
        "EnqueuedTimeUtc": TIME,
    }
    return {**own, **stamps}


def _read(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((_FIXTURES / name).read_text(encoding="utf-8"))
    return found
