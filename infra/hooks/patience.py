"""The patience of the hooks: a refusal that Azure withdraws by itself is tried again, for a limited time."""

from collections.abc import Callable
from datetime import timedelta
from typing import Protocol, TypeVar

from infra.hooks.errors import HookRefused

PAUSE = 15.0  # seconds
RIGHTS = timedelta(minutes=10)  # a new role assignment is in force after minutes; Azure promises no time
Answer = TypeVar("Answer")


class NotYet(HookRefused):
    """A refusal that may pass by itself within a time; `remedy` is the action to take when it does not."""

    def __init__(self, fault: str, patience: timedelta, remedy: str) -> None:
        super().__init__(fault)
        self.patience = patience
        self.remedy = remedy


class Clock(Protocol):
    """The part of the module `time` that the hooks use."""

    def monotonic(self) -> float: ...

    def sleep(self, seconds: float, /) -> None: ...


def patiently(attempt: Callable[[], Answer], clock: Clock) -> Answer:
    """Return the answer of an attempt, and repeat the attempt while it raises NotYet; print a line before each pause.

    Each kind of refusal has its own time. Raise HookRefused when that is over; any other error passes at once.
    """
    began: dict[timedelta, float] = {}
    while True:
        try:
            return attempt()
        except NotYet as refusal:
            now = clock.monotonic()
            left = refusal.patience.total_seconds() - (now - began.setdefault(refusal.patience, now))
            if left <= 0:
                raise HookRefused(f"{refusal}. This did not pass in {refusal.patience}: {refusal.remedy}") from refusal
            print(f"{refusal}; trying again, for {timedelta(seconds=round(left))} at most", flush=True)
            clock.sleep(min(PAUSE, left))
