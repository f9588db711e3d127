"""Wait for something that comes within seconds or minutes, and print a line of progress now and then.

`patience.py` is for a refusal that Azure withdraws by itself: it asks less often, and the refusal says its time.
"""

from collections.abc import Callable
from typing import TypeVar

from infra.hooks.errors import HookRefused
from infra.hooks.patience import Clock

EVERY = 15.0  # seconds between two lines of progress
PAUSE = 1.0  # seconds between two questions
T = TypeVar("T")


class Pending(Exception):
    """The reason to keep waiting."""


def wait_for(goal: str, ask: Callable[[], T], seconds: float, clock: Clock) -> T:
    """Return the first answer; ask again as long as `ask` raises Pending.

    Raise HookRefused with the last reason once the seconds are over.
    """
    began = clock.monotonic()
    printed = -EVERY
    while True:
        try:
            return ask()
        except Pending as error:
            waited, reason = clock.monotonic() - began, " ".join(str(error).split())
            if waited >= seconds:
                raise HookRefused(f"waited {waited:.0f} s for {goal}: {reason}") from error
            if waited - printed >= EVERY:
                print(f"waiting for {goal} ({waited:.0f} s of {seconds:.0f}): {reason}", flush=True)
                printed = waited
            clock.sleep(PAUSE)
