"""The aggregates in the lake: each file that holds a touched window is written again, and untouched files stay.

A table has one row for each window, as SQL has it after the run. So a reader adds nothing up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from core.aggregation.lake_tables import MANIFEST, TableChange, TableState, gold_table, manifest_json
from core.model.aggregates import WINDOW_START, Aggregate
from jobs.lake_files import Layout, change_of, files_of, is_current, open_lake, read_files, write_files, write_text
from jobs.tables import Run, Tables
from jobs.transforms import as_stored, snapshot, window_columns

WINDOW_DATE = "window_date"


@dataclass(frozen=True, slots=True)
class Target:
    """The lake of an execution, the path of the state of its tables, and the folder of its files in each table."""

    lake: str
    state: str
    folder: str


@dataclass(frozen=True, slots=True)
class Written:
    """The place of a manifest; `is_whole`: the files of a table replace all others."""

    path: str
    is_whole: bool


def write_gold(
    tables: Tables, run: Run, target: Target, levels: Sequence[tuple[Aggregate, DataFrame]]
) -> Written | None:
    """Write the windows of a run by level, with the numbers of their slices.

    Returns None when somebody committed slices in the meantime, so that windows from SQL may be counted twice.
    """
    spark = levels[0][1].sparkSession
    states = open_lake(spark, target.lake, target.state).tables
    changes = {}
    for of, windows in levels:
        layout = gold_layout(of)
        state = states.get(layout.table)
        if state is not None and is_current(layout, state, run.cut_from):
            changes[layout.table] = _difference(spark, of, windows, state, target)
        else:
            left = windows.where(F.col("slice") >= run.committed_slices).drop("slice")
            whole = snapshot(of, tables.standing(of, None), left)
            added = write_files(_dated(as_stored(of, whole)), target.lake, layout, target.folder)
            changes[layout.table] = change_of(layout, added, (), True)
    is_whole = any(one.is_whole for one in changes.values())
    if is_whole and _slices_moved(tables, run):
        return None
    return finish(spark, target, changes)


def finish(spark: SparkSession, target: Target, changes: Mapping[str, TableChange]) -> Written:
    """Write the manifest of an execution into the folder of its first table."""
    place = f"{next(iter(changes))}/{target.folder}"
    write_text(spark, target.lake, f"{place}/{MANIFEST}", manifest_json(changes))
    return Written(f"{target.lake}/{place}", any(one.is_whole for one in changes.values()))


def gold_layout(of: Aggregate) -> Layout:
    """Return the layout of the table of an aggregate: by day, in the order of time, in which windows are touched."""
    columns = {**window_columns(of), WINDOW_DATE: "date"}
    order = (WINDOW_START, *(one.name for one in of.grouped_by))
    return Layout(gold_table(of.name), columns, (WINDOW_DATE,), order)


def _difference(
    spark: SparkSession, of: Aggregate, windows: DataFrame, state: TableState, target: Target
) -> TableChange:
    """Write the files again that hold windows of the run, with the windows that no file held."""
    layout = gold_layout(of)
    picked = files_of(spark, layout, state.files, _dated(windows))
    standing = read_files(spark, target.lake, layout, picked)
    merged = snapshot(of, standing, windows.drop("slice"))
    added = write_files(_dated(as_stored(of, merged)), target.lake, layout, target.folder)
    return change_of(layout, added, [one.path for one in picked], False)


def _dated(windows: DataFrame) -> DataFrame:
    return windows.withColumn(WINDOW_DATE, F.to_date(WINDOW_START))


def _slices_moved(tables: Tables, run: Run) -> bool:
    again = tables.read_run(run.run_id)
    return again is None or again.committed_slices != run.committed_slices
