"""The files of the lake's tables: Parquet under a folder of each execution, in a folder, at an abfss address, or in
blobs.

Spark itself writes folders and abfss. A blob address ("https://ACCOUNT.blob.core.windows.net/CONTAINER") is for places
without a Spark driver, such as Azurite. There, pyarrow writes and reads on the executors, and the client of Azure
carries the files.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from operator import and_
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from core.aggregation.lake_tables import MEND, LakeFile, TableChange, TableState, range_end
from core.errors import LakeDamaged
from core.remote.spark.lake_storage import BlobStorage
from jobs.transforms import instant_text, schema_of

CONNECTION = "LAKE_CONNECTION"
PARQUET = {  # times as they are, of any year: by default Spark refuses those before 1900
    "outputTimestampType": "TIMESTAMP_MICROS",
    "datetimeRebaseModeInWrite": "CORRECTED",
    "datetimeRebaseModeInRead": "CORRECTED",
}
EACH = 200_000  # rows in a file
PATH = "__path"
Arrow = Callable[[Iterable[Any]], Iterator[Any]]


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
    """Write rows into a new folder of a table, and return its files. A repeated task leaves one set of files."""
    by = [*layout.partition, *layout.order]
    ordered = rows.select(*layout.columns).repartitionByRange(*by).sortWithinPartitions(*by)
    if _is_blob(to.place):
        upload = _uploader(BlobStorage(to.place, os.environ.get(CONNECTION)), to.folder, layout)
        texts = ordered.mapInArrow(upload, "file string").collect()
        return sorted((msgspec.json.decode(one[0], type=LakeFile) for one in texts), key=lambda one: one.path)
    place = f"{to.place}/{layout.table}/{to.folder}"
    written = ordered.write.partitionBy(*layout.partition).option("maxRecordsPerFile", EACH)
    written.mode("overwrite").parquet(place)  # of what the same execution wrote before it found damage
    return _described(to.spark, place, layout, to.folder)


def read_files(spark: SparkSession, lake: str, layout: Layout, files: Sequence[LakeFile]) -> DataFrame:
    """Return the rows of some files of a table, with all columns."""
    values = [(one.path, *(str(one.partition[name]) for name in layout.partition)) for one in files]
    names = [f"{name} string" for name in (PATH, *layout.partition)]
    if not files:
        return spark.createDataFrame([], schema_of(dict(layout.columns)))
    places = spark.createDataFrame(values, ", ".join(names))
    if _is_blob(lake):
        download = _downloader(BlobStorage(lake, os.environ.get(CONNECTION)), layout.table)
        schema = f"{PATH} string, {schema_of(layout.stored)}"
        found = places.select(PATH).repartition(len(files)).mapInArrow(download, schema)
    else:
        paths = [f"{lake}/{layout.table}/{one.path}" for one in files]
        reader = spark.read.schema(schema_of(layout.stored)).option("recursiveFileLookup", "true")
        within = F.substring_index(F.col("_metadata.file_path"), f"/{layout.table}/", -1)
        found = reader.parquet(*paths).select(within.alias(PATH), *layout.stored)
    placed = found.join(F.broadcast(places), PATH, "left")
    known = {}
    for name in layout.partition:  # fail rather than drop the rows of a file whose path this engine writes differently
        fault = F.raise_error(F.concat(F.lit(f"no {name} is known of the file "), F.col(PATH)))
        known[name] = F.coalesce(name, fault)
    columns = ((known.get(name, F.col(name)), name, kind) for name, kind in layout.columns.items())
    return placed.select(*(column.cast(kind).alias(name) for column, name, kind in columns))


@contextmanager
def naming_damage(spark: SparkSession, lake: str, layout: Layout, files: Sequence[LakeFile]) -> Iterator[None]:
    """Raise LakeDamaged for a fault of Spark, if one of these files of a table is unreadable."""
    try:
        yield
    except Exception as error:  # Spark has no one class for it
        if damaged := damaged_files(spark, lake, layout, files):
            raise LakeDamaged(f"LAKE: {layout.table}: {damaged[0].path} is gone or unreadable{MEND}") from error
        raise


def damaged_files(spark: SparkSession, lake: str, layout: Layout, files: Sequence[LakeFile]) -> list[LakeFile]:
    """Return the files of a table that are gone or unreadable. Halves are read until one file is left."""
    try:
        read_files(spark, lake, layout, files).write.format("noop").mode("overwrite").save()
    except Exception:  # noqa: BLE001 - Spark has no one class for it
        if len(files) == 1:
            return list(files)
        half = len(files) // 2
        return [one for some in (files[:half], files[half:]) for one in damaged_files(spark, lake, layout, some)]
    return []


def files_of(spark: SparkSession, layout: Layout, files: Sequence[LakeFile], touched: DataFrame) -> list[LakeFile]:
    """Return the files that may hold touched rows: of their partition, and with their values in the file's range.

    `touched` has columns of the partition, and of the order. A file without a range may hold any row of its partition.
    """
    if not files:
        return []
    ranged = [name for name in layout.order if name in touched.columns]
    names = [PATH, *(f"{name}__is" for name in layout.partition)]
    names += [f"{name}__{side}" for name in ranged for side in ("least", "most")]
    listed = []
    for one in files:
        ends = (end.get(name) for name in ranged for end in (one.least, one.most))
        partition = (str(one.partition[name]) for name in layout.partition)
        listed.append((one.path, *partition, *(None if end is None else str(end) for end in ends)))
    table = F.broadcast(spark.createDataFrame(listed, ", ".join(f"{name} string" for name in names)))
    holds = [F.col(name).cast("string") == F.col(f"{name}__is") for name in layout.partition]
    for name in ranged:
        least, most = (F.col(f"{name}__{side}").cast(layout.columns[name]) for side in ("least", "most"))
        holds.append((least.isNull() | (F.col(name) >= least)) & (most.isNull() | (F.col(name) <= most)))
    met = touched.join(table, reduce(and_, holds), "inner").select(PATH).distinct().collect()
    paths = {row[0] for row in met}
    return [one for one in files if one.path in paths]


def read_text(spark: SparkSession, lake: str, path: str) -> str:
    """Return the text that the app wrote for this job."""
    if _is_blob(lake):
        return BlobStorage(lake, os.environ.get(CONNECTION)).read(path).decode()
    if "://" not in lake:
        return (Path(lake) / path).read_text(encoding="utf-8")
    return str(spark.read.option("wholetext", True).text(f"{lake}/{path}").collect()[0][0])


def write_text(spark: SparkSession, lake: str, folder: str, text: str) -> None:
    """Write a text of one line as the only file of a new folder."""
    if _is_blob(lake):
        BlobStorage(lake, os.environ.get(CONNECTION)).write(f"{folder}/part.txt", text.encode())
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
    files, count = [], len(layout.partition)
    for path, size, *rest in found:
        values, rows, ends = rest[:count], rest[count], rest[count + 1 :]
        partition = {name: str(value) for name, value in zip(layout.partition, values, strict=True)}
        least, most = (dict(zip(layout.order, ends[side::2], strict=True)) for side in (0, 1))
        inside = path.rpartition(f"/{folder}/")[2]
        files.append(LakeFile(f"{folder}/{inside}", size, rows, partition, least, most))
    return sorted(files, key=lambda one: one.path)


def _printed(name: str, kind: str) -> Column:
    if kind == "timestamp":
        return instant_text(name, "Z")
    return F.col(name).cast("string") if kind == "date" else F.col(name)


def _is_blob(lake: str) -> bool:
    """Return True for a lake that Spark itself cannot write."""
    return lake.startswith(("https://", "http://"))


def _uploader(storage: BlobStorage, folder: str, layout: Layout) -> Arrow:
    """Return a function for mapInArrow: it uploads ordered rows, and returns a JSON text for each file."""

    def upload(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import compute, parquet
        from pyspark import TaskContext

        task = TaskContext.get()
        for number, (partition, table) in enumerate(_pieces(pa, batches, layout.partition)):
            inside = "/".join(f"{name}={value}" for name, value in partition.items())
            path = f"{folder}/{inside}/part-{task.partitionId() if task else 0:05}-{number:05}.parquet"
            sink = pa.BufferOutputStream()
            parquet.write_table(table, sink)
            content = bytes(sink.getvalue().to_pybytes())
            storage.write(f"{layout.table}/{path}", content)
            ends = {name: compute.min_max(table.column(name)).as_py() for name in layout.order}
            least, most = ({name: range_end(one[side]) for name, one in ends.items()} for side in ("min", "max"))
            one = LakeFile(path, len(content), table.num_rows, partition, least, most)
            yield pa.RecordBatch.from_arrays([pa.array([msgspec.json.encode(one).decode()])], names=["file"])

    return upload


def _downloader(storage: BlobStorage, table: str) -> Arrow:
    """Return a function for mapInArrow, from the paths of a table's files to their rows, each with its path."""

    def download(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import parquet

        for batch in batches:
            for path in batch.column(0).to_pylist():
                content = storage.read(f"{table}/{path}")
                for part in parquet.read_table(pa.BufferReader(content)).to_batches():
                    paths = pa.array([path] * part.num_rows, pa.string())
                    yield pa.RecordBatch.from_arrays([paths, *part.columns], names=[PATH, *part.schema.names])

    return download


def _pieces(pa: Any, batches: Iterable[Any], names: tuple[str, ...]) -> Iterator[tuple[dict[str, str], Any]]:
    """Return the rows of each partition, at most about `EACH` of them, without the columns of the partition."""
    standing: tuple[str, ...] = ()
    parts: list[Any] = []
    for batch in batches:
        rows = zip(*(map(str, batch.column(name).to_pylist()) for name in names), strict=True)
        for values, run in groupby(enumerate(rows), key=lambda one: one[1]):
            numbers = [at for at, _ in run]
            if parts and (values != standing or sum(one.num_rows for one in parts) >= EACH):
                yield dict(zip(names, standing, strict=True)), pa.Table.from_batches(parts).drop_columns(list(names))
                parts = []
            standing = values
            parts.append(batch.slice(numbers[0], len(numbers)))
    if parts:
        yield dict(zip(names, standing, strict=True)), pa.Table.from_batches(parts).drop_columns(list(names))
