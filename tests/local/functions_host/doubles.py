"""Small stand-ins: a clock moved by hand, a worker of one coroutine, a hub in memory, and waiting with a deadline."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from local.functions_host.event_source import END, START, HubEvent, StartAt
from local.functions_host.function import FunctionDescription
from local.functions_host.invoker import Invocation, InvocationResult
from tests.patience import Patience

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
DEADLINE_S = 10.0


async def eventually(holds: Callable[[], object], deadline_s: float = DEADLINE_S) -> None:
    """Return once `holds()` is true. Fail after the deadline, which is of an idle machine."""
    patience = Patience(deadline_s)
    while not holds():
        patience.look()
        await asyncio.sleep(0.002)


class ManualClock:
    """Time that passes only by `advance`."""

    def __init__(self, now: datetime = NOON) -> None:
        self._now = now
        self._sleepers: list[tuple[datetime, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return self._now

    async def sleep(self, delay: timedelta) -> None:
        if delay <= timedelta(0):
            await asyncio.sleep(0)
            return
        sleeper = (self._now + delay, asyncio.get_running_loop().create_future())
        self._sleepers.append(sleeper)
        try:
            await sleeper[1]
        finally:
            self._sleepers.remove(sleeper)

    def pass_time(self, delay: timedelta) -> None:
        """Let time pass without waking a sleeper."""
        self._now += delay

    async def advance(self, delay: timedelta) -> None:
        """Let time pass and wake those who are due."""
        self._now += delay
        for due_at, sleeper in self._sleepers:
            if due_at <= self._now and not sleeper.done():
                sleeper.set_result(None)
        await asyncio.sleep(0)

    def wake(self) -> None:
        for _, sleeper in self._sleepers:
            if not sleeper.done():
                sleeper.set_result(None)

    def is_somebody_due_within(self, delay: timedelta) -> bool:
        return any(due_at - self._now <= delay for due_at, _ in self._sleepers)

    async def next_sleep(self) -> timedelta:
        await eventually(lambda: self._sleepers)
        return min(due_at for due_at, _ in self._sleepers) - self._now


class ScriptedWorker:
    """Answers each invocation by `answer`. `invocations` holds all of them."""

    def __init__(self, answer: Callable[[Invocation], Awaitable[InvocationResult]]) -> None:
        self._answer = answer
        self.invocations: list[Invocation] = []

    async def index(self, directory: Path) -> Sequence[FunctionDescription]:
        return ()

    async def invoke(self, invocation: Invocation) -> InvocationResult:
        self.invocations.append(invocation)
        return await self._answer(invocation)

    async def close(self) -> None: ...


def event(number: int, body: bytes | None = None, key: str | None = None) -> HubEvent:
    text = f"event {number}".encode() if body is None else body
    return HubEvent(text, number, str(number * 64), NOON + timedelta(seconds=number), key)


class MemoryHub:
    """An EventSource whose partitions are lists. `opened` holds the start of each stream.

    It returns its partitions while `answers` is set, as it is from the beginning.
    """

    def __init__(self, *partition_ids: str) -> None:
        self.partitions: dict[str, list[HubEvent]] = {each: [] for each in partition_ids or ("0",)}
        self.opened: list[tuple[str, StartAt]] = []
        self.closed = False
        self.answers = asyncio.Event()
        self.answers.set()
        self._arrived = asyncio.Condition()

    async def send(self, partition_id: str, *bodies: bytes) -> None:
        async with self._arrived:
            log = self.partitions[partition_id]
            for body in bodies:
                log.append(event(len(log), body))
            self._arrived.notify_all()

    async def partition_ids(self) -> Sequence[str]:
        await self.answers.wait()
        return tuple(self.partitions)

    async def open(self, partition_id: str, start: StartAt) -> "MemoryStream":
        self.opened.append((partition_id, start))
        return MemoryStream(self.partitions[partition_id], start, self._arrived)

    async def close(self) -> None:
        self.closed = True


class MemoryStream:
    def __init__(self, log: list[HubEvent], start: StartAt, arrived: asyncio.Condition) -> None:
        self._log = log
        self._arrived = arrived
        self._next = _index_after(log, start)

    async def read(self, limit: int) -> Sequence[HubEvent]:
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self._log) > self._next)
            events = self._log[self._next : self._next + limit]
            self._next += len(events)
            return events

    async def close(self) -> None: ...


def _index_after(log: list[HubEvent], start: StartAt) -> int:
    if start == START:
        return 0
    if start == END:
        return len(log)
    return next(index for index, one in enumerate(log) if one.offset == start.offset) + 1
