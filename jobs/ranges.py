"""The rows between two cuts: the ledger turns commit numbers into ranges of sequence numbers. The SQL of both is here,
for every engine."""

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
    """One row of the batch ledger, or adjacent rows of kind `batch` that SQL has merged, under their last commit. Only
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

    They count at the commit `cut`, as does a row that only a later replay removed. Without a `cut` they stand now.
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

    The batches of a span cover an unbroken range of sequence numbers. Rows that later commits of the span wrote into it
    are read with it. From a retry or a replay, only the part before that range gets its own slice.
    """
    rows_each = rows_each or max(ROWS_EACH, sum(one.rows_written for one in ledger) // MOST_SLICES)
    parts = sorted(
        (part for one in ledger for part in _parts_of(one)),
        key=lambda one: (one.stream_id, one.partition_id, one.commit_number, one.first),
    )
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
    """Yield a range in parts if it is much longer than NUMBERS_EACH, as the range of purged commits is."""
    numbers = one.last - one.first + 1
    if one.kind != "batch" or numbers <= 2 * NUMBERS_EACH:
        yield one
        return
    each = max(NUMBERS_EACH, numbers // MOST_SLICES)
    for first in range(one.first, one.last + 1, each):
        last = min(first + each - 1, one.last)
        before, after = (one.rows_written * (number - one.first) // numbers for number in (first, last + 1))
        yield replace(one, first=first, last=last, rows_written=after - before)


LEDGER = {  # the columns of a merged range, with their types in Spark
    "stream_id": "bigint",
    "partition_id": "string",
    "commit_number": "bigint",
    "kind": "string",
    "first_sequence_number": "bigint",
    "last_sequence_number": "bigint",
    "rows_written": "bigint",
}
# Adjacent batches become one range, so that a ledger of millions of commits never reaches the driver.
_MERGED = """
SELECT m.stream_id, m.partition_id, MAX(m.commit_number) AS commit_number, m.kind,
       MIN(m.first_sequence_number) AS first_sequence_number, MAX(m.last_sequence_number) AS last_sequence_number,
       SUM(CAST(m.rows_written AS bigint)) AS rows_written
  FROM (SELECT {columns},
               CASE WHEN kind = 'batch' THEN first_sequence_number / {each} ELSE -commit_number END AS part
          FROM ({ranges}) AS l) AS m
 GROUP BY m.stream_id, m.partition_id, m.kind, m.part
"""
# Of ledger rows that were purged, the checkpoint has the range; a row for each number is a guess.
_PURGED = """
SELECT stream_id, partition_id, commit_number, 'batch' AS kind, first_sequence_number, last_sequence_number,
       last_sequence_number - first_sequence_number + 1 AS rows_written
  FROM (SELECT stream_id, partition_id, purged_commit AS commit_number, first_sequence_number,
               purged_to AS last_sequence_number
          FROM {checkpoints}) AS k
 WHERE {where}
"""


def quoted(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def place_where(one: CommitSpan | Slice) -> str:
    """Return the SQL condition of a partition."""
    return f"stream_id = {one.stream_id} AND partition_id = {quoted(one.partition_id)}"


def rows_where(one: Slice, letters: str = "event_hub_dead_letter", written_by: str = "commit_number") -> str:
    """Return the SQL condition of a slice's rows, for every engine. `written_by` is the column of their commits."""
    place = place_where(one)
    span = f"sequence_number BETWEEN {one.first} AND {one.last}"
    rows = f"{place} AND {span} AND {written_by} > {one.after} AND {written_by} <= {one.up_to}"
    if not one.letters_only:
        return rows
    return f"{rows} AND sequence_number IN (SELECT sequence_number FROM {letters} WHERE {place} AND {span})"


def commits_where(span: CommitSpan) -> str:
    """Return the SQL condition of a span's ledger rows, and of the rows that its replays removed."""
    return f"{place_where(span)} AND commit_number > {span.after} AND commit_number <= {span.up_to}"


def ledger_query(spans: Sequence[CommitSpan], table: str = "batch_ledger") -> str:
    """Return the SQL of these spans' ledger in merged ranges, for every engine. `table` has the name of the ledger.

    What a purge took away is before every cut, so only a span from the first commit on has it.
    """
    wanted = (
        (span, "kind = 'batch'" if span.after == 0 else "(rows_written > 0 OR kind <> 'retry')") for span in spans
    )
    where = " OR ".join(f"({commits_where(span)} AND {kinds})" for span, kinds in wanted)
    columns = ", ".join(LEDGER)
    ranges = f"SELECT {columns} FROM {table} WHERE {where}"
    begun = " OR ".join(f"({commits_where(span)})" for span in spans if span.after == 0)
    if begun:
        ranges += " UNION ALL " + _PURGED.format(checkpoints=checkpoints_of(table), where=begun).strip()
    return _MERGED.format(columns=columns, each=NUMBERS_EACH, ranges=ranges).strip()
