"""The embedded store: Python on the executors reads and writes SQLite as Arrow. All executors share one file."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.as_of import Words
from jobs.row_texts import arrow_schema
from jobs.tables import Tables
from jobs.transforms import schema_of

FETCHED = 20_000  # rows at a time
WRITTEN = 5_000  # rows in a transaction: the app writes to the same file
BUSY = 60.0  # seconds that a statement waits for a different writer
_STORED = {"boolean": "bigint"}  # SQLite has no booleans; Spark reads 0 and 1 as such


class SqliteTables(Tables):
    """The tables in a SQLite file."""

    words = Words()
    spans_each = 1

    def __init__(self, spark: SparkSession, path: str) -> None:
        super().__init__(spark)
        self._path = path

    def answer(self, query: str, columns: Mapping[str, str]) -> list[Any]:
        with closing(_open(self._path)) as connection:
            rows = connection.execute(query).fetchall()
        times = [place for place, kind in enumerate(columns.values()) if kind == "timestamp"]
        return [[datetime.fromisoformat(one) if at in times else one for at, one in enumerate(row)] for row in rows]

    def where(self, query: str, wanted: Sequence[str], columns: Mapping[str, str]) -> DataFrame:
        select = f"SELECT {', '.join(map(self.words.named, columns))} FROM ({query}) WHERE "
        return self.union([select + one for one in wanted], columns)

    def union(self, queries: Sequence[str], columns: Mapping[str, str]) -> DataFrame:
        """Return the rows of queries, with a task for each."""
        schema = schema_of({name: _STORED.get(kind, kind) for name, kind in columns.items()})
        plan = self._spark.createDataFrame([(one,) for one in queries], "statement string")
        return plan.repartition(max(1, len(queries))).mapInArrow(_reader(self._path, schema), schema)

    def append(self, rows: DataFrame, table: str) -> None:
        """Write rows in the order of the table. A row that a task writes twice is stored once."""
        columns = rows.columns
        statement = (
            f"INSERT INTO {table} ({', '.join(map(self.words.named, columns))})"
            f" VALUES ({', '.join('?' * len(columns))}) ON CONFLICT DO NOTHING"
        )
        ordered = rows.sortWithinPartitions(*columns)
        ordered.mapInArrow(_writer(self._path, statement), "written bigint").agg(F.sum("written")).collect()

    def row_hash(self, text: Column) -> Column:
        return F.crc32(text)


def _reader(path: str, schema: str) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def read(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        shape = arrow_schema(pa, schema)
        with closing(_open(path)) as connection:
            for batch in batches:
                for statement in batch.column(0).to_pylist():
                    cursor = connection.execute(statement)
                    while rows := cursor.fetchmany(FETCHED):
                        columns = zip(*rows, strict=True)
                        arrays = [_array(pa, column, field.type) for column, field in zip(columns, shape, strict=True)]
                        yield pa.RecordBatch.from_arrays(arrays, schema=shape)

    return read


def _array(pa: Any, column: tuple[Any, ...], kind: Any) -> Any:
    is_text = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
    return pa.array(column, pa.string()).cast(kind) if is_text else pa.array(column, kind)


def _writer(path: str, statement: str) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def write(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        with closing(_open(path)) as connection:
            for batch in batches:
                rows = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
                for at in range(0, len(rows), WRITTEN):
                    connection.execute("BEGIN IMMEDIATE")
                    connection.executemany(statement, rows[at : at + WRITTEN])
                    connection.execute("COMMIT")
                yield pa.RecordBatch.from_arrays([pa.array([len(rows)], pa.int64())], names=["written"])

    return write


def _open(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{path}?mode=rw", uri=True, timeout=BUSY, isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")
    return connection
