"""The transforms of three deployments: each one corrects, breaks and changes rows of the one before it."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from core.errors import PoisonEvent
from core.model.events import Event
from core.model.rows import References, Row
from core.model.transforms import Transform
from examples.home_security.transform import Home, HomeAlert, SensorReading
from tests.fakes.faulty_database import Killed
from tests.fakes.plain_transform import PLAIN, transform


def first(event: Event, references: References) -> Iterable[Row]:
    """Do what the body says. `fixhome` waits for the next deployment."""
    if event.body.startswith(b"fixhome"):
        raise KeyError("a bug that the next deployment mends")
    return transform(event, references)


def second(event: Event, references: References) -> Iterable[Row]:
    """Correct the bugs, break some readings, and write more, fewer and different rows."""
    verb, *words = event.body.decode().split()
    if verb == "fixhome":
        return [Home(words[0], "Europe/Berlin", words[1] == "1")]
    if verb == "bug":
        return [SensorReading("mended", "sensor", "bug", None, event.sequence_number, event.enqueued_at)]
    if verb == "reading" and event.sequence_number % 5 == 3:
        raise PoisonEvent("a fifth of the readings")
    rows = list(transform(event, references))
    if verb == "double":
        return [row for row in rows if not isinstance(row, HomeAlert)]
    if verb == "look":
        return [*rows, HomeAlert("looked", "sensor", "look", 1, event.enqueued_at)]
    if verb == "quiet" and event.sequence_number % 2:
        return [SensorReading("loud", "sensor", "quiet", None, 1, event.enqueued_at)]
    return rows


def third(event: Event, references: References) -> Iterable[Row]:
    """Make some rows that every database refuses."""
    rows = list(second(event, references))
    if event.body.startswith(b"reading") and event.sequence_number % 7 == 1:
        return [replace(row, ppm=2**63) for row in rows if isinstance(row, SensorReading)]
    return rows


TRANSFORMS = [
    replace(PLAIN, version="plain/1", rows_of=first),
    replace(PLAIN, version="plain/2", rows_of=second),
    replace(PLAIN, version="plain/3", rows_of=third),
]


def deadly(deployed: Transform, dies: Callable[[Event], bool]) -> Transform:
    """Return the transform with `kill N`: it ends the process while `dies`."""

    def rows_of(event: Event, references: References) -> Iterable[Row]:
        if not event.body.startswith(b"kill"):
            return deployed.rows_of(event, references)
        if dies(event):
            raise Killed
        return [SensorReading("survivor", "sensor", "kill", None, event.sequence_number, event.enqueued_at)]

    return replace(deployed, rows_of=rows_of)
