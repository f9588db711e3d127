"""A transform for tests that treats its process badly: the body is a word that says how. Any other body is one reading.

It refers to one home, whose name is the body, so that a reading has that home's zone as its value.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

import msgspec

from core.errors import PoisonEvent
from core.model.events import Event
from core.model.rows import ReferenceKey, References, Row
from core.model.transforms import body_decoder
from examples.home_security.transform import Home, SensorReading

VERSION = "hostile/1"


def _print() -> None:
    for descriptor in (1, 2):
        os.write(descriptor, b"\x80garbage\n" * 20_000)
    print("more")


def _interrupt() -> None:
    raise KeyboardInterrupt


def _refuse() -> None:
    raise PoisonEvent("it is poison")


WAYS: Mapping[bytes, Callable[[], object]] = {
    b"print": _print,
    b"quiet exit": lambda: os._exit(0),
    b"leave": lambda: sys.exit(0),
    b"close": lambda: os.closerange(3, 256),
    b"thread": lambda: threading.Thread(target=threading.Event().wait).start(),
    b"signal": lambda: signal.raise_signal(signal.SIGINT),
    b"interrupt": _interrupt,
    b"terminate": lambda: os.kill(os.getpid(), signal.SIGTERM),
    b"poison": _refuse,
    b"late exit": lambda: threading.Timer(0.1, os._exit, (9,)).start(),
    b"key": lambda: dict[str, str]()["town"],
    b"slow": lambda: time.sleep(1),
}


class Counted(msgspec.Struct):
    a: int


counted = body_decoder(Counted)


class Text(str):
    """A text that cannot be sent to a different process."""

    def __reduce__(self) -> str:
        raise TypeError("this text stays here")


def references(event: Event) -> Iterable[ReferenceKey]:
    if event.body == b"dies early":
        os._exit(9)
    return [ReferenceKey(Home, (event.body.decode(),))]


def transform(event: Event, references: References) -> Iterable[Row]:
    """Treat the process as the body says, or make one reading, and a home that later events see."""
    WAYS.get(event.body, lambda: None)()
    name = event.body.decode()
    if name == "huge":
        name = "x" * 100_000_000
    if name == "threads":
        with ThreadPoolExecutor(8) as threads:
            found = threads.map(lambda each: references.find(Home, each), ["reading", "unknown"] * 50)
        name = "".join("." if (home is None) == bool(place % 2) else "!" for place, home in enumerate(found))
    if name == "unknown field":
        counted(b'{"a": 1, "coupon": 2}')
    if name == "stays":
        name = Text(name)
    if name == "many":
        return [Home(str(number), "UTC", True) for number in range(1_000)]
    if name == "new":
        return [Home("old", "Europe/Berlin", True)]
    if name == "missing":
        references.get(Home, "nowhere")
    if name == "asks oddly":
        references.find(Home, [])
    home = references.find(Home, name)
    zone = "none" if home is None else home.time_zone
    return (SensorReading(name, "sensor", zone, None, event.sequence_number, event.enqueued_at),)
