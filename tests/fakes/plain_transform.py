"""A transform for tests: the body is a few words that say what becomes of the event.

reading HOME      one reading            double HOME       a reading and an alert
home HOME 0|1     a home, armed or not   look HOME         a reading that says whether the home is armed
quiet             nothing                poison, bug       raises PoisonEvent, KeyError
"""

from collections.abc import Iterable

from core.errors import PoisonEvent
from core.events import Event
from core.rows import ReferenceKey, References, Row
from core.transforms import Transform
from core.transforms.home_security import Home, HomeAlert, SensorReading

VERSION = "plain/1"


def transform(event: Event, references: References) -> Iterable[Row]:
    """Do what the body says."""
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
    armed = "" if verb != "look" else str(references.get(Home, words[0]).armed)
    yield SensorReading(words[0], f"sensor{armed}", verb, None, event.sequence_number, event.enqueued_at)
    if verb == "double":
        yield HomeAlert(words[0], "sensor", verb, event.sequence_number, event.enqueued_at)


def references(event: Event) -> Iterable[ReferenceKey]:
    """The home of a look."""
    verb, *words = event.body.decode().split()
    return [ReferenceKey(Home, (words[0],))] if verb == "look" else []


PLAIN = Transform(VERSION, transform, references)
