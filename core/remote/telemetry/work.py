"""The work that can be observed: the plain use cases, or the same use cases with spans and metrics around them.

Without telemetry the functions are the use cases themselves, so that it costs nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from core.aggregation.tick import Aggregation, AggregationReport, aggregate
from core.ingest.ingest import IngestReport, Means, ingest_batch
from core.ingest.silence import Healed
from core.ledger.watch import Observation
from core.letters.keeper import Keeper
from core.letters.retry import retry_chunk
from core.model.events import EventBatch, Stream
from core.model.letters import LetterChunk, RetryReport
from core.tasks.run import Kind, SliceReport, work_on

NoteCall = Callable[[str, float, Exception | None], None]  # the operation, its seconds, and its fault


def not_noted(store_connection: str) -> None:
    """Note no call to the store."""


def not_sent(stream: Stream, seen: Observation) -> None:
    """Send nothing of what the watch saw: its log line has the facts."""


def not_counted(found: Healed) -> None:
    """Count nothing of a gap that the timer healed: its log line says it."""


@dataclass(frozen=True, slots=True)
class Work:
    """The work of the app as its handlers call it; `noting` returns what notes the calls to a store, or None."""

    ingest: Callable[[EventBatch, Means], IngestReport] = ingest_batch
    retry: Callable[[LetterChunk, Keeper, str], RetryReport] = retry_chunk
    task: Callable[[UUID, str | None, Kind, datetime], SliceReport] = work_on
    aggregate: Callable[[Aggregation, str], AggregationReport] = aggregate
    healed: Callable[[Healed], None] = not_counted
    watched: Callable[[Stream, Observation], None] = not_sent
    noting: Callable[[str], NoteCall | None] = not_noted


PLAIN = Work()
