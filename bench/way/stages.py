"""Replay recorded batches through each stage of the way alone, and time each stage by the processor of this thread."""

import gc
import logging
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from time import thread_time
from typing import Any

from azure.eventhub._pyamqp.aio import _receiver_async as receiver
from azure.functions.eventhub import EventHubTriggerConverter

from bench.ingest import here
from bench.way.recorded import Recorded
from core.ingest.batch_log import BatchLines
from core.ingest.ingest import Ingestion, IngestReport, ingest_batch, plan_commit, read, refer
from core.model.events import EventBatch
from core.model.ports import Clock
from core.remote.hub.client import batches_of
from core.settle.attempts import Attempts, StoredJournal
from core.settle.partition_store import Partitions, batch_script
from core.settle.watchdog import Watchdog
from core.store.database import Database
from core.store.memory import Memory
from core.store.script import Named, Outcome, Script
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlite.statements import many_values
from core.transforms.loading import load_transform
from core.worker.__main__ import JsonLines
from handlers.event_batches import to_batch
from handlers.timestamps import read_times_fast
from local.functions_host.event_hub_inputs import TriggerContext, event_hub_inputs
from local.functions_host.event_source import HubAddress
from local.functions_host.sdk_events import to_hub_event

ENCODED, ADAPTER = "values kept encoded", "adapter: the SDK's events to ours"
EVENTS, METADATA, DECODE, BATCH = "host: events", "host: metadata", "worker: decode", "adapter: the worker's events"
READ, REFER, TRANSFORM, SETTLE = "state, guard", "references", "transform", "settle, plan the commit"
ROWS, DATABASE, LOG = "script, rows", "driver, SQLite", "log"
OF_WORKER, OF_HOST = (ENCODED, ADAPTER), (ENCODED, EVENTS, METADATA, DECODE, BATCH)
OF_BOTH = (READ, REFER, TRANSFORM, SETTLE, ROWS, DATABASE, LOG)
_DECODED, _VALUES = "decoded by the SDK", "values"
UNJOURNALED = 2  # batches of a partition in a process until its first 500 events are committed
STAMPS = Clock(lambda: datetime.now(UTC), uuid.uuid4)


@dataclass(frozen=True, slots=True)
class Timers:
    """The microseconds per event of each stage, batch by batch."""

    taken: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    @contextmanager
    def over(self, stage: str, events: int) -> Iterator[None]:
        """Time one batch in a stage."""
        began = thread_time()
        yield
        self.taken[stage].append(1e6 * (thread_time() - began) / events)

    def each(self, stage: str) -> float:
        """Return the median of a stage over the batches."""
        return median(self.taken[stage])


class _Timed:
    """A Database that notes the seconds of its last script."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.seconds = 0.0

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        return self._database.ask(statement, **values)

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        began = thread_time()
        try:
            return self._database.run(script, rehearse)
        finally:
            self.seconds = thread_time() - began

    def close(self) -> None:
        self._database.close()


def replayed(recorded: Sequence[Recorded], transform: str, store: Path) -> dict[str, float]:
    """Return the microseconds of each stage per event. The store is migrated and empty."""
    timers = Timers()
    read_times_fast()
    gc.freeze()  # the recording is not of the app
    try:
        with closing(Watchdog(timedelta(seconds=240))) as watchdog:
            loaded = load_transform(transform, 100, watchdog.over)
            with closing(_Timed(SqliteDatabase(store, needed=loaded.row_classes))) as database:
                journal = StoredJournal(Attempts(database), STAMPS, here)
                inner = Inner(
                    timers, database, Ingestion(Partitions(database, _memory()), loaded, STAMPS, journal=journal)
                )
                for one in recorded:
                    inner.replay(outer(one, timers))
    finally:
        gc.unfreeze()
    return stages_of(timers)


def _memory() -> Memory:
    return Memory(timedelta(seconds=60))


def stages_of(timers: Timers) -> dict[str, float]:
    """Return the stages without those that lie within them."""
    found = {name: timers.each(name) for name in timers.taken}
    found[SETTLE] -= found[TRANSFORM]
    found[DATABASE] -= found.pop(_VALUES)
    found[ENCODED] -= found.pop(_DECODED)
    return found


def outer(recorded: Recorded, timers: Timers) -> EventBatch:
    """Replay the stages before the ingest on both ways, and return the batch of the worker's."""
    count = len(recorded.payloads)
    views = [memoryview(one) for one in recorded.payloads]
    plain: Any = receiver.decode_payload
    with timers.over(_DECODED, count):
        list(map(plain.original, views))
    with timers.over(ENCODED, count):
        list(map(plain, views))
    events = recorded.events()
    with timers.over(ADAPTER, count):
        (batch,) = batches_of(recorded.context, events)
    events = recorded.events()
    with timers.over(EVENTS, count):
        of_host = list(map(to_hub_event, events))
    context = TriggerContext(HubAddress("local", "hub", "group"), batch.partition.partition_id, "events", "BINARY")
    with timers.over(METADATA, count):
        inputs = event_hub_inputs(context, of_host, checkpoints=True)
    with timers.over(DECODE, count):
        decoded = EventHubTriggerConverter.decode(inputs.inputs["events"], trigger_metadata=inputs.trigger_metadata)
    with timers.over(BATCH, count):
        to_batch(decoded, "bench")
    return batch


@dataclass(slots=True)
class Inner:
    """Replays the stages of an ingest, then ingests the batch."""

    timers: Timers
    database: _Timed
    means: Ingestion
    lines: BatchLines = field(default_factory=lambda: BatchLines(1_000_000))
    ingested: Counter[str] = field(default_factory=Counter)
    log: logging.Formatter = field(default_factory=JsonLines)

    def replay(self, batch: EventBatch) -> None:
        """Time each stage, unless the partition is new to the process: its first batches have marks and an anchor."""
        is_new = self.ingested[batch.partition.partition_id] < UNJOURNALED
        self.ingested[batch.partition.partition_id] += 1
        if is_new:
            ingest_batch(batch, self.means)
        else:
            self._replay(batch, len(batch.events))

    def _replay(self, batch: EventBatch, count: int) -> None:
        over = self.timers.over
        with over(READ, count):
            reading = read(batch, self.means)
        with over(REFER, count):
            referred = refer(reading, self.means)
        rows_of, references = self.means.transform.rows_of, referred.references
        with over(TRANSFORM, count):
            for event in reading.guarded.run:
                with suppress(Exception):
                    tuple(rows_of(event, references))
        fresh = refer(reading, self.means)  # a plan adds the states of its events to its references
        with over(SETTLE, count):
            commit = plan_commit(batch, fresh, self.means)
        with over(ROWS, count):
            script = batch_script(commit)
            self._values(script)
        with over(_VALUES, count):
            self._values(script)
        report = ingest_batch(batch, self.means)
        self.timers.taken[DATABASE].append(1e6 * self.database.seconds / count)
        with over(LOG, count):
            self._log(report)

    def _values(self, script: Script) -> None:
        for step in script.steps:
            if step.many is not None and not isinstance(step.statement, str):
                many_values(step, {**step.values, "commit_number": 1})

    def _log(self, report: IngestReport) -> None:
        for line in self.lines.add(report, 0.1, datetime.now(UTC)):
            self.log.format(logging.makeLogRecord({"msg": line.text, **line.facts}))
