"""The watchdog: end the process when a transform does not return, after naming the events at which it hangs.

Nothing else can: a thread cannot be stopped, and Python cannot even look while native code holds its lock, as a
catastrophic regular expression does. A thread checks once a second. It also resets an alarm of the C runtime, which
ends the process when that thread itself cannot run. The supervisor starts the process again, and the journal finds the
event.
"""

import faulthandler
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from core.model.events import Event, Partition

log = logging.getLogger("hubledger.watchdog")
LOOK = 1.0  # seconds between two checks
GRACE = 5.0  # seconds after the deadline until the alarm: the thread, which says more, comes first
LAST_WORDS = 10.0  # seconds until the alarm ends a process that cannot log its end
STDERR = 2
EXIT_STATUS = 70  # EX_SOFTWARE


@dataclass(eq=False, slots=True)
class WatchedRun:
    """One call of a transform for some events, on record in the watchdog until it ends."""

    partition: Partition | None
    events: Sequence[Event]
    begun_at: float

    def facts(self, deadline: float) -> dict[str, object]:
        """Return the fields of the last log line."""
        numbers = [event.sequence_number for event in self.events]
        place = str(self.partition) if self.partition else None
        return {"action": "hang", "partition": place, "first": numbers[0], "last": numbers[-1], "seconds": deadline}


@dataclass(frozen=True, slots=True)
class Alarm:
    """The clock, the alarm of the C runtime, the thread that checks, and the end of the process."""

    monotonic: Callable[[], float]
    set: Callable[[float], None]
    cancel: Callable[[], None]
    look_often: Callable[[Callable[[], bool]], None]
    end: Callable[[dict[str, object]], None]


class Watchdog:
    """Watches over all transforms of the process. `over` is a Watch. Close it with the app."""

    def __init__(self, deadline: timedelta, alarm: "Alarm | None" = None) -> None:
        self._deadline = deadline.total_seconds()
        self._alarm = alarm or SYSTEM
        self._lock = threading.Lock()
        self._is_set = False
        self._looks = False
        self._is_closed = False
        self.running: dict[WatchedRun, None] = {}

    @contextmanager
    def over(self, of: Partition | None, events: Sequence[Event]) -> Iterator[None]:
        """Watch over the transform for as long as it works on these events. Set the alarm unless it is set."""
        run = WatchedRun(of, events, self._alarm.monotonic())
        self.running[run] = None
        try:
            with self._lock:
                if not self._is_set:
                    self._set()
                if not self._looks:
                    self._looks = True
                    self._alarm.look_often(self.look)
            yield
        finally:
            self.running.pop(run, None)

    def look(self) -> bool:
        """End the process when a run has lasted too long, else reset the alarm. Return False once closed."""
        now = self._alarm.monotonic()
        for run in list(self.running):
            if now - run.begun_at >= self._deadline:
                self._alarm.end(run.facts(self._deadline))
        with self._lock:
            if self.running and not self._is_closed:
                self._set()
            elif self._is_set:
                self._is_set = False
                self._alarm.cancel()
            return not self._is_closed

    def close(self) -> None:
        """Stop watching."""
        self._is_closed = True
        self.running.clear()
        self.look()

    def _set(self) -> None:
        self._is_set = True
        self._alarm.set(self._deadline + GRACE)


def _set_alarm(seconds: float) -> None:
    faulthandler.dump_traceback_later(seconds, exit=True, file=STDERR)


def _look_often(look: Callable[[], bool]) -> None:
    def loop() -> None:
        while look():
            time.sleep(LOOK)

    threading.Thread(target=loop, name="watchdog", daemon=True).start()


def _end(facts: dict[str, object]) -> None:
    """Log the events at which the transform hangs, show all threads, and end the process."""
    _set_alarm(LAST_WORDS)
    where = f"{facts['partition']}, events {facts['first']} to {facts['last']}"
    line = f"the transform did not return within {facts['seconds']} s: {where}; the process ends\n"
    os.write(STDERR, line.encode())
    faulthandler.dump_traceback(file=STDERR, all_threads=True)
    log.critical("transform hangs; the process ends (TRANSFORM_DEADLINE_SECONDS)", extra=facts)
    time.sleep(LOOK)  # a host sends its log from a different thread
    os._exit(EXIT_STATUS)


SYSTEM = Alarm(time.monotonic, _set_alarm, faulthandler.cancel_dump_traceback_later, _look_often, _end)
