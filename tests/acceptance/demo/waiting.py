"""Wait for a condition, and fail when it does not come true in time."""

import threading
import time
from collections.abc import Callable

DEADLINE = 60.0  # seconds


def wait_until(holds: Callable[[], bool]) -> None:
    """Return as soon as it holds."""
    deadline = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < deadline, f"not so within {DEADLINE:g} s"
        threading.Event().wait(0.01)
