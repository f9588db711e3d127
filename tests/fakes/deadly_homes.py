"""The room of homes under a version that kills: event 3 ends its process, and event 9 hangs."""

import os
import time
from collections.abc import Iterable

from core.model.events import Event
from core.model.rows import ReferenceKey, References, Row
from examples.home_security import transform as homes
from examples.home_security.transform import Home, HomeAlert, SensorReading

VERSION = "deadly/1"
ROWS = (Home, HomeAlert, SensorReading)


def references(event: Event) -> Iterable[ReferenceKey]:
    return homes.references(event)


def transform(event: Event, references: References) -> Iterable[Row]:
    if event.sequence_number == 3:
        os._exit(9)
    if event.sequence_number == 9:
        time.sleep(10_000)
    return homes.transform(event, references)
