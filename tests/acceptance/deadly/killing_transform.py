"""The plain transform, with letters that wait for a file: then some are resolved, and one ends its process.

late HOME     fails until the file DEADLY exists, then one reading          deadly     fails, then ends the process
"""

import os
from collections.abc import Iterable
from pathlib import Path

from core.model.events import Event
from core.model.rows import References, Row
from core.transforms.home_security import SensorReading
from tests.fakes import plain_transform

VERSION = "killing/1"
ROW_CLASSES = plain_transform.ROW_CLASSES


def transform(event: Event, references: References) -> Iterable[Row]:
    """Do what the body says."""
    verb, *words = event.body.decode().split()
    if verb not in ("late", "deadly"):
        yield from plain_transform.transform(event, references)
        return
    if not Path(os.environ["DEADLY"]).exists():
        raise KeyError(verb)
    if verb == "deadly":
        os._exit(9)
    yield SensorReading(words[0], "sensor", verb, None, event.sequence_number, event.enqueued_at)
