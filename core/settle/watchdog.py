"""The watchdog: end the process when a transform does not return, after naming the events at which it hangs.

Nothing else can: a thread cannot be stopped, and Python cannot even look while native code holds its lock, as a
catastrophic regular expression does. A thread checks once a second. It also resets an alarm of the C runtime, which
ends the process when that thread itself cannot run. The supervisor starts the process again, and the next attempt at
the events runs in a child.
"""

import faulthandler
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from core.model.events import Event, Partition

log = logging.getLogger("hubledger.watchdog")
LOOK = 1.0  # seconds between two checks
GRACE = 5.0  # seconds after the deadline until the alarm: the thread, which says more, comes first
LAST_WORDS = 10.0  # seconds until the alarm ends a process that cannot log its end
STDERR = 2
EXIT_STATUS = 70  # EX_SOFTWARE


def set_alarm(seconds: float) -> None:
    """Let the C runtime end the process after some seconds, with the traces of all threads."""
    faulthandler.dump_traceback_later(seconds, exit=True, file=STDERR)


def end_process(facts: dict[str, object]) -> None:
    """Log the events at which the transform hangs, show all threads, and end the process."""
    set_alarm(LAST_WORDS)
    where = f"{facts['partition']}, events {facts['first']} to {facts['last']}"
    line = f"the transform did not return within {facts['seconds']} s: {where}; the process ends\n"
    os.write(STDERR, line.encode())
    faulthandler.dump_traceback(file=STDERR, all_threads=True)
    log.critical("transform hangs; the process ends (TRANSFORM_DEADLINE_SECONDS)", extra=facts)
    time.sleep(LOOK)  # a host sends its log from a different thread
    os._exit(EXIT_STATUS)


class Watchdog:
    """Watches over all transforms of the process. `over` is a Watch. Close it with the app."""

    def __init__(
        self,
        deadline: timedelta,
        monotonic: Callable[[], float] = time.monotonic,
        end: Callable[[dict[str, object]], None] = end_process,
    ) -> None:
        self._deadline = deadline.total_seconds()
        self._monotonic, self._end = monotonic, end
        self._lock = threading.Lock()
        self._is_set = False
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()
        self._running: dict[object, tuple[float, Partition | None, Sequence[Event]]] = {}

    @contextmanager
    def over(self, of: Partition | None, events: Sequence[Event]) -> Iterator[None]:
        """Watch over the transform for as long as it works on these events. Set the alarm unless it is set."""
        run = object()
        self._running[run] = (self._monotonic(), of, events)
        try:
            with self._lock:
                if not self._is_set:
                    self._set()
                if self._thread is None:
                    self._thread = threading.Thread(target=self._look_often, name="watchdog", daemon=True)
                    self._thread.start()
            yield
        finally:
            self._running.pop(run, None)

    def look(self) -> None:
        """End the process when a run has lasted too long, else reset the alarm, or cancel it when nothing runs."""
        for begun_at, of, events in list(self._running.values()):
            if self._monotonic() - begun_at >= self._deadline:
                first, last = events[0].sequence_number, events[-1].sequence_number
                place = {"action": "hang", "partition": str(of) if of else None}
                self._end({**place, "first": first, "last": last, "seconds": self._deadline})
        with self._lock:
            if self._running:
                self._set()
            elif self._is_set:
                self._is_set = False
                faulthandler.cancel_dump_traceback_later()

    def close(self) -> None:
        """Stop watching."""
        self._closed.set()
        self._running.clear()
        self.look()

    def _set(self) -> None:
        self._is_set = True
        set_alarm(self._deadline + GRACE)

    def _look_often(self) -> None:
        while not self._closed.wait(LOOK):
            self.look()
