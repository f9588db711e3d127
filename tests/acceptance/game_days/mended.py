"""The next deployment of tests.fakes.plain_transform: whatever failed there is one reading here."""

from collections.abc import Iterable

from core.model.events import Event
from core.model.rows import References, Row
from examples.home_security.transform import Home, HomeAlert, SensorReading

VERSION = "mended/2"
ROW_CLASSES = (Home, SensorReading, HomeAlert)


def transform(event: Event, references: References) -> Iterable[Row]:
    return (SensorReading("home-1", "sensor", "mended", None, event.sequence_number, event.enqueued_at),)
