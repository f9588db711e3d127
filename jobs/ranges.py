"""The rows between two cuts: the ledger turns commit numbers into ranges of sequence numbers."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby

ROWS_EACH = 150_000  # of a slice, so that a large partition becomes many tasks of similar length
MOST_SLICES = 512  # of batches: slices of a long history are larger, so that the driver has few tasks to keep
NUMBERS_EACH = 50_000  # sequence numbers of a merged range
Place = tuple[int, str]  # stream id and partition id


@dataclass(frozen=True, slots=True)
class CommitSpan:
    """The commits of one partition after `after` up to `up_to`."""

    stream_id: int
    partition_id: str
    after: int
    up_to: int


@dataclass(frozen=True, slots=True)
class MergedRange:
    """One row of the batch ledger, or adjacent rows of kind `batch` that SQL has merged, under their last commit; only
    ranges of kind `batch` have no holes and cover the log in order."""

    stream_id: int
    partition_id: str
    commit_number: int
    kind: str
    first: int
    last: int
    rows_written: int


@dataclass(frozen=True, slots=True)
class WrittenCount:
    """The commits of one partition, as the ledger counts them.

    They appended `rows_appended` rows to all tables together. `uncounted` of the commits have no such number, because
    they were purged. The first commit was made at `first_at`.
    """

    stream_id: int
    partition_id: str
    rows_appended: int
    uncounted: int
    first_at: datetime

    @property
    def place(self) -> Place:
        """The stream and the partition."""
        return self.stream_id, self.partition_id


@dataclass(frozen=True, slots=True)
class Slice:
    """The rows of a partition at sequence numbers `first` to `last` whose commit is after `after` and up to `up_to`.

    They count at the commit `cut`: a row that only a later replay removed is one of them; None: they stand now.
    `letters_only` limits them to the sequence numbers of dead letters, the only ones where a retry writes.
    """

    stream_id: int
    partition_id: str
    first: int
    last: int
    after: int
    up_to: int
    letters_only: bool = False
    cut: int | None = None


def checkpoints_of(ledger: str) -> str:
    """Return the table of checkpoints beside a ledger."""
    return ledger.removesuffix("batch_ledger") + "event_hub_checkpoint"


def spans_between(cut_from: str, cut_to: str) -> list[CommitSpan]:
    """Return the commits between two cuts, which are JSON objects of commit numbers by "stream/partition"."""
    begin, end = json.loads(cut_from), json.loads(cut_to)
    spans = []
    for name, up_to in sorted(end.items()):
        stream_id, _, partition_id = name.partition("/")
        if up_to > begin.get(name, 0):
            spans.append(CommitSpan(int(stream_id), partition_id, begin.get(name, 0), up_to))
    return spans


def slices_of(spans: Iterable[CommitSpan], ledger: Sequence[MergedRange], rows_each: int | None = None) -> list[Slice]:
    """Return slices that hold every row of the spans' commits once.

    The batches of a span cover an unbroken range of sequence numbers; rows that later commits of the span wrote into it
    are read with it. From a retry or a replay, only the part before that range gets its own slice.
    """
    rows_each = rows_each or max(ROWS_EACH, sum(one.rows_written for one in ledger) // MOST_SLICES)
    parts = sorted((part for one in ledger for part in _parts_of(one)), key=_by_commit)
    of_partition = {
        partition: list(ranges) for partition, ranges in groupby(parts, lambda one: (one.stream_id, one.partition_id))
    }
    found: list[Slice] = []
    for span in spans:
        ranges = of_partition.get((span.stream_id, span.partition_id), [])
        batches = [one for one in ranges if one.kind == "batch"]
        found += _cut_by_rows(span, batches, rows_each)
        found += _before(span, batches, [one for one in ranges if one.kind != "batch"])
    return found


def replayed_spans(spans: Iterable[CommitSpan], ledger: Iterable[MergedRange]) -> list[CommitSpan]:
    """Return the spans that have a replay among their commits: only a replay removes rows."""
    partitions = {(one.stream_id, one.partition_id) for one in ledger if one.kind == "replay"}
    return [span for span in spans if (span.stream_id, span.partition_id) in partitions]


def _cut_by_rows(span: CommitSpan, batches: Sequence[MergedRange], rows_each: int) -> Iterator[Slice]:
    rows, first = 0, None
    for at, batch in enumerate(batches):
        rows += batch.rows_written
        first = batch.first if first is None else first
        if rows >= rows_each or at == len(batches) - 1:
            place = (span.stream_id, span.partition_id, first, batch.last)
            yield Slice(*place, span.after, span.up_to, cut=span.up_to)
            rows, first = 0, None


def _before(span: CommitSpan, batches: Sequence[MergedRange], others: Iterable[MergedRange]) -> Iterator[Slice]:
    for one in others:
        last = min(one.last, batches[0].first - 1) if batches else one.last
        if one.rows_written and one.first <= last:
            number, letters_only = one.commit_number, one.kind == "retry"
            place = (one.stream_id, one.partition_id, one.first, last)
            yield Slice(*place, number - 1, number, letters_only, span.up_to)


def _parts_of(one: MergedRange) -> Iterator[MergedRange]:
    """Yield a range in parts if it is much longer than NUMBERS_EACH, as that of purged commits is."""
    numbers = one.last - one.first + 1
    if one.kind != "batch" or numbers <= 2 * NUMBERS_EACH:
        yield one
        return
    each = max(NUMBERS_EACH, numbers // MOST_SLICES)
    for first in range(one.first, one.last + 1, each):
        last = min(first + each - 1, one.last)
        before, after = (one.rows_written * (number - one.first) // numbers for number in (first, last + 1))
        yield replace(one, first=first, last=last, rows_written=after - before)


def _by_commit(one: MergedRange) -> tuple[int, str, int, int]:
    return one.stream_id, one.partition_id, one.commit_number, one.first
