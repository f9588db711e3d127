"""The patience of tests: how long a wait may last on this machine, as slow and as busy as it is now.

A wait ends with its condition. It fails when nothing has moved for so many seconds of an idle machine. A busy machine
has more of them, and it is measured when they have passed, so a load that came after the start of the tests counts.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

WORK = (sys.executable, "-I", "-S", "-c", "sum(range(5_000_000))")
IDLE = 0.07  # seconds that the work takes on an idle machine
FRESH = 10.0  # seconds for which a measurement holds
LOOK_EVERY, MOMENT = 1.0, 0.02  # seconds between two looks at what moves, and between two tries
TURNS = 10  # the limit of a wait in which something still moves, in deadlines

Found = TypeVar("Found")
_measured: list[tuple[float, float]] = []  # the time of the last measurement, and how slow the machine was


def _nothing() -> None:
    """Return the standing of a wait in which nothing can be seen to move."""


def allowed(seconds: float) -> float:
    """Return the time for what may take so many seconds on an idle machine.

    A slow machine is given twice what it needs more, because other processes may join.
    """
    began = time.monotonic()
    if not _measured or began - _measured[-1][0] >= FRESH:
        subprocess.run(WORK, check=True)
        ended_at = time.monotonic()
        _measured[:] = [(ended_at, max(1.0, (ended_at - began) / IDLE))]
    return seconds * (2 * _measured[-1][1] - 1)


class Patience:
    """The patience of one wait: it starts anew whenever something moves."""

    def __init__(self, seconds: float) -> None:
        self._seconds = self._allowed = seconds
        self._began = self._moved_at = self._looked_at = time.monotonic()
        self._standing: object = None

    def look(self, standing: Callable[[], object] = _nothing) -> None:
        """Fail when the standing, which is asked each second and told at the end, has been the same for too long."""
        now = time.monotonic()
        if now - self._looked_at >= LOOK_EVERY:
            self._looked_at, before, self._standing = now, self._standing, standing()
            if self._standing != before:
                self._moved_at = now
        if self._is_over(now):
            self._allowed = max(self._allowed, allowed(self._seconds))
            assert not self._is_over(now), f"nothing new in {self._allowed:.3g} s: {standing()}"

    def pause(self, standing: Callable[[], object] = _nothing, moment: float = MOMENT) -> None:
        self.look(standing)
        time.sleep(moment)

    def _is_over(self, now: float) -> bool:
        return now - self._moved_at > self._allowed or now - self._began > TURNS * self._allowed


def until(holds: Callable[[], Found], seconds: float, standing: Callable[[], object] = _nothing) -> Found:
    """Return what a condition found, as soon as it holds. Fail when the patience is over."""
    patience = Patience(seconds)
    while not (found := holds()):
        patience.pause(standing)
    return found


def ended(process: "subprocess.Popen[Any]", seconds: float) -> tuple[Any, Any]:
    """Return what a process wrote to its pipes until its end. Fail when the patience is over."""
    patience = Patience(seconds)
    while True:
        try:
            return process.communicate(timeout=10 * MOMENT)
        except subprocess.TimeoutExpired:
            patience.look()
