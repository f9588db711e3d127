"""Ctrl-C, SIGTERM and SIGHUP as a flag that is read where it is safe to stop."""

import signal
import threading
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(Exception):
    """A signal arrived; `signal_number` names it."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(signal_number).name}")
        self.signal_number = signal_number


class Interruption:
    """Raise a signal in the next `pause` and nowhere else, so that no step stops half-way."""

    def __init__(self) -> None:
        self._arrived = threading.Event()
        self._number = 0

    def listen(self) -> None:
        """Catch the signals from now on; for the main thread."""
        for number in SIGNALS:
            signal.signal(number, self._take)

    def pause(self, seconds: float) -> None:
        """Sleep; raise Interrupted as soon as a signal arrives."""
        if self._arrived.wait(seconds):
            raise Interrupted(self._number)

    def _take(self, number: int, _: FrameType | None) -> None:
        self._number = number
        self._arrived.set()
