"""`python -m core.worker`: what the trigger does, without the Functions host, sharing partitions with its peers.

One log line a batch on stdout, as JSON. SIGTERM or Ctrl-C finishes the batch in work and releases the partitions.
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
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from core.errors import HubledgerError, InfrastructureFault
from core.events import EventBatch
from core.ingest import IngestReport, Stamps, ingest_batch, report_facts
from core.remote.consumer import Sharing, open_consumer, receive
from core.settings import read_settings
from core.store import Store
from core.store.connect import around, open_engine
from core.transforms import Transform, load_transform

log = logging.getLogger("hubledger.worker")
STAMPS = Stamps(now=lambda: datetime.now(UTC), new_id=uuid.uuid4)
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds: the trigger's retry policy has the same


@dataclass(frozen=True, slots=True)
class Ingestion:
    """Ingests batches for as long as it takes: an infrastructure fault holds the partition and loses nothing."""

    store: Store
    transform: Transform

    async def take(self, batch: EventBatch) -> None:
        """Commit a batch; return only when that is done. Losing the partition cancels it."""
        pause = FIRST_PAUSE
        while True:
            try:
                report = await asyncio.to_thread(ingest_batch, batch, self.store, self.transform, STAMPS)
            except InfrastructureFault as fault:
                facts = {"action": "ingest", "partition": str(batch.partition), "error": str(fault)}
                log.warning("batch not ingested, and held", extra=facts)
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                _log_report(report)
                return


async def work(sharing_times: tuple[timedelta, timedelta]) -> None:
    """Receive until a signal comes. Raises HubledgerError when settings or store cannot work."""
    from core.store.ownership import SqlCheckpointStore  # it needs the SDK, which is heavy

    settings = read_settings(os.environ)
    engine = open_engine(settings)
    await asyncio.to_thread(engine.read_ledgers)  # says now what is wrong with the store
    client = open_consumer(settings, Sharing(SqlCheckpointStore(engine), *sharing_times))
    ingestion = Ingestion(around(engine, settings), load_transform(settings.transform))
    receiving = asyncio.ensure_future(receive(client, ingestion.take, _log_failure))
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, receiving.cancel)
    log.info("worker ready", extra={"action": "ready"})
    with contextlib.suppress(asyncio.CancelledError):
        await receiving
    await client.close()
    engine.close()


def _log_report(report: IngestReport) -> None:
    level = logging.WARNING if report.gaps else logging.INFO
    log.log(level, "batch ingested", extra=report_facts(report))


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


def main() -> int:
    """0 after a clean end; 1 and one line on stderr when it cannot begin."""
    parser = argparse.ArgumentParser(prog="python -m core.worker", description=__doc__)
    parser.add_argument("--interval", type=float, default=10, help="seconds between balancings of partitions (10)")
    parser.add_argument("--expiry", type=float, default=60, help="seconds until a silent owner counts as gone (60)")
    given = parser.parse_args()
    if not 0 < given.interval < given.expiry:
        parser.error("--interval must be above 0 and below --expiry")
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


if __name__ == "__main__":
    sys.exit(main())
