"""The quality of a run: figures about the rows that it adds up, and their number beside what the ledger says.

The figures come from the windows of the rows, so no row is read twice. The app stores them with the run as JSON, and
`core/aggregation/quality.py` reads them.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, get_args, get_type_hints

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from core.model.aggregates import EPOCH, WINDOW_START, Aggregate
from core.model.rows import row_table
from core.transforms import load_transform
from jobs.ranges import CommitSpan, Place, Slice, WrittenCount
from jobs.tables import Tables

MICROSECOND = timedelta(microseconds=1)
MOST = 1_000  # characters of a fault
SHOWN = 20  # partitions, and versions of the transform
FILLED, OUTSIDE = "__filled_", "__outside_"


class ReadingDiffers(Exception):
    """The tables hold the rows that the ledger counts, but the job read a different number: the next attempt reads
    them again."""


@dataclass(frozen=True, slots=True)
class Code:
    """The code of a run: its version, and the transform whose rows the ledger counts."""

    version: str | None
    transform: str

    def appended_tables(self) -> tuple[str, ...]:
        """Return the appended tables of the transform: the ledger counts their rows together."""
        tables = (row_table(one) for one in load_transform(self.transform).row_classes)
        return tuple(sorted({table.name for table in tables if not table.key}))


@dataclass(frozen=True, slots=True)
class CountedCommits:
    """The commits of a run: their spans, the slices of their rows, and what the ledger says of them."""

    spans: Sequence[CommitSpan]
    slices: Sequence[Slice]
    written: Sequence[WrittenCount]

    @property
    def first_at(self) -> datetime | None:
        """The time of the first commit; None without a commit."""
        return min((one.first_at for one in self.written), default=None)

    def appended(self) -> Counter[Place]:
        """Return the rows that the ledger counts, by partition."""
        found: Counter[Place] = Counter()
        for one in self.written:
            found[one.place] += one.rows_appended
        return found


def counted_columns(of: Aggregate) -> dict[str, Column]:
    """Return the columns that windows need beside their measures: the rows with a value, and those out of range."""
    found = {FILLED + name: F.count(name) for name in _optional(of)}
    for name, (least, most) in _ranges(of).items():
        found[OUTSIDE + name] = F.count(F.when((F.col(name) < least) | (F.col(name) > most), 1))
    return found


def quality_of(tables: Tables, of: Aggregate, windows: DataFrame, commits: CountedCommits, code: Code) -> str:
    """Return the quality of the rows in these windows as JSON, with the version of the code.

    Raises ReadingDiffers when only the job's own reading is wrong.
    """
    figures = _figures(of, windows, commits.first_at)
    read = figures.pop("read")
    versions = Counter[str]()
    for one in commits.written:
        versions[one.transform_version] += one.commits
    rows = _compared(tables, of, commits, (read, code.appended_tables()))
    found = {
        "fault": fault_of(rows),
        "rows": rows,
        **figures,
        "transforms": dict(versions.most_common(SHOWN)),
        "code": code.version,
    }
    return json.dumps(found, ensure_ascii=False)


def fault_of(rows: Mapping[str, Any]) -> str | None:
    """Return a sentence if the rows differ from the ledger's; None if they do not, or the ledger's are unknown."""
    if not rows["difference"]:
        return None
    places = [
        f"partition {one['partition'].split('/', 1)[1]} has {one['found']} of {one['ledger']}"
        for one in rows["partitions"]
    ]
    found = rows["ledger"] + rows["difference"]
    return f"the ledger counts {rows['ledger']} rows, and the tables have {found}: {', '.join(places)}"[:MOST]


def _figures(of: Aggregate, windows: DataFrame, first_at: datetime | None) -> dict[str, Any]:
    names = list(counted_columns(of))
    late = F.unix_micros(WINDOW_START) < (0 if first_at is None else (first_at - EPOCH - 2 * of.window) // MICROSECOND)
    rows = windows.groupBy(F.col(of.keys[0].name).alias("key")).agg(
        F.sum(of.count).alias("rows"),
        F.sum(F.when(late, F.col(of.count)).otherwise(0)).alias("late"),
        *(F.sum(name).alias(name) for name in names),
    )
    largest = F.max(F.struct("rows", "key")).alias("largest")
    sums = [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in ("rows", "late", *names)]
    (found,) = rows.agg(F.count(F.lit(1)).alias("keys"), largest, *sums).collect()
    top = found["largest"]
    return {
        "read": found["rows"],
        "late": found["late"],
        "first_commit_at": None if first_at is None else first_at.isoformat(),
        "nulls": {name: found["rows"] - found[FILLED + name] for name in _optional(of)},
        "out_of_range": {name: found[OUTSIDE + name] for name in _ranges(of)},
        "keys": found["keys"],
        "largest_key": None if top is None else {"key": str(top["key"]), "rows": top["rows"]},
    }


def _compared(
    tables: Tables, of: Aggregate, commits: CountedCommits, reading: tuple[int, tuple[str, ...]]
) -> dict[str, Any]:
    """Compare the rows that were read, and those of the transform's other tables, with those that the ledger counts."""
    (read, names), own = reading, row_table(of.source).name
    others = [tables.count_rows(name, commits.slices, commits.spans) for name in names if name != own]
    removed = tables.count_rows(own, (), commits.spans)
    in_others = sum((Counter(one) for one in others), Counter[Place]())
    found = {"read": read, "removed": removed.total(), "other_tables": in_others.total()}
    ledger = commits.appended()
    if any(one.uncounted for one in commits.written):
        return {"ledger": None, **found, "difference": None, "partitions": []}
    difference = sum(found.values()) - ledger.total()
    differing: list[dict[str, Any]] = []
    if difference:
        standing = tables.count_rows(own, commits.slices, commits.spans) + in_others
        differing = _differing(ledger, standing)
        if not differing:
            raise ReadingDiffers(f"{sum(found.values())} rows were read, and ledger and tables count {ledger.total()}")
    return {"ledger": ledger.total(), **found, "difference": difference, "partitions": differing[:SHOWN]}


def _differing(ledger: Mapping[Place, int], standing: Mapping[Place, int]) -> list[dict[str, Any]]:
    return [
        {"partition": f"{place[0]}/{place[1]}", "ledger": ledger.get(place, 0), "found": standing.get(place, 0)}
        for place in sorted({*ledger, *standing})
        if ledger.get(place, 0) != standing.get(place, 0)
    ]


def _optional(of: Aggregate) -> list[str]:
    hints = get_type_hints(of.source)
    names = dict.fromkeys(one.column for one in of.measures if one.column)
    return [name for name in names if type(None) in get_args(hints[name])]


def _ranges(of: Aggregate) -> dict[str, tuple[int, int]]:
    return {one.column: one.within for one in of.measures if one.column and one.within}
