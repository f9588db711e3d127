"""`python -m core.worker`: ingest events without the Functions host, sharing partitions with its peers.

The worker also retries dead letters when they are due, and checks for gaps. It logs one line of JSON for each batch on
stdout. After SIGTERM or Ctrl-C, it finishes the current batch and releases its partitions.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import os
import random
import signal
import sys
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from core.errors import HubledgerError, InfrastructureFault
from core.ingest.gaps import Healing, gap_facts
from core.ingest.incarnation import HubVerification
from core.ingest.ingest import Means, ingest_batch, report_facts
from core.ingest.journal import StoredJournal
from core.ingest.silence import Healed, SilenceCheck
from core.letters.port import Keeper
from core.letters.retry import claim_due, next_due_at, retry_chunk
from core.model.clock import Clock
from core.model.events import EventBatch
from core.remote.hub.client import check_access
from core.remote.hub.consumer import Sharing, open_consumer, receive
from core.remote.hub.reader import SdkHubReader
from core.settings import read_settings
from core.store.attempts import Attempts
from core.store.connect import open_database
from core.store.database import PatientDatabase
from core.store.letters import Letters
from core.store.memory import Memory
from core.store.partitions import Partitions
from core.transforms import load_transform
from core.transforms.watchdog import Watchdog

log = logging.getLogger("hubledger.worker")
CLOCK = Clock(now=lambda: datetime.now(UTC), new_id=uuid.uuid4, chance=random.random)
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds: the trigger's retry policy has the same
CHECK_EVERY = 60.0  # seconds between two checks for gaps
LETTER_PAUSE = timedelta(seconds=5)  # for letters that are due but cannot be claimed: another keeper has them
LONGEST_SPAN = 3600  # seconds: the limit of --interval and --expiry


@dataclass(frozen=True, slots=True)
class Pausing:
    """Pauses after a failed batch: how to sleep, in seconds, and chance (0 to 1)."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    chance: Callable[[], float] = random.random


@dataclass(frozen=True, slots=True)
class Ingestion:
    """Ingests batches and retries without end: an infrastructure fault holds the partition and loses nothing."""

    means: Means
    pausing: Pausing = field(default_factory=Pausing)

    async def take(self, batch: EventBatch) -> None:
        """Commit a batch, however long it takes. The loss of the partition cancels it, but never during a commit."""
        pause = FIRST_PAUSE
        while True:
            try:
                await _finished(asyncio.to_thread(self._ingest, batch))
            except InfrastructureFault as fault:
                facts = {"action": "ingest", "partition": str(batch.partition), "error": str(fault)}
                log.warning("batch not committed; will retry", extra={**facts, "count": batch.retries + 1})
                await self.pausing.sleep(pause * (0.5 + self.pausing.chance() / 2))
                pause = min(2 * pause, LONGEST_PAUSE)
                batch = replace(batch, retries=batch.retries + 1)
            else:
                return

    def _ingest(self, batch: EventBatch) -> None:
        report = ingest_batch(batch, self.means)
        for gap in report.gaps:
            log.warning("gap healed", extra=gap_facts(batch.partition, gap, report.healed, report.absent))
        log.info("batch ingested", extra=report_facts(report))


async def _finished(work: Coroutine[Any, Any, None]) -> None:
    """Await work, even after a cancellation: its thread continues, and may be about to commit."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled() and (fault := task.exception()) is not None:
            log.warning("batch not committed; the next owner will retry", extra={"error": str(fault)})
        raise


async def work(sharing_times: tuple[timedelta, timedelta]) -> None:
    """Receive until a signal comes. Raises HubledgerError when the settings, the store or the hub cannot work."""
    from core.store.ownership import Ownerships, SqlCheckpointStore  # here, because it loads the heavy SDK

    settings = read_settings(os.environ)
    watchdog = Watchdog(settings.transform_deadline)
    transform = load_transform(settings.transform, settings.rows_per_event, watchdog.over)
    with (
        closing(watchdog),
        closing(open_database(settings, transform.row_classes)) as database,
        closing(SdkHubReader(settings)) as hub,
    ):
        await asyncio.to_thread(Partitions(database).open_stream, settings.stream)  # reports faults of the store now
        await asyncio.to_thread(check_access, settings)
        await asyncio.to_thread(hub.check_access)
        healing = Healing(hub, settings.anchoring, settings.heal_deadline)
        patient = PatientDatabase(database, settings.store_patience)
        store = Letters(patient, Memory(settings.reference_memory))
        journal = StoredJournal(Attempts(patient), CLOCK, threading.Lock(), _log_death)
        means = Means(store, transform, CLOCK, healing, settings.letters, settings.fuse, _verification(hub), journal)
        fresh = replace(means, store=Partitions(patient), incarnations=_verification(hub))
        silence = SilenceCheck(fresh, settings.gap_grace)
        keeper = Keeper(settings.stream, store, transform, hub.find_event, CLOCK, settings.letters)
        client = open_consumer(settings, Sharing(SqlCheckpointStore(Ownerships(database)), *sharing_times))
        log.info("worker ready", extra={"action": "ready"})
        others = (keep_letters(keeper, settings.letter_look), _check_for_gaps(silence))
        try:
            await _until_signal(_beside(receive(client, Ingestion(means).take, _log_failure), *others))
        finally:
            await client.close()
    log.info("worker ended", extra={"action": "ended"})


def _verification(hub: SdkHubReader) -> HubVerification:
    return HubVerification(hub, time.monotonic, threading.RLock())


async def keep_letters(
    keeper: Keeper, look: timedelta, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> None:
    """Retry due letters until cancelled; never sleep longer than `look`, because new letters may be due sooner.

    The thread of a cancelled round finishes the round. If the thread dies, its claims end with their lease.
    """
    while True:
        pause = await asyncio.to_thread(keep_round, keeper, look)
        await sleep(pause.total_seconds())


def keep_round(keeper: Keeper, look: timedelta) -> timedelta:
    """Retry the letters that are due now; return the time to sleep. After a fault, its letters are due again later."""
    try:
        due_at, now = next_due_at(keeper), keeper.clock.now()
        if due_at is None or due_at > now:
            return look if due_at is None else min(look, due_at - now)
        chunks = claim_due(keeper)
        for chunk in chunks:
            report = retry_chunk(chunk, keeper, "worker")
            log.info("letters retried", extra={"action": "retry_letters", **report.to_json()})
    except InfrastructureFault as fault:
        log.warning("dead-letter round failed; will retry", extra={"action": "retry_letters", "error": str(fault)})
        return look
    return timedelta() if chunks else min(look, LETTER_PAUSE)


async def _check_for_gaps(silence: SilenceCheck) -> None:
    """Check from time to time: no batch shows that retention removed events after the last one read."""
    while True:
        await asyncio.sleep(CHECK_EVERY)
        await _finished(asyncio.to_thread(check_gaps, silence))


def check_gaps(silence: SilenceCheck) -> None:
    """Check all partitions once, and log each gap; a fault is logged, and the next check tries again."""
    try:
        for checked in silence.run("worker"):
            if isinstance(checked, Healed):
                facts = gap_facts(checked.partition, checked.gap, checked.healed, checked.absent)
                log.warning("gap healed", extra=facts)
            else:
                facts = {"action": "gap", "partition": str(checked.partition), "error": str(checked.fault)}
                log.warning("gap not healed", extra=facts)
    except InfrastructureFault as fault:
        log.warning("gap check failed; will retry", extra={"action": "gap", "error": str(fault)})


async def _beside(receiving: Coroutine[Any, Any, None], *others: Coroutine[Any, Any, None]) -> None:
    """Run the other loops for as long as events are received; a bug in one ends all."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(other) for other in others]
        await receiving
        for task in tasks:
            task.cancel()


async def _until_signal(receiving: Coroutine[Any, Any, None]) -> None:
    """Cancel the work once, however many signals come; the work then releases its partitions."""
    signalled = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, signalled.set)
    task, waiting = asyncio.ensure_future(receiving), asyncio.ensure_future(signalled.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def _log_death(facts: dict[str, object]) -> None:
    log.warning("attempt died; its events are tried again", extra=facts)


def _log_failure(partition_id: str | None, error: Exception) -> None:
    facts = {"action": "receive", "partition_id": partition_id, "error": f"{type(error).__name__}: {error}"}
    log.warning("receiving failed; the client will retry", extra=facts)


class JsonLines(logging.Formatter):
    """Formats each record as one JSON object, with its extra fields."""

    _own = frozenset(vars(logging.makeLogRecord({})))

    def format(self, record: logging.LogRecord) -> str:
        extra = {name: value for name, value in vars(record).items() if name not in self._own}
        at = datetime.fromtimestamp(record.created, UTC).isoformat()
        line = {"time": at, "level": record.levelname, "logger": record.name, "message": record.getMessage(), **extra}
        return json.dumps(line, default=str)


def main(arguments: list[str] | None = None) -> int:
    """Return 0 after a clean end; 1, with one line on stderr, when the worker cannot begin."""
    parser = argparse.ArgumentParser(prog="python -m core.worker", description=__doc__)
    parser.add_argument("--interval", type=_seconds, default=10, help="seconds between balancings of partitions (10)")
    parser.add_argument("--expiry", type=_seconds, default=60, help="seconds until a silent owner counts as gone (60)")
    given = parser.parse_args(arguments)
    if given.interval >= given.expiry:
        parser.error("--interval must be below --expiry")
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("hubledger").setLevel(logging.INFO)
    try:
        asyncio.run(work((timedelta(seconds=given.interval), timedelta(seconds=given.expiry))))
    except HubledgerError as error:
        print(f"worker: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= LONGEST_SPAN:
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0 and up to {LONGEST_SPAN}, not {text!r}")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
