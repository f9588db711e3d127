"""The rows of a source in the lake: appended by a separate job, and read as of any cut up to the lake's.

A run (f, t] adds the rows that its commits wrote and that count at t, and takes away those that replays removed in it.
The removed rows go to a second table. The app commits that table first: a reader ignores removals after the cut of the
rows, so that the death of the app between the two commits changes no answer.
"""

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from core.aggregation.lake_tables import (
    EVENT_DATE,
    LINEAGE,
    REMOVED_AT,
    LakeFile,
    LakeRows,
    Remake,
    TableChange,
    TableState,
    lake_rows,
    rows_of_job,
)
from core.aggregation.runs import NO_CUT
from core.model.aggregates import Aggregate
from core.model.rows import OURS
from core.transforms.loading import load_aggregates
from jobs.lake import finish
from jobs.lake_files import Layout, OpenLake, change_of, files_of, is_current, naming_damage, read_files, write_files
from jobs.lake_remake import lost_of_files, lost_of_ledger, with_rescued
from jobs.ranges import CommitSpan, commits_where, place_where, slices_of, spans_between
from jobs.row_texts import LINEAGE_KINDS, row_kinds
from jobs.tables import Result, Run, Tables
from jobs.transforms import SliceFacts, schema_of, source_columns

UP_TO = f"{OURS}up_to"  # the last commit of a partition at a cut
CUT = f"stream_id bigint, partition_id string, {UP_TO} bigint"
POSITION = list(LINEAGE)


def finish_rows(tables: Tables, run: Run, lake: OpenLake | None, transform: str) -> Result | None:
    """Write the rows of a run, and finish it. Return None without a lake, because the whole result is there.

    The result of a table that is made anew without all its rows is the fault that names them by day.
    """
    if lake is None:
        return None
    rows, states = rows_of_job(run.job, load_aggregates()), lake.tables
    begin = _begin(rows_layout(rows), states.get(rows.table), run)
    standing = _standing(tables, rows, begin, run.cut_to).persist()
    standing.count()  # before the rows that replays remove at the same time: those are found as removed
    if lost := _lost(tables, rows, standing, (run, lake), transform):
        standing.unpersist()
        fact = SliceFacts(0, 0, 0, 0, run.job, lost)
        place = (lake.folder, run.run_id, run.attempt)
        result = Result(*place, (fact,), 0, None, False, datetime.now(UTC), (run.job,))
        tables.finish(result)
        return result
    changes = {
        rows.removed: _appended(tables, rows, states.get(rows.removed), run, lake),
        rows.table: _replaced(tables, rows, standing, (run, lake)),
    }
    count = _added(tables, rows, standing, begin, run.cut_to).count()
    standing.unpersist()
    written, place = finish(lake, changes), (lake.folder, run.run_id, run.attempt)
    result = Result(*place, (), count, written.path, written.is_whole, datetime.now(UTC), (run.job,))
    tables.finish(result)
    return result


def rows_as_of(of: Aggregate, lake: OpenLake, cut: str, days: tuple[date, date] | None = None) -> DataFrame:
    """Return the rows of an aggregate's source that count at a cut, with their lineage. Both days are included.

    Raises ValueError for a cut that the lake has not reached.
    """
    (rows,) = lake_rows([of])
    state = lake.tables[rows.table]
    if not reaches(state.cut, cut):
        raise ValueError(f"{rows.table} is at the cut {state.cut}, before {cut}: wait until its job has reached it")
    standing = _of_days(lake, rows_layout(rows), days)
    removed = _of_days(lake, removed_layout(rows), days)
    columns = [*LINEAGE, *source_columns(of)]
    written = _written_by(standing, cut, "commit_number").select(*columns)
    again = _written_by(_written_by(removed, cut, "commit_number"), str(state.cut), REMOVED_AT)
    still = again.join(F.broadcast(_ends(lake.spark, cut)), ["stream_id", "partition_id"], "inner")
    return written.unionByName(still.where(F.col(REMOVED_AT) > F.col(UP_TO)).select(*columns))


def reaches(reached: str | None, cut: str) -> bool:
    """Return True when one cut is at or after a different one in each partition."""
    end = json.loads(reached) if reached is not None else None
    return end is not None and all(end.get(name, 0) >= number for name, number in json.loads(cut).items())


def rows_layout(rows: LakeRows) -> Layout:
    """Return the layout of the rows: by stream and event date, in the order of their partitions."""
    columns = {**LINEAGE_KINDS, **row_kinds(rows.source), EVENT_DATE: "date"}
    return Layout(rows.table, columns, ("stream_id", EVENT_DATE), ("partition_id", "sequence_number", "commit_number"))


def removed_layout(rows: LakeRows) -> Layout:
    """Return the layout of the rows that replays removed."""
    layout = rows_layout(rows)
    columns = {**layout.columns, REMOVED_AT: "bigint"}
    return Layout(rows.removed, columns, layout.partition, (*layout.order, REMOVED_AT))


def _begin(layout: Layout, state: TableState | None, run: Run) -> str:
    """Return the cut after which a run has to write: the table's cut, if the run begins there, or none."""
    if state is not None and state.cut == run.cut_to:
        return run.cut_to  # the app committed this table, and died before the other one
    return run.cut_from if is_current(layout, state, run.cut_from) else "{}"


def _standing(tables: Tables, rows: LakeRows, begin: str, end: str) -> DataFrame:
    """Return the rows that SQL still has of the commits between two cuts."""
    spans = spans_between(begin, end)
    return _dated(tables.lineage_rows(rows.source, slices_of(spans, tables.read_ledger(spans))), rows)


def _lost(tables: Tables, rows: LakeRows, standing: DataFrame, of: tuple[Run, OpenLake], transform: str) -> str | None:
    """Return the fault of a table that is made anew and would lack rows, or None."""
    run, lake = of
    for layout in (rows_layout(rows), removed_layout(rows)):
        state, lost = lake.tables.get(layout.table), None
        remake = None if state is None else state.remake
        is_gone = state is None or (remake is None and state.cut == NO_CUT != run.cut_from)
        is_anew = is_gone or (remake is not None and not remake.accepts_loss)
        if is_anew and remake is not None and remake.files is not None:
            before = _rows_before(tables, rows, standing, run, (lake, layout, remake))
            lost = lost_of_files(layout, remake, before)
        elif is_anew and layout.table == rows.table:  # nothing counts the rows that replays removed
            lost = lost_of_ledger(tables, layout.table, transform, run.cut_to)
        if lost is not None:
            return lost
    return None


def _rows_before(
    tables: Tables, rows: LakeRows, standing: DataFrame, run: Run, to: tuple[OpenLake, Layout, Remake]
) -> DataFrame:
    """Return the rows that a table which is made anew has from before the cut where the run begins."""
    if to[1].table == rows.removed:
        found = with_rescued(tables, rows, _removed(tables, rows, "{}", run.cut_to), to, run.cut_to)
        return _written_by(found, run.cut_from, REMOVED_AT)
    found = with_rescued(tables, rows, _added(tables, rows, standing, "{}", run.cut_to), to, run.cut_to)
    since = _removed(tables, rows, run.cut_from, run.cut_to).drop(REMOVED_AT)  # the files still had these rows
    return _written_by(found.unionByName(since), run.cut_from, "commit_number")


def _added(tables: Tables, rows: LakeRows, standing: DataFrame, begin: str, end: str) -> DataFrame:
    """Return the rows that commits between two cuts wrote and that count at the second, also those removed since."""
    wanted = [_removed_after(one) for one in spans_between(begin, end)]
    later = _typed(tables.removed_rows(rows.source, wanted), rows).drop(REMOVED_AT)
    return standing.join(F.broadcast(later.select(*POSITION)), POSITION, "left_anti").unionByName(later)


def _removed(tables: Tables, rows: LakeRows, begin: str, end: str) -> DataFrame:
    """Return the rows that replays between two cuts removed."""
    wanted = [commits_where(one) for one in spans_between(begin, end)]
    return _typed(tables.removed_rows(rows.source, wanted), rows)


def _appended(tables: Tables, rows: LakeRows, state: TableState | None, run: Run, lake: OpenLake) -> TableChange:
    layout = removed_layout(rows)
    begin = _begin(layout, state, run)
    removed = _removed(tables, rows, begin, run.cut_to)
    if state is not None and state.remake is not None:
        removed = with_rescued(tables, rows, removed, (lake, layout, state.remake), run.cut_to)
    return change_of(layout, write_files(removed, lake, layout), (), begin not in (run.cut_from, run.cut_to))


def _replaced(tables: Tables, rows: LakeRows, standing: DataFrame, of: tuple[Run, OpenLake]) -> TableChange:
    """Write the added rows, and the files again from which replays removed rows."""
    layout, (run, lake) = rows_layout(rows), of
    state = lake.tables.get(rows.table)
    begin = _begin(layout, state, run)
    added = _added(tables, rows, standing, begin, run.cut_to)
    if state is None or begin != run.cut_from:
        is_whole = begin != run.cut_to
        if state is not None and state.remake is not None:
            added = with_rescued(tables, rows, added, (lake, layout, state.remake), run.cut_to)
        return change_of(layout, write_files(added, lake, layout), (), is_whole)
    removed = _removed(tables, rows, begin, run.cut_to)
    gone = _written_by(removed, run.cut_from, "commit_number")
    picked = files_of(lake.spark, layout, state.files, gone)
    with naming_damage(lake.spark, lake.place, layout, picked):
        kept = read_files(lake.spark, lake.place, layout, picked).join(gone.select(*POSITION), POSITION, "left_anti")
        files = write_files(added.unionByName(kept), lake, layout)
    return change_of(layout, files, [one.path for one in picked], False)


def _typed(removed: DataFrame, rows: LakeRows) -> DataFrame:
    """Return removed rows with their lineage, the columns of their class, and the commit that removed them."""
    kinds = row_kinds(rows.source)
    document = F.from_json("document", schema_of(dict.fromkeys(kinds, "string"))).alias("document")
    lineage = [F.col(name) for name in LINEAGE if name != "commit_number"]
    opened = removed.select(*lineage, "row_commit_number", F.col("commit_number").alias(REMOVED_AT), document)
    columns = [F.col("document")[name].cast(kind).alias(name) for name, kind in kinds.items()]
    commit = F.col("row_commit_number").alias("commit_number")
    return _dated(opened.select(*lineage, commit, *columns, REMOVED_AT), rows)


def _dated(found: DataFrame, rows: LakeRows) -> DataFrame:
    kinds = {**LINEAGE_KINDS, **row_kinds(rows.source)}
    others = [name for name in found.columns if name not in kinds]
    typed = (F.col(name).cast(kind).alias(name) for name, kind in kinds.items())
    return found.select(*typed, *others, F.to_date(rows.at).alias(EVENT_DATE))


def _removed_after(span: CommitSpan) -> str:
    written = f"row_commit_number > {span.after} AND row_commit_number <= {span.up_to}"
    return f"{place_where(span)} AND commit_number > {span.up_to} AND {written}"


def _of_days(lake: OpenLake, layout: Layout, days: tuple[date, date] | None) -> DataFrame:
    files: Sequence[LakeFile] = lake.tables[layout.table].files
    if days is not None:
        first, last = (day.isoformat() for day in days)
        files = [one for one in files if first <= one.partition[EVENT_DATE] <= last]
    return read_files(lake.spark, lake.place, layout, files)


def _written_by(rows: DataFrame, cut: str, column: str) -> DataFrame:
    ends = F.broadcast(_ends(rows.sparkSession, cut))
    known = rows.join(ends, ["stream_id", "partition_id"], "inner").where(F.col(column) <= F.col(UP_TO))
    return known.drop(UP_TO)


def _ends(spark: SparkSession, cut: str) -> DataFrame:
    places = ((name.partition("/"), number) for name, number in json.loads(cut).items())
    ends = [(int(stream_id), partition_id, number) for (stream_id, _, partition_id), number in places]
    return spark.createDataFrame(ends, CUT)
