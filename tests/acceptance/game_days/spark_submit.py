"""A stand-in for spark-submit without Java: it adds up the stored rows in plain Python, and stages the result.

Its windows are whole, so a run replaces the windows that it touches. `rows` of its quality are counted as jobs do.
"""

import argparse
import json
import os
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.aggregation.runs import AggregationRun
from core.model.aggregates import aggregate_table
from examples.home_security.aggregates.home_activity import HomeActivity
from examples.home_security.transform import HomeAlert, SensorReading
from tests.fakes.aggregation_engines import SqliteAggregation, finish, stage
from tests.fakes.engines import SqliteEngine
from tests.fakes.rollups import windows_of, with_levels

COMMITS = "SELECT stream_id, partition_id, commit_number, COALESCE(rows_appended, 0) FROM batch_ledger"
SCRIPT = '#!/bin/sh\nexec "{python}" -m tests.acceptance.game_days.spark_submit "$@"\n'


class WithoutLake(SqliteAggregation):
    def insert(self, table: str, columns: str, rows: Sequence[Sequence[Any]]) -> None:
        at = columns.split(", ").index("lake_path") if table == "staged_result" else None
        super().insert(
            table, columns, [[None if place == at else value for place, value in enumerate(row)] for row in rows]
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--run-id", required=True)
    given, _ = parser.parse_known_args()
    engine = WithoutLake(SqliteEngine(Path(os.environ["STORE_CONNECTION"].removeprefix("sqlite:"))))
    store = engine.open()
    run = store.read_standing(aggregate_table(HomeActivity).name).open_run
    assert run is not None and run.run_id == given.run_id
    end: dict[str, int] = json.loads(run.cut_to)
    readings = engine.sqlite.rows(SensorReading)
    rows = [one for one in readings if one.commit_number <= end.get(f"{one.stream_id}/{one.partition_id}", 0)]
    windows = windows_of([one.row for one in rows], aggregate_table(HomeActivity))
    staging = f"{run.run_id}-{run.attempt}-{uuid.uuid4().hex}"
    stage(engine, staging, run.run_id, with_levels(windows) if windows else [], whole=True)
    finish(engine, staging, run.run_id, datetime.now(UTC), _quality(engine.sqlite, run))
    store.close()


def _quality(store: SqliteEngine, run: AggregationRun) -> str | None:
    if run.kind != "increment":
        return None
    ledger = _counted(run, store.sql(COMMITS))
    rows = (*store.rows(SensorReading), *store.rows(HomeAlert))
    found = _counted(run, [(one.stream_id, one.partition_id, one.commit_number, 1) for one in rows])
    differing = [
        {"partition": place, "ledger": ledger[place], "found": found[place]}
        for place in ledger
        if ledger[place] != found[place]
    ]
    counts: dict[str, Any] = {"rows_ledger": ledger.total(), "rows_read": found.total(), "rows_removed": 0}
    counts |= {"rows_elsewhere": 0, "rows_difference": found.total() - ledger.total(), "rows_late": 0}
    fault = f"the run read {found.total()} rows, and the ledger counts {ledger.total()}" if differing else None
    return json.dumps({"fault": fault, **counts, "partitions": differing})


def _counted(run: AggregationRun, rows: Iterable[tuple[int, str, int, int]]) -> Counter[str]:
    begin, end, found = json.loads(run.cut_from), json.loads(run.cut_to), Counter[str]()
    for stream, partition, number, count in rows:
        place = f"{stream}/{partition}"
        if begin.get(place, 0) < number <= end.get(place, 0):
            found[place] += count
    return found


if __name__ == "__main__":
    main()
