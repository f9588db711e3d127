"""The work of a worker: it receives and ingests batches, retries letters that are due, and checks for gaps."""

import asyncio
import logging
import os
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from core.app import Sources, open_core
from core.errors import BatchRefused, InfrastructureFault
from core.ingest.batch_log import BatchLog
from core.ingest.ingest import Ingestion, ingest_batch
from core.ingest.stalled_partitions import Healed, SilenceCheck, Unhealed
from core.letters.retry import Keeper, claim_due, retry_chunk, wait_for_due
from core.model.event_keys import keying
from core.model.events import EventBatch
from core.model.ports import Clock
from core.remote.hub.client import Sharing, check_access, open_consumer, receive
from core.remote.hub.events import to_event
from core.remote.hub.reader import RENEWED, SdkHubReader
from core.remote.telemetry.opening import open_telemetry
from core.settings import read_settings
from core.settle.partition_store import Partitions
from core.settle.watchdog import Watchdog
from core.store.connect import open_database
from core.store.database import store_clock
from core.transforms.loading import load_transform
from core.worker.health import Pulse, answering

log = logging.getLogger("hubledger.worker")
CLOCK = Clock(now=lambda: datetime.now(UTC), new_id=uuid.uuid4, chance=random.random)
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds: the trigger's retry policy has the same
CHECK_EVERY = 60.0  # seconds between two checks for gaps
LETTER_PAUSE = timedelta(seconds=5)  # for letters that are due but cannot be claimed: another keeper has them
LONGEST_WORK = timedelta(minutes=10)  # the least limit for one attempt at a batch: the trigger has the same


@dataclass(frozen=True, slots=True)
class Terms:
    """The options of a worker: the times of sharing, the address for its health, and the calls that cut it off."""

    interval: timedelta
    expiry: timedelta
    health: str | None
    cut_off: ExitStack = field(default_factory=ExitStack)


@dataclass(frozen=True, slots=True)
class Timing:
    """The clock of a process, whose time only the lines show, the seconds of one that never goes back, and a sleep."""

    clock: Clock = CLOCK
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


@dataclass(frozen=True, slots=True)
class Receiver:
    """Ingests batches and retries without end: an infrastructure fault holds the partition and loses nothing.

    A batch of a different hub is passed: its numbers are a gap, which is read back from the stream's hub.
    """

    ingestion: Ingestion
    batch_log: BatchLog
    timing: Timing = field(default_factory=Timing)
    over: Callable[[object], AbstractContextManager[object]] = nullcontext  # entered for each attempt

    async def take(self, batch: EventBatch) -> None:
        """Commit a batch, however long it takes. The loss of the partition cancels it, but never during a commit."""
        pause = FIRST_PAUSE
        while True:
            try:
                await _finished(asyncio.to_thread(self._ingest, batch))
            except InfrastructureFault as fault:
                facts = {"action": "ingest", "partition": str(batch.partition), "error": str(fault)}
                if isinstance(fault, BatchRefused):
                    log.error("batch passed; what the hub has of its numbers is read back", extra=facts)
                    return
                log.warning("batch not committed; will retry", extra={**facts, "count": batch.retries + 1})
                await self.timing.sleep(pause * (0.5 + self.timing.clock.chance() / 2))
                pause = min(2 * pause, LONGEST_PAUSE)
                batch = replace(batch, retries=batch.retries + 1)
            else:
                return

    def _ingest(self, batch: EventBatch) -> None:
        began = time.monotonic()
        with self.over(batch.partition):
            report = ingest_batch(batch, self.ingestion)
        self.batch_log.add(report, time.monotonic() - began)


async def _finished(work: Coroutine[Any, Any, None]) -> None:
    """Await work, even after a cancellation: its thread continues, and may be about to commit."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait([task])  # not shield, which logs a fault of its own from Python 3.14 on
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled() and (fault := task.exception()) is not None:
            log.warning("batch not committed; the next owner will retry", extra={"error": str(fault)})
        raise
    await task


async def work(terms: Terms) -> None:
    """Receive until cancelled. Raises HubledgerError when the settings, the store or the hub cannot work."""
    settings = read_settings(os.environ)
    watchdog = Watchdog(settings.transform_deadline)
    transform = load_transform(settings.transform, settings.rows_per_event, watchdog.over, settings.event_key)
    open_telemetry(os.environ)
    database = open_database(settings.store_connection, transform.row_classes)
    reader = SdkHubReader(settings, keying(to_event, transform.key_of), store_clock(database, CLOCK).now)
    with closing(watchdog), closing(database), closing(reader) as hub:
        await check_and_work(Sources(settings, database, hub, transform), terms)


async def check_and_work(sources: Sources[SdkHubReader], terms: Terms) -> None:
    """Work after the store and the hub have answered. At the end, no thread still uses the database or the hub."""
    settings, hub = sources.settings, sources.hub
    try:
        partitions = Partitions(sources.database, event_key=sources.transform.key_name)
        await asyncio.to_thread(partitions.open_stream, settings.stream)
        await asyncio.to_thread(check_access, settings)
        await asyncio.to_thread(hub.check_access)
        await work_stream(sources, terms, Timing())
    finally:  # the thread of a cancelled call continues
        await asyncio.get_running_loop().shutdown_default_executor()


async def work_stream(sources: Sources[SdkHubReader], terms: Terms, timing: Timing) -> None:
    """Receive from the hub into the database until cancelled, and release every partition at the end."""
    from core.worker.ownership import Ownerships, SqlCheckpointStore  # here, because it loads the heavy SDK

    settings, hub = sources.settings, sources.hub
    core = open_core(sources, timing.clock, leaving := ExitStack(), timing.monotonic)
    silence = SilenceCheck(core.without_memory(), settings.gap_grace)
    pulse = Pulse(max(LONGEST_WORK, settings.longest_work), timing.monotonic)
    owners = SqlCheckpointStore(Ownerships(sources.database, Partitions(sources.database)), beat=pulse.beat)
    client = open_consumer(settings, Sharing(owners, terms.interval, terms.expiry, hub.partition_ids))
    batch_log = BatchLog(settings.batch_lines, timing.clock.now)
    terms.cut_off.callback(batch_log.close)
    receiver = Receiver(core.ingestion, batch_log, timing, pulse.over)
    convert = keying(to_event, sources.transform.key_of)
    others = (
        keep_letters(core.retrying, settings.letter_look, timing.sleep),
        repeat(CHECK_EVERY, partial(check_gaps, silence), timing.sleep),
        repeat(RENEWED, partial(_follow_partitions, hub), timing.sleep),
    )
    async with answering(terms.health, pulse) as address:
        log.info("worker ready", extra={"action": "ready", "health": address})
        with leaving:
            try:
                await _beside(receive(client, receiver.take, _log_failure, convert), *others)
            finally:
                await end(client, batch_log, owners)


async def end(client: Any, batch_log: BatchLog, owners: Any) -> None:
    """Log the sums after the last batch, and release the partitions after the last claim, also when closing fails."""
    try:
        await client.close()
    finally:
        batch_log.close()
        try:
            await owners.release_all()
        except InfrastructureFault as fault:
            facts = {"action": "end", "error": str(fault)}
            log.warning("partitions not released; peers wait for --expiry", extra=facts)


async def keep_letters(
    keeper: Keeper,
    look: timedelta,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Retry due letters until cancelled. Never sleep longer than `look`, because new letters may be due sooner.

    The thread of a cancelled round finishes the round. If the thread dies, its claims end with their lease.
    """
    while True:
        pause = await asyncio.to_thread(keep_round, keeper, look)
        await sleep(pause.total_seconds())


def keep_round(keeper: Keeper, look: timedelta) -> timedelta:
    """Retry the letters that are due now, and return the time to sleep. After a fault, they are due again later."""
    try:
        if wait := wait_for_due(keeper, look):
            return wait
        chunks = claim_due(keeper)
        for chunk in chunks:
            report = retry_chunk(chunk, keeper, "worker")
            log.info("letters retried", extra={"action": "retry_letters", **report.facts()})
    except InfrastructureFault as fault:
        log.warning("dead-letter round failed; will retry", extra={"action": "retry_letters", "error": str(fault)})
        return look
    return timedelta() if chunks else min(look, LETTER_PAUSE)


async def repeat(seconds: float, work: Callable[[], None], sleep: Callable[[float], Awaitable[None]]) -> None:
    """Work in a thread after each pause of some seconds, until cancelled."""
    while True:
        await sleep(seconds)
        await _finished(asyncio.to_thread(work))


def _follow_partitions(hub: SdkHubReader) -> None:
    """Read the hub's partitions: the next balancing shares those that it got."""
    with suppress(InfrastructureFault):  # the known ones stay
        hub.partition_ids()


def check_gaps(silence: SilenceCheck) -> None:
    """Check all partitions once, and log each gap. A fault is logged, and the next check tries again.

    No batch shows that retention removed events after the last one read.
    """
    try:
        for checked in silence.run("worker"):
            if isinstance(checked, Healed):
                log.warning("gap healed", extra=checked.facts())
            elif isinstance(checked, Unhealed):
                log.warning("gap not healed", extra=checked.facts())
    except InfrastructureFault as fault:
        log.warning("gap check failed; will retry", extra={"action": "gap", "error": str(fault)})


async def _beside(receiving: Coroutine[Any, Any, None], *others: Coroutine[Any, Any, None]) -> None:
    """Run the other loops for as long as events are received. A bug in one ends all."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(other) for other in others]
        await receiving
        for task in tasks:
            task.cancel()


def _log_failure(partition_id: str | None, error: Exception) -> None:
    facts = {"action": "receive", "partition_id": partition_id, "error": f"{type(error).__name__}: {error}"}
    log.warning("receiving failed; the client will retry", extra=facts)
