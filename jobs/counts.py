"""The SQL that counts rows for the quality of a run, in the form that every engine reads."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from core.model.rows import ERASED
from jobs.ranges import CommitSpan, Place, Slice, WrittenCount, checkpoints_of
from jobs.tables import commits_where, place_where, quoted, rows_where

COUNTED = 50  # counts of one statement
WRITTEN_COLUMNS = "stream_id, partition_id, rows_appended, uncounted, first_at"
COUNT_COLUMNS = "stream_id, partition_id, rows_found"


def written_query(spans: Sequence[CommitSpan], ledger: str, first_at: str) -> str:
    """Return the SQL of what the ledger says of these spans; `first_at` is the SQL of the time of their first commit.

    Commits of every kind count, because each has the rows that it wrote itself. Purged commits are not counted.
    """
    written = (
        "SELECT stream_id, partition_id, COALESCE(SUM(CAST(rows_appended AS bigint)), 0) AS rows_appended,"
        f" CAST(0 AS bigint) AS uncounted, {first_at} AS first_at"
        f" FROM {ledger} WHERE {' OR '.join(f'({commits_where(one)})' for one in spans)}"
        " GROUP BY stream_id, partition_id"
    )
    begun = " OR ".join(f"({commits_where(one)})" for one in spans if one.after == 0)
    if not begun:
        return written
    return (
        f"{written} UNION ALL SELECT stream_id, partition_id, CAST(0 AS bigint) AS rows_appended,"
        " MAX(commit_number) AS uncounted,"
        f" {first_at.replace('committed_at', 'purged_at')} AS first_at FROM (SELECT stream_id, partition_id,"
        f" purged_commit AS commit_number, purged_at FROM {checkpoints_of(ledger)}) AS k WHERE {begun}"
        " GROUP BY stream_id, partition_id"
    )


def count_queries(
    table: str, slices: Sequence[Slice], spans: Sequence[CommitSpan], prefix: str = "", row: str = "[row]"
) -> Iterator[str]:
    """Yield the SQL that counts by partition a table's rows in these slices, and the rows that the commits of these
    spans wrote and a replay removed; without slices, a replay within the spans. Rows that an erasure took away count as
    removed; `row` is the name of the column that is empty then.

    Both counts of a partition follow one another, so that a replay rarely comes between them.
    """
    parts = [(one.stream_id, one.partition_id, _standing(table, one, prefix)) for one in slices]
    parts += [(one.stream_id, one.partition_id, _removed(table, one, prefix, None if slices else row)) for one in spans]
    parts.sort(key=lambda part: part[:2])
    texts = [
        f"SELECT {stream_id} AS stream_id, {quoted(of)} AS partition_id, COUNT(*) AS rows_found FROM {counted}"
        for stream_id, of, counted in parts
    ]
    for at in range(0, len(texts), COUNTED):
        yield " UNION ALL ".join(texts[at : at + COUNTED])


def written_of(row: Sequence[Any], first_at: datetime) -> WrittenCount:
    """Return a row of the answer, with the time of its first commit."""
    stream_id, partition_id, rows_appended, uncounted, _ = row
    return WrittenCount(stream_id, partition_id, rows_appended, uncounted, first_at)


def total_of(counts: Iterable[Sequence[Any]]) -> Counter[Place]:
    """Return the sum of counts by partition."""
    found: Counter[Place] = Counter()
    for stream_id, partition_id, rows in counts:
        found[stream_id, partition_id] += rows
    return found


def _standing(table: str, one: Slice, prefix: str) -> str:
    return f"{prefix}{table} WHERE {rows_where(one, f'{prefix}event_hub_dead_letter')}"


def _removed(table: str, span: CommitSpan, prefix: str, row: str | None) -> str:
    written = f"row_commit_number > {span.after} AND row_commit_number <= {span.up_to}"
    removed = f"commit_number > {span.after} AND table_name = {quoted(table)}"
    removed += f" AND (commit_number <= {span.up_to} OR {row} = '{ERASED}')" if row else ""
    return f"{prefix}retracted_row WHERE {place_where(span)} AND {removed} AND {written}"
