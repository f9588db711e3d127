"""The pauses between attempts to connect: 5 seconds, then twice as long after each failure, up to 60 seconds.

The source is "Troubleshoot transient connection errors in SQL Database", "Interval increase between retries"
(https://learn.microsoft.com/azure/azure-sql/database/troubleshoot-common-connectivity-issues): wait 5 seconds before
the first retry, because a shorter delay risks overwhelming the service; let the delay grow exponentially, up to 60
seconds. After a fault of a command, the page says, wait and open a new connection before the command is sent again.
"""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from core.errors import StoreUnavailable, StoreUnreachable

FIRST_RECONNECT, LONGEST_RECONNECT = 5.0, 60.0  # seconds
Opened = TypeVar("Opened")


class Reconnects:
    """Lets a process connect only after a pause since the last failure of any of its threads.

    A failure of the login or of the schema is no reason to pause: a person mends it. `monotonic` gives seconds.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._pause = 0.0
        self._until = 0.0
        self._why = ""

    def attempt(self, connect: Callable[[], Opened]) -> Opened:
        """Return a new connection. Raises StoreUnreachable, at once during a pause."""
        with self._lock:
            left = self._until - self._monotonic()
        if left > 0:
            raise StoreUnreachable(f"{self._why}; the next attempt follows in {left:.0f} s", left)
        try:
            opened = connect()
        except StoreUnavailable as fault:
            raise StoreUnreachable(str(fault), self._note_failure(str(fault))) from fault
        with self._lock:
            self._pause = self._until = 0.0
        return opened

    def _note_failure(self, why: str) -> float:
        """Return the pause; threads that fail together count once."""
        with self._lock:
            now = self._monotonic()
            if now >= self._until:
                self._pause = min(max(FIRST_RECONNECT, 2 * self._pause), LONGEST_RECONNECT)
                self._until, self._why = now + self._pause, why
            return self._until - now
