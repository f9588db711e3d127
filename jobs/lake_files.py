"""The files of the lake's tables: Parquet under a folder of each execution, in a folder, at an abfss address, or in
blobs.

Spark itself writes folders and abfss. A blob address ("https://ACCOUNT.blob.core.windows.net/CONTAINER") is for places
without a Spark driver, such as Azurite: there, `jobs/lake_blobs.py` writes and reads on the executors.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from core.aggregation.lake_tables import LakeFile, TableChange, TableState
from jobs import lake_blobs
from jobs.transforms import schema_of

CONNECTION = "LAKE_CONNECTION"
PARQUET = {  # times as they are, of any year: by default Spark refuses those before 1900
    "outputTimestampType": "TIMESTAMP_MICROS",
    "datetimeRebaseModeInWrite": "CORRECTED",
    "datetimeRebaseModeInRead": "CORRECTED",
}
EACH = 200_000  # rows in a file
PATH = "__path"
INSTANT = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"


@dataclass(frozen=True, slots=True)
class Layout:
    """A table: its columns with their types in Spark, those that divide it into folders, and the order of its rows.

    The files describe the range of the columns in `order`.
    """

    table: str
    columns: Mapping[str, str]
    partition: tuple[str, ...]
    order: tuple[str, ...]

    @property
    def stored(self) -> dict[str, str]:
        """The columns that are inside the files."""
        return {name: kind for name, kind in self.columns.items() if name not in self.partition}


@dataclass(frozen=True, slots=True)
class OpenLake:
    """A lake, the state of its tables that the app handed over, and the folder of an execution in each table."""

    spark: SparkSession
    place: str
    tables: Mapping[str, TableState]
    folder: str


def open_lake(spark: SparkSession, lake: str, state: str, folder: str = "") -> OpenLake:
    """Return a lake with the state that the app wrote at a path."""
    for name, value in PARQUET.items():
        spark.conf.set(f"spark.sql.parquet.{name}", value)
    states = msgspec.json.decode(read_text(spark, lake, state), type=dict[str, TableState])
    return OpenLake(spark, lake, states, folder)


def is_current(layout: Layout, state: TableState | None, cut: str) -> bool:
    """Return True when a table is at a cut with these columns, so that a run only has to write its difference."""
    return state is not None and state.cut == cut and (not state.columns or dict(state.columns) == dict(layout.columns))


def change_of(layout: Layout, added: Sequence[LakeFile], removed: Sequence[str], is_whole: bool) -> TableChange:
    """Return the change of a table."""
    return TableChange(layout.columns, layout.partition, tuple(added), tuple(removed), is_whole)


def write_files(rows: DataFrame, to: OpenLake, layout: Layout) -> list[LakeFile]:
    """Write rows into a new folder of a table; return its files. A repeated task leaves one set of files."""
    lake, folder = to.place, to.folder
    by = [*layout.partition, *layout.order]
    ordered = rows.select(*layout.columns).repartitionByRange(*by).sortWithinPartitions(*by)
    place = f"{layout.table}/{folder}"
    if lake_blobs.is_blob(lake):
        upload = lake_blobs.uploader(lake, place, lake_blobs.Form(folder, layout.partition, layout.order, EACH))
        return lake_blobs.described(ordered.mapInArrow(upload(os.environ.get(CONNECTION)), "file string"))
    written = ordered.write.partitionBy(*layout.partition).option("maxRecordsPerFile", EACH)
    written.parquet(f"{lake}/{place}")
    return _described(rows.sparkSession, f"{lake}/{place}", layout, folder)


def read_files(spark: SparkSession, lake: str, layout: Layout, files: Sequence[LakeFile]) -> DataFrame:
    """Return the rows of some files of a table, with all columns."""
    values = [(one.path, *(str(one.partition[name]) for name in layout.partition)) for one in files]
    names = [f"{name} string" for name in (PATH, *layout.partition)]
    if not files:
        return spark.createDataFrame([], schema_of(dict(layout.columns)))
    places = spark.createDataFrame(values, ", ".join(names))
    if lake_blobs.is_blob(lake):
        download = lake_blobs.downloader(lake, layout.table, os.environ.get(CONNECTION))
        schema = f"{PATH} string, {schema_of(layout.stored)}"
        found = places.select(PATH).repartition(len(files)).mapInArrow(download, schema)
    else:
        paths = [f"{lake}/{layout.table}/{one.path}" for one in files]
        reader = spark.read.schema(schema_of(layout.stored)).option("recursiveFileLookup", "true")
        within = F.substring_index(F.col("_metadata.file_path"), f"/{layout.table}/", -1)
        found = reader.parquet(*paths).select(within.alias(PATH), *layout.stored)
    placed = found.join(F.broadcast(places), PATH, "left")
    known = {name: F.coalesce(name, _unknown(name)) for name in layout.partition}
    columns = ((known.get(name, F.col(name)), name, kind) for name, kind in layout.columns.items())
    return placed.select(*(column.cast(kind).alias(name) for column, name, kind in columns))


def files_of(spark: SparkSession, layout: Layout, files: Sequence[LakeFile], touched: DataFrame) -> list[LakeFile]:
    """Return the files that may hold touched rows: of their partition, and with their values in the file's range.

    `touched` has columns of the partition, and of the order; a file without a range may hold any row of its partition.
    """
    if not files:
        return []
    ranged = [name for name in layout.order if name in touched.columns]
    ends = [(name, side) for name in ranged for side in ("least", "most")]
    listed = [
        (one.path, *(str(one.partition[name]) for name in layout.partition), *(_end(one, *end) for end in ends))
        for one in files
    ]
    names = [PATH, *(f"{name}__is" for name in layout.partition), *(f"{name}__{side}" for name, side in ends)]
    table = F.broadcast(spark.createDataFrame(listed, ", ".join(f"{name} string" for name in names)))
    holds = [F.col(name).cast("string") == F.col(f"{name}__is") for name in layout.partition]
    holds += [_within(name, layout.columns[name]) for name in ranged]
    met = touched.join(table, reduce(and_, holds), "inner").select(PATH).distinct().collect()
    paths = {row[0] for row in met}
    return [one for one in files if one.path in paths]


def read_text(spark: SparkSession, lake: str, path: str) -> str:
    """Return the text that the app wrote for this job."""
    if lake_blobs.is_blob(lake):
        return lake_blobs.read_text(lake, path, os.environ.get(CONNECTION))
    if "://" not in lake:
        return (Path(lake) / path).read_text(encoding="utf-8")
    return str(spark.read.option("wholetext", True).text(f"{lake}/{path}").collect()[0][0])


def write_text(spark: SparkSession, lake: str, folder: str, text: str) -> None:
    """Write a text of one line as the only file of a new folder."""
    if lake_blobs.is_blob(lake):
        lake_blobs.write_text(lake, f"{folder}/part.txt", text, os.environ.get(CONNECTION))
    else:
        spark.createDataFrame([(text,)], "value string").coalesce(1).write.text(f"{lake}/{folder}")


def _described(spark: SparkSession, place: str, layout: Layout, folder: str) -> list[LakeFile]:
    """Return the files of a folder, from the rows in them: engines differ in their access to the ends of a file."""
    ends = [side(_printed(name, layout.columns[name])) for name in layout.order for side in (F.min, F.max)]
    found = (
        spark.read.schema(schema_of(dict(layout.columns)))
        .parquet(place)
        .groupBy("_metadata.file_path", "_metadata.file_size", *layout.partition)
        .agg(F.count(F.lit(1)), *ends)
        .collect()
    )
    return sorted((_file(tuple(row), layout, folder) for row in found), key=lambda one: one.path)


def _file(row: tuple[Any, ...], layout: Layout, folder: str) -> LakeFile:
    path, size, *rest = row
    count = len(layout.partition)
    values, rows, ends = rest[:count], rest[count], rest[count + 1 :]
    partition = {name: str(value) for name, value in zip(layout.partition, values, strict=True)}
    least = dict(zip(layout.order, ends[::2], strict=True))
    most = dict(zip(layout.order, ends[1::2], strict=True))
    return LakeFile(f"{folder}/{path.rpartition(f'/{folder}/')[2]}", size, rows, partition, least, most)


def _printed(name: str, kind: str) -> Column:
    if kind == "timestamp":
        return F.date_format(name, INSTANT)
    return F.col(name).cast("string") if kind == "date" else F.col(name)


def _unknown(name: str) -> Column:
    """Fail rather than drop the rows of a file whose path this engine writes differently."""
    return F.raise_error(F.concat(F.lit(f"no {name} is known of the file "), F.col(PATH)))


def _end(one: LakeFile, name: str, side: str) -> str | None:
    value = (one.least if side == "least" else one.most).get(name)
    return None if value is None else str(value)


def _within(name: str, kind: str) -> Column:
    least, most = (F.col(f"{name}__{side}").cast(kind) for side in ("least", "most"))
    return (least.isNull() | (F.col(name) >= least)) & (most.isNull() | (F.col(name) <= most))
