"""`python -m core.worker`: what the trigger does, without the Functions host, sharing partitions with its peers.

It also retries dead letters when they are due. One log line a batch on stdout, as JSON. SIGTERM or Ctrl-C finishes the
batch in work and releases the partitions.
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
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from core.errors import HubledgerError, InfrastructureFault
from core.ingest.gaps import NOT_HEALING, Healing, gap_facts
from core.ingest.ingest import Means, ingest_batch, report_facts
from core.ingest.port import IngestStore
from core.ingest.silence import Healed, SilenceCheck
from core.letters.retry import Keeper
from core.model.clock import Clock
from core.model.events import EventBatch
from core.model.letters import LetterPolicy
from core.model.transform import Transform
from core.remote.hub.access import check_access
from core.remote.hub.consumer import Sharing, open_consumer, receive
from core.remote.hub.reader import SdkHubReader
from core.settings import read_settings
from core.store.connect import around, open_engine, patient
from core.transforms import load_transform
from core.worker_letters import keep_letters

log = logging.getLogger("hubledger.worker")
CLOCK = Clock(now=lambda: datetime.now(UTC), new_id=uuid.uuid4, chance=random.random)
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds: the trigger's retry policy has the same
LOOK_EVERY = 60.0  # seconds between two looks for gaps
LONGEST_SPAN = 3600  # seconds between balancings, or until an owner counts as gone


@dataclass(frozen=True, slots=True)
class Pausing:
    """How a held batch waits: sleep, in seconds, and chance (0 to 1)."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    chance: Callable[[], float] = random.random


@dataclass(frozen=True, slots=True)
class Ingestion:
    """Ingests batches for as long as it takes: an infrastructure fault holds the partition and loses nothing."""

    store: IngestStore
    transform: Transform
    pausing: Pausing = field(default_factory=Pausing)
    clock: Clock = CLOCK
    healing: Healing = NOT_HEALING
    letters: LetterPolicy = LetterPolicy()  # noqa: RUF009 - it is frozen

    async def take(self, batch: EventBatch) -> None:
        """Commit a batch; return only when that is done. Losing the partition cancels it, but not half-way a commit."""
        pause = FIRST_PAUSE
        while True:
            try:
                await _finished(asyncio.to_thread(self._ingest, batch))
            except InfrastructureFault as fault:
                facts = {"action": "ingest", "partition": str(batch.partition), "error": str(fault)}
                log.warning("batch not ingested, and held", extra=facts)
                await self.pausing.sleep(pause * (0.5 + self.pausing.chance() / 2))
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                return

    def _ingest(self, batch: EventBatch) -> None:
        report = ingest_batch(batch, Means(self.store, self.transform, self.clock, self.healing, self.letters))
        for gap in report.gaps:
            log.warning("gap healed", extra=gap_facts(batch.partition, gap, report))
        log.info("batch ingested", extra=report_facts(report))


async def _finished(work: Coroutine[Any, Any, None]) -> None:
    """Await work that a cancellation must not leave behind: a thread goes on, and it may be about to commit."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled() and (fault := task.exception()) is not None:
            log.warning("batch not ingested, and left to the next owner", extra={"error": str(fault)})
        raise


async def work(sharing_times: tuple[timedelta, timedelta]) -> None:
    """Receive until a signal comes. Raises HubledgerError when settings, store or hub cannot work."""
    from core.store.ownership import SqlCheckpointStore  # it needs the SDK, which is heavy

    settings = read_settings(os.environ)
    transform = load_transform(settings.transform)
    with closing(open_engine(settings)) as engine, closing(SdkHubReader(settings)) as hub:
        await asyncio.to_thread(engine.read_ledgers)  # says now what is wrong with the store
        await asyncio.to_thread(check_access, settings)
        await asyncio.to_thread(hub.check_access)
        healing = Healing(hub, settings.anchoring, settings.heal_deadline)
        store = around(engine, settings)
        ingestion = Ingestion(store, transform, healing=healing, letters=settings.letters)
        silence = SilenceCheck(
            Means(patient(engine, settings), transform, CLOCK, healing, settings.letters), settings.gap_grace
        )
        keeper = Keeper(settings.stream, store, transform, hub.find_event, CLOCK, settings.letters)
        client = open_consumer(settings, Sharing(SqlCheckpointStore(engine), *sharing_times))
        log.info("worker ready", extra={"action": "ready"})
        others = (keep_letters(keeper, settings.letter_look), _look_for_gaps(silence))
        try:
            await _until_signal(_beside(receive(client, ingestion.take, _log_failure), *others))
        finally:
            await client.close()
    log.info("worker ended", extra={"action": "ended"})


async def _look_for_gaps(silence: SilenceCheck) -> None:
    """What retention has cut behind the last event that was read shows in no batch."""
    while True:
        await asyncio.sleep(LOOK_EVERY)
        await _finished(asyncio.to_thread(_look_once, silence))


def _look_once(silence: SilenceCheck) -> None:
    try:
        for looked in silence.run("worker"):
            if isinstance(looked, Healed):
                log.warning("gap healed", extra=gap_facts(looked.partition, looked.gap, looked))
            else:
                facts = {"action": "gap", "partition": str(looked.partition), "error": str(looked.fault)}
                log.warning("gap not healed", extra=facts)
    except InfrastructureFault as fault:
        log.warning("the hub was not looked at for gaps", extra={"action": "gap", "error": str(fault)})


async def _beside(receiving: Coroutine[Any, Any, None], *others: Coroutine[Any, Any, None]) -> None:
    """Keep letters and look for gaps for as long as events are received; a bug in any ends all."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(other) for other in others]
        await receiving
        for task in tasks:
            task.cancel()


async def _until_signal(receiving: Coroutine[Any, Any, None]) -> None:
    """Cancel it once, however many signals come: it releases its partitions then."""
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


def _log_failure(partition_id: str | None, error: Exception) -> None:
    facts = {"action": "receive", "partition_id": partition_id, "error": f"{type(error).__name__}: {error}"}
    log.warning("receiving failed, the client goes on", extra=facts)


class _JsonLines(logging.Formatter):
    _own = frozenset(vars(logging.makeLogRecord({})))

    def format(self, record: logging.LogRecord) -> str:
        extra = {name: value for name, value in vars(record).items() if name not in self._own}
        at = datetime.fromtimestamp(record.created, UTC).isoformat()
        line = {"time": at, "level": record.levelname, "logger": record.name, "message": record.getMessage(), **extra}
        return json.dumps(line, default=str)


def main(arguments: list[str] | None = None) -> int:
    """0 after a clean end; 1 and one line on stderr when it cannot begin."""
    parser = argparse.ArgumentParser(prog="python -m core.worker", description=__doc__)
    parser.add_argument("--interval", type=_seconds, default=10, help="seconds between balancings of partitions (10)")
    parser.add_argument("--expiry", type=_seconds, default=60, help="seconds until a silent owner counts as gone (60)")
    given = parser.parse_args(arguments)
    if given.interval >= given.expiry:
        parser.error("--interval must be below --expiry")
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(_JsonLines())
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
