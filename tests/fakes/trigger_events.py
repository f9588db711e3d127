"""Messages that were published to the real trigger, and the values that it gave the function."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from azure.eventhub import EventData
from azure.eventhub._pyamqp._decode import decode_payload

from core.remote.hub.wire import reader_over
from local.event_hubs.events import read_publication, stamp

_FIXTURE = Path(__file__).parents[1] / "fixtures" / "trigger_events.json"
_read_message = reader_over(decode_payload)

# .NET's own writer of decimals has a fault, which its reader undoes; a map in a list is an object of .NET's library
DIFFERENT = {"prop list with map", ".net floatmin"} | {
    f".net decimal{one}" for one in ("", "big", "neg", "28", "int", "1e15", "1e16")
}


@dataclass(frozen=True, slots=True)
class Published:
    """A message, and the properties and further system properties of its event; None: it was not delivered."""

    name: str
    message: bytes
    properties: dict[str, Any] | None
    annotations: dict[str, Any] | None


def published() -> list[Published]:
    found = json.loads(_FIXTURE.read_text(encoding="utf-8"))
    return [
        Published(one["name"], bytes.fromhex(one["message"]), one.get("properties"), one.get("annotations"))
        for one in found
    ]


def received(message: bytes) -> EventData:
    """Return the event of a message, as the SDK reads it from the emulator."""
    (event,) = read_publication(message, 0).events
    payload = stamp(event, 7, 448, 1_795_262_400_123).payload
    return EventData._from_message(_read_message(memoryview(payload)))
