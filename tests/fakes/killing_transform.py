"""A transform for tests that kills its process: the body is a word that says how. Any other body is one reading.

Where KILLS is `not`, an earlier version makes one reading of every body. Where it is `fails`, it raises an error for
the words that kill.

group      ends its process group        parent     in a child, ends its parent too
late       fails until the file DEADLY exists, then one reading          deadly     fails, then ends the process
"""

import ctypes
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from core.model.events import Event
from core.model.rows import References, Row
from examples.home_security.transform import SensorReading

KILLS = os.environ.get("KILLS", "")
VERSION = "killing/0" if KILLS else "killing/1"


def _fail() -> None:
    raise KeyError("an earlier version cannot read it")


def _kill_parent() -> None:
    """End the worker too, which is the parent of a child. The worker itself ends alone."""
    of_parent = Path(f"/proc/{os.getppid()}/oom_score_adj")
    if of_parent.exists() and Path("/proc/self/oom_score_adj").read_text() == "1000\n":
        os.kill(os.getppid(), signal.SIGKILL)
    os._exit(9)


def _wait() -> None:
    if not Path(os.environ["DEADLY"]).exists():
        raise KeyError("it is not armed")


def _kill_once_armed() -> None:
    _wait()
    os._exit(9)


def _loop() -> None:
    while True:
        pass


def _overflow() -> None:
    def deeper(place: int) -> list[object]:
        return [*map(deeper, (place,))]

    sys.setrecursionlimit(10**9)
    deeper(0)


def _join() -> None:
    thread = threading.Thread(target=threading.Event().wait)
    thread.start()
    thread.join()


WAYS: Mapping[bytes, Callable[[], object]] = {
    b"exit": lambda: os._exit(9),
    b"segfault": lambda: ctypes.string_at(0),
    b"killed": lambda: os.kill(os.getpid(), signal.SIGKILL),  # as the kernel does when memory runs out
    b"memory": lambda: bytearray(2**62),  # MemoryError
    b"sleep": lambda: time.sleep(10_000),
    b"regex": lambda: re.match(r"(a+)+$", "a" * 99 + "b"),  # it holds Python's lock for ages
    b"loop": _loop,
    b"overflow": _overflow,
    b"join": _join,
    b"leave": lambda: sys.exit(3),
    b"group": lambda: os.killpg(0, signal.SIGKILL),
    b"parent": _kill_parent,
    b"late": _wait,
    b"deadly": _kill_once_armed,
}


def transform(event: Event, references: References) -> Iterable[Row]:
    if event.body in WAYS and KILLS:
        _fail() if KILLS == "fails" else None
    else:
        WAYS.get(event.body, lambda: None)()
    return (SensorReading("home-1", "sensor", "quiet", None, event.sequence_number, event.enqueued_at),)
