"""The quality of a run: the number of the rows that it adds up, beside what the ledger says.

It comes from the windows of the rows, so no row is read twice. The app stores it with the run as JSON, and
`core/aggregation/runs.py` reads it.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from core.model.aggregates import EPOCH, WINDOW_START, Aggregate
from core.model.rows import row_table
from core.transforms.loading import load_transform
from jobs.ranges import CommitSpan, Place, Slice, WrittenCount
from jobs.tables import Tables

MICROSECOND = timedelta(microseconds=1)
MOST = 1_000  # characters of a fault
SHOWN = 20  # partitions


class ReadingDiffers(Exception):
    """The tables hold the rows that the ledger counts, but the job read a different number: the next attempt reads
    them again."""


@dataclass(frozen=True, slots=True)
class CountedCommits:
    """The commits of a run: their spans, the slices of their rows, and what the ledger says of them."""

    spans: Sequence[CommitSpan]
    slices: Sequence[Slice]
    written: Sequence[WrittenCount]

    @property
    def first_at(self) -> datetime | None:
        """The time of the first commit, or None without a commit."""
        return min((one.first_at for one in self.written), default=None)

    def appended(self) -> Counter[Place]:
        """Return the rows that the ledger counts, by partition."""
        found: Counter[Place] = Counter()
        for one in self.written:
            found[one.place] += one.rows_appended
        return found


def appended_classes(transform: str) -> tuple[type, ...]:
    """Return the row classes of a transform with appended rows: the ledger counts their rows together."""
    return tuple(one for one in load_transform(transform).row_classes if not row_table(one).key)


def appended_tables(transform: str) -> tuple[str, ...]:
    """Return the names of their tables."""
    return tuple(sorted({row_table(one).name for one in appended_classes(transform)}))


def quality_of(tables: Tables, of: Aggregate, windows: DataFrame, commits: CountedCommits, transform: str) -> str:
    """Return the quality of the rows in these windows as JSON.

    A row is late when its window had ended for more than a window's length before the first commit of the run. Raises
    ReadingDiffers when only the job's own reading is wrong.
    """
    first_at = commits.first_at
    late = F.unix_micros(WINDOW_START) < (0 if first_at is None else (first_at - EPOCH - 2 * of.window) // MICROSECOND)
    read = F.sum(of.count).alias("read")
    (found,) = windows.agg(read, F.sum(F.when(late, F.col(of.count))).alias("late")).collect()
    rows = _compared(tables, of, commits, (found["read"] or 0, appended_tables(transform)))
    return json.dumps({"fault": fault_of(rows), "rows_late": found["late"] or 0, **rows}, ensure_ascii=False)


def fault_of(rows: Mapping[str, Any]) -> str | None:
    """Return a sentence if the rows differ from the ledger's, or None if they agree or the ledger's are unknown."""
    if not rows["rows_difference"]:
        return None
    places = [
        f"partition {one['partition'].split('/', 1)[1]} has {one['found']:,} of its {one['ledger']:,}"
        for one in rows["partitions"]
    ]
    found = rows["rows_ledger"] + rows["rows_difference"]
    return f"the ledger counts {rows['rows_ledger']:,} rows, and the tables have {found:,}: {', '.join(places)}"[:MOST]


def _compared(
    tables: Tables, of: Aggregate, commits: CountedCommits, reading: tuple[int, tuple[str, ...]]
) -> dict[str, Any]:
    """Compare the rows that were read, and those of the transform's other tables, with those that the ledger counts."""
    (read, names), own = reading, row_table(of.source).name
    others = [tables.count_rows(name, commits.slices, commits.spans) for name in names if name != own]
    removed = tables.count_rows(own, (), commits.spans)
    in_others = sum((Counter(one) for one in others), Counter[Place]())
    found = {"rows_read": read, "rows_removed": removed.total(), "rows_elsewhere": in_others.total()}
    ledger = commits.appended()
    if any(one.uncounted for one in commits.written):
        return {"rows_ledger": None, **found, "rows_difference": None, "partitions": []}
    difference = sum(found.values()) - ledger.total()
    differing: list[dict[str, Any]] = []
    if difference:
        standing = tables.count_rows(own, commits.slices, commits.spans) + in_others
        differing = [
            {"partition": f"{place[0]}/{place[1]}", "ledger": ledger[place], "found": standing[place]}
            for place in sorted({*ledger, *standing})
            if ledger[place] != standing[place]
        ]
        if not differing:
            raise ReadingDiffers(f"{sum(found.values())} rows were read, and ledger and tables count {ledger.total()}")
    counts = {"rows_ledger": ledger.total(), **found, "rows_difference": difference}
    return {**counts, "partitions": differing[:SHOWN]}
