"""Ctrl-C and SIGTERM as a flag, which is looked at where it is safe to stop."""

import signal
import threading
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(Exception):
    """Somebody asked to stop; `signal_number` says how."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(signal_number).name}")
        self.signal_number = signal_number


class Interruption:
    """Nothing is torn apart in the middle: a signal comes out of the next `pause`, and of no other place."""

    def __init__(self) -> None:
        self._arrived = threading.Event()
        self._number = 0

    def listen(self) -> None:
        """Take the signals from now on; for the main thread."""
        for number in SIGNALS:
            signal.signal(number, self._take)

    def pause(self, seconds: float) -> None:
        """Sleep, or raise Interrupted as soon as it is known."""
        if self._arrived.wait(seconds):
            raise Interrupted(self._number)

    def _take(self, number: int, _: FrameType | None) -> None:
        self._number = number
        self._arrived.set()
