"""Jobs that write the lake's files with polars, by hand: no Spark is needed to test a publication."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
from deltalake import DeltaTable

from core.aggregation.lake_publication import hand_over, publish, tables_of
from core.aggregation.lake_tables import MANIFEST, LakeFile, TableChange, TableState
from core.aggregation.runs import AggregationRun, planned_run
from core.remote.spark.delta import DeltaLake
from core.remote.spark.lake_storage import FolderStorage
from tests.fakes.aggregation_engines import SqliteAggregation, committed, finish, ingest
from tests.fakes.builders import FakeClock, reading
from tests.fakes.engines import SqliteEngine

ONE_LEVEL = "flight_punctuality"  # an aggregate with one level, so with one table
COLUMNS = {"home_id": "string", "readings": "bigint", "window_date": "date"}
DAY = "2026-02-10"


def written(lake: Path, table: str, folder: str, rows: Sequence[tuple[str, int]]) -> LakeFile:
    path = f"{folder}/window_date={DAY}/part-0.parquet"
    place = lake / table / path
    place.parent.mkdir(parents=True, exist_ok=True)
    schema = {"home_id": pl.String, "readings": pl.Int64}
    pl.DataFrame(list(rows), schema=schema, orient="row").write_parquet(place)
    homes = sorted(home for home, _ in rows)
    ends = ({"home_id": homes[0]}, {"home_id": homes[-1]}) if homes else ({}, {})
    return LakeFile(path, place.stat().st_size, len(rows), {"window_date": DAY}, *ends)


def change(added: Sequence[LakeFile], removed: Sequence[str] = (), is_whole: bool = False) -> TableChange:
    return TableChange(COLUMNS, ("window_date",), tuple(added), tuple(removed), is_whole)


def manifest(lake: Path, table: str, folder: str, changes: dict[str, TableChange]) -> str:
    """Write a manifest as Spark does. Return its place."""
    place = lake / table / folder / MANIFEST
    place.mkdir(parents=True)
    (place / "_SUCCESS").write_text("")
    (place / "part-00000.txt").write_text(msgspec.json.encode(changes).decode() + "\n", encoding="utf-8")
    return str(lake / table / folder)


def rows_in(lake: Path, table: str) -> list[tuple[Any, ...]]:
    return sorted(pl.read_delta(str(lake / table)).select("home_id", "readings").rows())


class LakeWorld:
    """A store whose runs have no windows, and a lake to which a test writes by hand."""

    def __init__(self, folder: Path, job: str = ONE_LEVEL) -> None:
        self.job = job
        self.table = tables_of(job)[-1]
        self.folder = folder / "lake"
        self.lake = DeltaLake(FolderStorage(self.folder))
        self.database = SqliteAggregation(SqliteEngine(folder / "store.db"))
        self.store = self.database.open()
        self.clock = FakeClock()

    def plan(self) -> AggregationRun:
        ingest(self.store, [reading()])
        run = planned_run(self.job, self.store.read_standing(self.job), "fake", self.clock.now())
        assert run is not None
        assert self.store.open_run(run)
        return run

    def close(self, run: AggregationRun, place: str | None, is_whole: bool = False) -> None:
        self.finish(run)
        sql = "UPDATE staged_result SET lake_path = ?, is_snapshot = ? WHERE staging_id = ?"
        self.database.sqlite.sql(sql, place, int(is_whole), run.run_id)
        staged = self.store.read_staged(run.run_id)
        assert staged is not None
        assert committed(self.store, run, staged, self.clock.now())

    def finish(self, run: AggregationRun) -> None:
        finish(self.database, run.run_id, run.run_id, self.clock.now())
        self.database.sqlite.sql("UPDATE staged_result SET levels = ?", json.dumps({self.job: 0}))

    def run(self, home: str, is_whole: bool = False) -> AggregationRun:
        run = self.plan()
        added = written(self.folder, self.table, run.run_id, [(home, run.number)])
        changes = {self.table: change([added], is_whole=is_whole)}
        self.close(run, manifest(self.folder, self.table, run.run_id, changes), is_whole)
        return run

    def state(self) -> TableState:
        (_, place, _, path) = hand_over(self.store, self.lake, self.store.read_runs(self.job, 10**9, 1)[0])
        return msgspec.json.decode((Path(place) / path).read_bytes(), type=dict[str, TableState])[self.table]

    def publish(self) -> bool:
        return not publish(self.store, self.lake, self.job)

    def rows(self) -> list[tuple[Any, ...]]:
        return rows_in(self.folder, self.table)

    def version(self) -> int:
        return int(DeltaTable(str(self.folder / self.table)).version())
