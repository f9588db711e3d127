"""Events as an IoT Hub sends them, and the business of homes in which each home is a device."""

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from core.errors import PoisonEvent
from core.model.events import Event
from core.model.rows import References, Row
from examples.home_security import transform as home_security
from examples.home_security.transform import Home, HomeAlert, SensorReading, references

__all__ = ["VERSION", "Home", "HomeAlert", "SensorReading", "references", "transform"]

VERSION = "home_security_of_devices/1"
DEVICE, SENT_AT = "iothub-connection-device-id", "iothub-enqueuedtime"
EVENT_KEY = f"system:{DEVICE}"
PROPERTIES = {"model": "hub-2", "site": "north"}  # of each device, as application properties
_FIXED = {
    b"iothub-connection-auth-method": '{"scope":"device","type":"sas","issuer":"iothub","acceptingIpFilterRule":null}',
    b"iothub-connection-auth-generation-id": "638000000000000000",
    b"iothub-message-source": "Telemetry",
}


def of_device(device: str | None) -> tuple[dict[bytes, Any], dict[str, Any]]:
    """Return the annotations and application properties of an event that a device sends now. It has no partition key.

    The names are symbols and the time is a timestamp of AMQP, as in tests/fixtures/system_properties.json.
    """
    sent_at = datetime.fromtimestamp(time.time_ns() // 1_000_000 / 1_000, UTC)
    return {DEVICE.encode(): device, **_FIXED, SENT_AT.encode(): sent_at}, PROPERTIES


def transform(event: Event, references: References) -> Iterable[Row]:
    """Return the rows of home_security. An event that does not come from the device of its home is poison."""
    rows, system = tuple(home_security.transform(event, references)), event.system_properties
    if any(row.home_id != system.get(DEVICE) for row in rows if isinstance(row, SensorReading | HomeAlert | Home)):
        raise PoisonEvent(f"device {system.get(DEVICE)} sent an event of a different home")
    if not isinstance(system.get(SENT_AT), datetime) or event.properties != PROPERTIES:
        raise PoisonEvent("the event lacks its time at the IoT Hub or the properties of its device")
    return rows
