"""Tell the time and sleep. The clock is an argument, so that a test can move it."""

import asyncio
from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeVar

Result = TypeVar("Result")

LONGEST_SLEEP = timedelta(minutes=1)


class Clock(Protocol):
    """A source of time that can also wait."""

    def now(self) -> datetime:
        """Return the current instant, aware, in UTC."""

    async def sleep(self, delay: timedelta) -> None:
        """Return once `delay` has passed, or at once when it is not positive."""


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, delay: timedelta) -> None:
        await asyncio.sleep(max(0.0, delay.total_seconds()))


async def sleep_until(clock: Clock, due_at: datetime) -> None:
    """Return at `due_at`, even when the machine sleeps, or as soon as the system's clock is set back, because `due_at`
    may be of a clock that was ahead."""
    now = began_at = clock.now()
    while began_at <= now < due_at:
        await clock.sleep(min(due_at - now, LONGEST_SLEEP))
        now = clock.now()


async def unless(interruption: Awaitable[object], work: Awaitable[Result]) -> Result | None:
    """Return the result of `work`, or None when `interruption` ends first. Cancel the other and wait for its end."""
    working, interrupting = asyncio.ensure_future(work), asyncio.ensure_future(interruption)
    try:
        await asyncio.wait((working, interrupting), return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        interrupting.cancel()
        await asyncio.gather(working, interrupting, return_exceptions=True)
