"""The lake of the jobs: Parquet files under a path of each execution, in a folder, at an abfss address, or in blobs.

Spark itself writes folders and abfss. A blob address ("https://ACCOUNT.blob.core.windows.net/CONTAINER") is for places
without a Spark driver, such as Azurite: there, pyarrow writes the files and the executors upload them.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from core.aggregation.lake import Pointer
from core.model.aggregates import Aggregate
from core.remote.spark.lakes import open_container
from jobs.transforms import of_all_runs, schema_of, window_columns

CONNECTION = "LAKE_CONNECTION"
EACH = 200_000  # windows in a file


def write_run(windows: DataFrame, lake: str, path: str) -> str:
    """Write a result under the path of one execution; return its address. A repeated task leaves one set of files."""
    if _is_blob(lake):
        connection = os.environ.get(CONNECTION)
        uploaded = windows.mapInArrow(_uploader(lake, path, connection), "name string")
        uploaded.agg(F.count("name")).collect()
    else:
        windows.write.option("maxRecordsPerFile", EACH).parquet(f"{lake}/{path}")
    return f"{lake}/{path}"


def lake_schema(of: Aggregate) -> str:
    """Return the columns of the files of a run."""
    columns = window_columns(of)
    return schema_of({**{name: columns[name] for name in of.key}, "is_whole": "boolean", **columns})


def read_aggregate(spark: SparkSession, of: Aggregate, lake: str, pointer: Pointer) -> DataFrame:
    """Return the aggregate at a pointer's cut, from the files of all runs that the pointer lists."""
    schema = lake_schema(of)
    found = spark.createDataFrame([], f"{schema}, run_number bigint")
    for run in pointer.runs:
        windows = _read(spark, schema, lake, run.path).withColumn("run_number", F.lit(run.number).cast("bigint"))
        found = found.unionByName(windows)
    return of_all_runs(of, found)


def _read(spark: SparkSession, schema: str, lake: str, path: str) -> DataFrame:
    if not _is_blob(lake):
        return spark.read.schema(schema).parquet(f"{lake}/{path}")
    plan = spark.createDataFrame([(path,)], "path string")
    return plan.mapInArrow(_downloader(lake, os.environ.get(CONNECTION)), schema)


def _is_blob(lake: str) -> bool:
    return lake.startswith(("https://", "http://"))


def _uploader(lake: str, path: str, connection: str | None) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def upload(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import parquet
        from pyspark import TaskContext

        container, prefix = open_container(lake, connection)
        task = TaskContext.get()
        for number, batch in enumerate(batches):
            if batch.num_rows:
                sink = pa.BufferOutputStream()
                parquet.write_table(pa.Table.from_batches([batch]), sink)
                name = f"part-{task.partitionId() if task else 0:05}-{number:05}.parquet"
                whole = "/".join(filter(None, [prefix, path, name]))
                container.upload_blob(whole, sink.getvalue().to_pybytes(), overwrite=True)
                yield pa.RecordBatch.from_arrays([pa.array([whole])], names=["name"])

    return upload


def _downloader(lake: str, connection: str | None) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def download(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import parquet

        container, prefix = open_container(lake, connection)
        for batch in batches:
            for path in batch.column(0).to_pylist():
                folder = "/".join(filter(None, [prefix, path, ""]))
                for blob in container.list_blobs(name_starts_with=f"{folder.rstrip('/')}/"):
                    whole = container.download_blob(blob.name).readall()
                    yield from parquet.read_table(pa.BufferReader(whole)).to_batches()

    return download
