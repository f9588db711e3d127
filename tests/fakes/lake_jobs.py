"""A job that writes the lake's files with polars, by hand: no Spark is needed to test a publication."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from core.aggregation.lake import MANIFEST, LakeFile, TableChange, manifest_json

COLUMNS = {"home_id": "string", "readings": "bigint", "window_date": "date"}
DAY = "2026-02-10"


def written(lake: Path, table: str, folder: str, rows: Sequence[tuple[str, int]]) -> LakeFile:
    """Write rows of one day as a file of a table."""
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
    """Write a manifest as Spark does; return its place."""
    place = lake / table / folder / MANIFEST
    place.mkdir(parents=True)
    (place / "_SUCCESS").write_text("")
    (place / "part-00000.txt").write_text(manifest_json(changes) + "\n", encoding="utf-8")
    return str(lake / table / folder)


def rows_in(lake: Path, table: str) -> list[tuple[Any, ...]]:
    """Return the homes and their readings, as polars reads them."""
    return sorted(pl.read_delta(str(lake / table)).select("home_id", "readings").rows())
