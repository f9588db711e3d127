"""A table of rows that is made anew: from SQL, and from its readable files where SQL no longer has a row.

A row that a replay or an erasure took away has a place in SQL, so that no file brings it back. Lost rows are named by
day: by the event dates of the files that the log has, or without these by the days of the commits in the ledger.
"""

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from core.aggregation.lake_tables import EVENT_DATE, LINEAGE, LakeRows, Remake
from core.model.rows import row_table
from jobs.lake_files import Layout, OpenLake, damaged_files, read_files
from jobs.quality import appended_classes
from jobs.ranges import spans_between
from jobs.row_texts import LINEAGE_KINDS
from jobs.tables import Tables

PLACE = list(LINEAGE)
COMMIT = ["stream_id", "partition_id", "commit_number"]
MOST = 400  # characters of the fault of a result


def with_rescued(
    tables: Tables, rows: LakeRows, found: DataFrame, to: tuple[OpenLake, Layout, Remake], cut: str
) -> DataFrame:
    """Return rows that SQL has with those that only readable files of the table have."""
    lake, layout, remake = to
    damaged = {one.path for one in damaged_files(lake.spark, lake.place, layout, remake.files or ())}
    files = [one for one in remake.files or () if one.path not in damaged]
    if not files:
        return found
    gone = tables.removed_places(rows.source, spans_between("{}", cut)).select(*PLACE)
    kept = read_files(lake.spark, lake.place, layout, files)
    known = gone.unionByName(found.select(*PLACE))
    return found.unionByName(kept.join(known, PLACE, "left_anti"))


def lost_of_files(layout: Layout, remake: Remake, before: DataFrame) -> str | None:
    """Return the days of rows that the log of a table counts, and that are not among those before its cut."""
    counts: dict[str, int] = {}
    for one in remake.files or ():
        day = one.partition[EVENT_DATE]
        counts[day] = counts.get(day, 0) + one.rows
    found = dict(before.groupBy(F.col(EVENT_DATE).cast("string")).count().collect())
    lost = {day: rows - found.get(day, 0) for day, rows in sorted(counts.items()) if rows > found.get(day, 0)}
    return lost_text(layout.table, "of", lost)


def lost_of_ledger(tables: Tables, table: str, transform: str, cut: str) -> str | None:
    """Return the days of commits of which SQL has fewer rows than the ledger counts."""
    spans = spans_between("{}", cut)
    kinds = {name: LINEAGE_KINDS[name] for name in COMMIT}
    each = []
    for one in appended_classes(transform):
        each += [tables.commits(row_table(one).name, spans, kinds), tables.removed_places(one, spans).select(*COMMIT)]
    found = reduce(DataFrame.unionByName, each).groupBy(*COMMIT).count()
    ledger = tables.commits("batch_ledger", spans, {**kinds, "rows_appended": "bigint", "committed_at": "timestamp"})
    lacking = F.col("rows_appended") - F.coalesce("count", F.lit(0))
    joined = ledger.join(found, COMMIT, "left").where(lacking > 0)
    by_day = joined.groupBy(F.to_date("committed_at").cast("string").alias("day")).agg(F.sum(lacking)).collect()
    lost = lost_text(table, "of commits of", dict(sorted((day, rows) for day, rows in by_day)))
    purged = [one for one in tables.read_written(spans) if one.uncounted]
    if lost is None and purged:
        places = ", ".join(f"{one.stream_id}/{one.partition_id} up to {one.uncounted}" for one in purged)
        lost = f"{table}: the commits of {places} were purged, so nobody knows if SQL has all their rows"[:MOST]
    return lost


def lost_text(table: str, of: str, lost: dict[str, int]) -> str | None:
    """Return a sentence that names lost rows by day, or None without any."""
    days = [f"{day} ({rows})" for day, rows in lost.items()]
    return f"{table}: neither SQL nor a readable file has all rows {of} {', '.join(days)}"[:MOST] if days else None
