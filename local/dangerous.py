"""The transform of a demo in chaos: home_security, with bodies that kill the process and rows that SQL refuses."""

import os
import sys
from collections.abc import Iterable

from core.model.events import Event
from core.model.rows import ReferenceKey, References, Row
from examples.home_security import transform as home_security
from examples.home_security.transform import Home, HomeAlert, SensorReading

__all__ = ["VERSION", "Home", "HomeAlert", "SensorReading", "references", "transform"]

VERSION = "home_security_in_chaos/1"
KILLING, REFUSED = b"!kill", b"!refuse"  # bodies begin with these
DEADLY = 86  # the exit code of a process that an event has killed
TOO_LARGE = 2**63  # for every column of whole numbers


def references(event: Event) -> Iterable[ReferenceKey]:
    """Return the home of a reading."""
    return () if event.body.startswith(b"!") else home_security.references(event)


def transform(event: Event, references: References) -> Iterable[Row]:
    """Return the rows of home_security; end the process for a killing body."""
    if event.body.startswith(KILLING):
        print(f"event {event.sequence_number} kills its process", file=sys.stderr, flush=True)
        os._exit(DEADLY)
    if event.body.startswith(REFUSED):
        return (SensorReading("home", "co-1", "carbon_monoxide", None, TOO_LARGE, event.enqueued_at),)
    return home_security.transform(event, references)
