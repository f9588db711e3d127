"""The patience of the hooks: two waits, each for a limited time.

`patiently` is for a refusal that Azure withdraws by itself: it asks less often, and the refusal says its time.
`wait_for` is for something that comes within seconds or minutes.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Protocol, TypeVar

from infra.hooks.errors import HookRefused

PAUSE = 15.0  # seconds between two attempts
ASK = 1.0  # seconds between two questions
EVERY = 15.0  # seconds between two lines of progress
RIGHTS = timedelta(minutes=10)  # a new role assignment is in force after minutes; Azure promises no time
Answer = TypeVar("Answer")


class Pending(Exception):
    """The reason to keep waiting."""


class NotYet(HookRefused):
    """A refusal that may pass by itself within a time. `remedy` is the action to take when it does not."""

    def __init__(self, fault: str, patience: timedelta, remedy: str) -> None:
        super().__init__(fault)
        self.patience = patience
        self.remedy = remedy


class Clock(Protocol):
    """The part of the module `time` that the hooks use."""

    def monotonic(self) -> float: ...

    def sleep(self, seconds: float, /) -> None: ...


def patiently(attempt: Callable[[], Answer], clock: Clock) -> Answer:
    """Return the answer of an attempt, and repeat the attempt while it raises NotYet. Print a line before each pause.

    Each kind of refusal has its own time. Raise HookRefused when that is over. Any other error passes at once.
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


def wait_for(goal: str, ask: Callable[[], Answer], seconds: float, clock: Clock) -> Answer:
    """Return the first answer. Ask again as long as `ask` raises Pending.

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
            clock.sleep(ASK)
