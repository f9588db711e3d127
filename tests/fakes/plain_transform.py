"""A transform for tests: the body is a few words that name the outcome of the event.

reading HOME      one reading            double HOME       a reading and an alert
home HOME 0|1     a home, armed or not   look HOME         a reading that says whether the home is armed
quiet             nothing                poison, bug       raises PoisonEvent, KeyError
huge HOME         a reading, nowhere HOME a home: the database refuses either
"""

from collections.abc import Iterable

from core.errors import PoisonEvent, RowsRefused
from core.model.events import Event
from core.model.rows import ReferenceKey, References, Row
from core.model.transforms import Transform
from examples.home_security.transform import Home, HomeAlert, SensorReading

VERSION = "plain/1"


def transform(event: Event, references: References) -> Iterable[Row]:
    verb, *words = event.body.decode().split()
    if verb == "quiet":
        return
    if verb == "poison":
        raise PoisonEvent("the body says poison")
    if verb == "bug":
        raise KeyError("bug")
    if verb == "home":
        yield Home(words[0], "Europe/Berlin", words[1] == "1")
        return
    if verb == "nowhere":
        yield Home(words[0], None, True)  # type: ignore[arg-type]
        return
    if verb == "huge":
        yield SensorReading(words[0], "sensor", verb, None, 2**63, event.enqueued_at)
        return
    armed = "" if verb != "look" else str(references.get(Home, words[0]).armed)
    yield SensorReading(words[0], f"sensor{armed}", verb, None, event.sequence_number, event.enqueued_at)
    if verb == "double":
        yield HomeAlert(words[0], "sensor", verb, event.sequence_number, event.enqueued_at)


def references(event: Event) -> Iterable[ReferenceKey]:
    verb, *words = event.body.decode().split()
    return [ReferenceKey(Home, (words[0],))] if verb == "look" else []


def _as_a_database_takes_it(event: Event, references: References) -> Iterable[Row]:
    if event.body.startswith((b"huge", b"nowhere")):
        raise RowsRefused("no database takes this")
    return transform(event, references)


ROW_CLASSES = (Home, SensorReading, HomeAlert)
PLAIN = Transform(VERSION, transform, references, ROW_CLASSES)
STANDING = Transform(VERSION, _as_a_database_takes_it, references, ROW_CLASSES)  # with what a database would say
