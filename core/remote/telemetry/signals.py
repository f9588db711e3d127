"""The spans and metrics of batches, letters, replays and the aggregation, from the reports of the use cases."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from time import perf_counter
from uuid import UUID

from opentelemetry.trace import Link, SpanKind, StatusCode, Tracer
from opentelemetry.trace import Span as OpenSpan

from core.aggregation.tick import Aggregation, AggregationReport, aggregate
from core.ingest.ingest import IngestReport, Means, ingest_batch
from core.ingest.silence import Healed
from core.letters.keeper import Keeper
from core.letters.retry import retry_chunk
from core.model.commits import BatchCommit
from core.model.events import EventBatch, Partition, PartitionId, Stream
from core.model.letters import LetterChunk, RetryReport
from core.remote.telemetry import names
from core.remote.telemetry.calls import Calls, counted_calls
from core.remote.telemetry.instruments import Instruments, Value, note_fault
from core.remote.telemetry.links import producer_links
from core.replay.run import ReplayKind
from core.tasks.run import Kind, SliceReport, work_on

Attributes = Mapping[str, Value]
KINDS = {"consumer": SpanKind.CONSUMER, "internal": SpanKind.INTERNAL}
RETRIED = ("resolved", "waiting", "exhausted", "released", "lost")


def of_stream(stream: Stream) -> dict[str, Value]:
    """Return the attributes of a stream: its hub and its consumer group."""
    return {names.DESTINATION: stream.event_hub.rpartition("/")[2], names.GROUP: stream.consumer_group}


def of_partition(partition: Partition) -> dict[str, Value]:
    """Return the attributes of a partition."""
    return {**of_stream(partition.stream), names.PARTITION: str(partition.partition_id)}


@dataclass(slots=True)
class Observed:
    """A span that is open, the calls to the store so far, and the class of the error that ended it."""

    span: OpenSpan
    calls: Calls
    began: float = field(default_factory=perf_counter)
    error: dict[str, Value] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return perf_counter() - self.began


class Signals:
    """Does the work of each use case within a span, and records its metrics. A fault of the work stays what it is."""

    def __init__(self, tracer: Tracer, instruments: Instruments) -> None:
        self._tracer, self._instruments = tracer, instruments

    def ingest(self, batch: EventBatch, means: Means) -> IngestReport:
        """Ingest a batch."""
        of_all, hub = of_stream(batch.partition.stream), of_partition(batch.partition)
        asked = {names.SYSTEM: names.EVENT_HUBS, names.OPERATION: names.PROCESS, **hub}
        links, left_out = producer_links(batch.events)
        attributes = {**asked, **_of_batch(batch), names.LINKS_LEFT_OUT: left_out}
        name = names.BATCH_SPAN.name.format(hub=hub[names.DESTINATION])

        def note(seen: Observed) -> None:
            told = {**asked, **seen.error}
            self._instruments.record(names.PROCESS_DURATION, seen.seconds, told)
            self._instruments.count(names.CONSUMED, len(batch.events), told)
            self._instruments.record(names.BATCH_EVENTS, len(batch.events), of_all)
            self._instruments.record(names.BATCH_CALLS, seen.calls.count, of_all)
            self._instruments.count(names.BATCH_RETRIES, int(batch.is_retry), of_all)

        with self._span(names.BATCH_SPAN, name, (attributes, links), note) as seen:
            report = ingest_batch(batch, means)
            _quietly(self._note_batch, seen, report)
        return report

    def retry(self, chunk: LetterChunk, keeper: Keeper, invocation_id: str) -> RetryReport:
        """Retry a chunk of letters."""
        hub, of_all = of_partition(keeper.stream.partition(chunk.partition_id)), of_stream(keeper.stream)
        attributes = {**hub, names.LETTERS: len(chunk.sequence_numbers)}

        def note(seen: Observed) -> None:
            self._instruments.record(names.RETRY_DURATION, seen.seconds, {**of_all, **seen.error})

        with self._span(names.RETRY_SPAN, names.RETRY_SPAN.name, (attributes, ()), note):
            report = retry_chunk(chunk, keeper, invocation_id)
        for status in RETRIED:
            told = {**of_all, names.LETTER_STATUS: status}
            self._instruments.count(names.LETTERS_RETRIED, getattr(report, status), told)
        return report

    def task(self, task_id: UUID, part: str | None, kind: Kind, until: datetime) -> SliceReport:
        """Work on a slice of a task. Only replays have a span and metrics."""
        if not isinstance(kind, ReplayKind) or part is None:
            return work_on(task_id, part, kind, until)
        of_all = of_stream(kind.stream)
        attributes = {**of_partition(kind.stream.partition(PartitionId(part))), names.REPLAY: str(task_id)}

        def note(seen: Observed) -> None:
            self._instruments.record(names.REPLAY_DURATION, seen.seconds, {**of_all, **seen.error})

        with self._span(names.REPLAY_SPAN, names.REPLAY_SPAN.name, (attributes, ()), note) as seen:
            report = work_on(task_id, part, kind, until)
            seen.span.set_attributes({names.PIECES: report.pieces, names.EVENTS: report.looked_at})
        self._instruments.count(names.REPLAYED, report.looked_at, of_all)
        return report

    def aggregate(self, own: Aggregation, job: str) -> AggregationReport:
        """Take one step of a job."""
        of_job = {names.JOB: job}

        def note(seen: Observed) -> None:
            self._instruments.record(names.TICK_DURATION, seen.seconds, {**of_job, **seen.error})

        with self._span(names.TICK_SPAN, names.TICK_SPAN.name, (of_job, ()), note) as seen:
            report = aggregate(own, job)
            seen.span.set_attribute(names.STEPS, steps_of(report.did))
        run = report.closed
        if run is not None and run.closed_at is not None:
            self._instruments.record(names.RUN_DURATION, (run.closed_at - run.planned_at).total_seconds(), of_job)
        return report

    def healed(self, found: Healed) -> None:
        """Count a gap that the timer healed, with its commits."""
        self._instruments.count(names.HEALED_GAPS, 1, of_stream(found.partition.stream))
        outcomes = {**_outcomes(found.commits), "healed": found.healed, "absent": found.absent}
        self._note_commits(found.partition, found.commits, outcomes)

    @contextmanager
    def _span(
        self,
        kind: names.SpanName,
        name: str,
        given: tuple[Attributes, Sequence[Link]],
        note: Callable[[Observed], None],
    ) -> Iterator[Observed]:
        """Open a span, and call `note` at its end, also after a fault, whose text is not sent: it may have a key."""
        attributes, links = given
        with (
            counted_calls() as calls,
            self._tracer.start_as_current_span(
                name,
                kind=KINDS[kind.kind],
                attributes=attributes,
                links=links,
                record_exception=False,
                set_status_on_exception=False,
            ) as span,
        ):
            seen = Observed(span, calls)
            try:
                yield seen
            except BaseException as fault:
                seen.error = {names.ERROR: type(fault).__name__}
                span.set_status(StatusCode.ERROR)
                raise
            finally:
                span.set_attributes({names.STORE_CALLS: calls.count, **seen.error})
                _quietly(note, seen)

    def _note_batch(self, seen: Observed, report: IngestReport) -> None:
        outcomes, gaps = _outcomes(report.commits), len(report.gaps)
        outcomes |= {"redelivered": report.redelivered, "healed": report.healed, "absent": report.absent}
        letters, again = outcomes["dead_lettered"], outcomes["redelivered"]
        seen.span.set_attributes({names.COMMITS: len(report.commits), names.GAPS: gaps})
        seen.span.set_attributes({names.DEAD_LETTERED: letters, names.REDELIVERED: again})
        self._instruments.count(names.HEALED_GAPS, gaps, of_stream(report.batch.partition.stream))
        self._note_commits(report.batch.partition, report.commits, outcomes)

    def _note_commits(self, partition: Partition, commits: Sequence[BatchCommit], outcomes: Mapping[str, int]) -> None:
        of_all = of_stream(partition.stream)
        for outcome, count in outcomes.items():
            self._instruments.count(names.EVENT_OUTCOMES, count, {**of_all, names.OUTCOME: outcome})
        self._instruments.count(names.COMMITTED, len(commits), of_partition(partition))
        for (error_class, status), count in _letters(commits).items():
            told = {names.LETTER_CLASS: error_class, names.LETTER_STATUS: status}
            self._instruments.count(names.LETTERS_OPENED, count, {**of_all, **told})


def steps_of(did: Sequence[str]) -> str:
    """Return the steps of a tick without the text of a fault, which stands after a colon."""
    return "; ".join(one.partition(":")[0] for one in did)


def _of_batch(batch: EventBatch) -> dict[str, Value]:
    return {
        names.OPERATION_TYPE: names.PROCESS,
        names.BATCH_COUNT: len(batch.events),
        names.FIRST: batch.events[0].sequence_number,
        names.LAST: batch.events[-1].sequence_number,
        names.RETRIES: batch.retries,
    }


def _outcomes(commits: Sequence[BatchCommit]) -> dict[str, int]:
    settled = [commit.settled for commit in commits]
    return {
        "written": sum(each.written for each in settled),
        "filtered": sum(each.filtered for each in settled),
        "dead_lettered": sum(each.dead_lettered for each in settled),
        "held": sum(each.held for each in settled),
    }


def _letters(commits: Sequence[BatchCommit]) -> Counter[tuple[str, str]]:
    letters = [letter for commit in commits for letter in commit.settled.letters]
    return Counter((letter.error_class, letter.status) for letter in letters)


def _quietly(record: Callable[..., None], *values: object) -> None:
    """Record; a fault of it is logged. After a commit a fault would make the host try the batch again, without end."""
    try:
        record(*values)
    except Exception as fault:  # noqa: BLE001 - telemetry never fails the work that it observes
        note_fault(fault)
