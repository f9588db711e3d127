"""The aggregates in the lake: each file that holds a touched window is written again, and untouched files stay.

A table has one row for each window, as SQL has it after the run. So a reader adds nothing up.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from core.aggregation.lake_tables import MANIFEST, TableChange, TableState, gold_table
from core.errors import LakeDamaged
from core.model.aggregates import WINDOW_START, Aggregate
from jobs.lake_files import (
    Layout,
    OpenLake,
    change_of,
    files_of,
    is_current,
    naming_damage,
    read_files,
    write_files,
    write_text,
)
from jobs.tables import Run, Tables
from jobs.transforms import as_stored, snapshot, window_columns

WINDOW_DATE = "window_date"


@dataclass(frozen=True, slots=True)
class Written:
    """The place of a manifest. `is_whole` is true if the files of a table replace all others."""

    path: str
    is_whole: bool


def write_gold(
    tables: Tables, run: Run, lake: OpenLake, levels: Sequence[tuple[Aggregate, DataFrame]]
) -> Written | None:
    """Write the windows of a run by level, with the numbers of their slices. A table with an unreadable file is written
    whole, and one that the app does not name is left out, because its log is damaged.

    Returns None when no table is left, or when somebody committed slices in the meantime, so that windows from SQL may
    be counted twice.
    """
    changes = {}
    for of, windows in levels:
        layout = gold_layout(of)
        state = lake.tables.get(layout.table)
        if state is None:
            continue
        with suppress(LakeDamaged):
            if is_current(layout, state, run.cut_from):
                changes[layout.table] = _difference(of, windows, state, lake)
        if layout.table not in changes:
            left = windows.where(F.col("slice") >= run.committed_slices).drop("slice")
            whole = snapshot(of, tables.standing(of, None), left)
            added = write_files(_dated(as_stored(of, whole)), lake, layout)
            changes[layout.table] = change_of(layout, added, (), True)
    is_whole = any(one.is_whole for one in changes.values())
    again = tables.read_run(run.run_id) if is_whole else run
    if not changes or again is None or again.committed_slices != run.committed_slices:
        return None
    return finish(lake, changes)


def finish(lake: OpenLake, changes: Mapping[str, TableChange]) -> Written:
    """Write the manifest of an execution into the folder of its first table."""
    place = f"{next(iter(changes))}/{lake.folder}"
    write_text(lake.spark, lake.place, f"{place}/{MANIFEST}", msgspec.json.encode(changes).decode())
    return Written(f"{lake.place}/{place}", any(one.is_whole for one in changes.values()))


def gold_layout(of: Aggregate) -> Layout:
    """Return the layout of the table of an aggregate: by day, in the order of time, in which windows are touched."""
    columns = {**window_columns(of), WINDOW_DATE: "date"}
    order = (WINDOW_START, *(one.name for one in of.grouped_by))
    return Layout(gold_table(of.name), columns, (WINDOW_DATE,), order)


def _difference(of: Aggregate, windows: DataFrame, state: TableState, lake: OpenLake) -> TableChange:
    """Write the files again that hold windows of the run, with the windows that no file held."""
    layout = gold_layout(of)
    picked = files_of(lake.spark, layout, state.files, _dated(windows))
    with naming_damage(lake.spark, lake.place, layout, picked):
        standing = read_files(lake.spark, lake.place, layout, picked)
        merged = snapshot(of, standing, windows.drop("slice"))
        added = write_files(_dated(as_stored(of, merged)), lake, layout)
    return change_of(layout, added, [one.path for one in picked], False)


def _dated(windows: DataFrame) -> DataFrame:
    return windows.withColumn(WINDOW_DATE, F.to_date(WINDOW_START))
