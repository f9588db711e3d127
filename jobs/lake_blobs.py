"""The lake's files in blobs: pyarrow writes and reads them on the executors, and the client of Azure carries them."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

import msgspec
from pyspark.sql import DataFrame

from core.aggregation.lake_tables import LakeFile, range_end
from core.remote.spark.lake_storage import open_container

Arrow = Callable[[Iterable[Any]], Iterator[Any]]


@dataclass(frozen=True, slots=True)
class Form:
    """The folder of an execution, the columns that divide its files, those whose range is described, and their rows."""

    folder: str
    partition: tuple[str, ...]
    order: tuple[str, ...]
    each: int


def is_blob(lake: str) -> bool:
    """Return True for a lake that Spark itself cannot write."""
    return lake.startswith(("https://", "http://"))


def read_text(lake: str, path: str, connection: str | None) -> str:
    """Return the text of a blob."""
    container, prefix = open_container(lake, connection)
    return str(container.download_blob(_name(prefix, path)).readall().decode())


def write_text(lake: str, path: str, text: str, connection: str | None) -> None:
    """Write a blob."""
    container, prefix = open_container(lake, connection)
    container.upload_blob(_name(prefix, path), text.encode(), overwrite=True)


def uploader(lake: str, place: str, form: Form) -> Callable[[str | None], Arrow]:
    """Return a maker of a function for mapInArrow: it uploads ordered rows, and returns a JSON text for each file."""

    def with_connection(connection: str | None) -> Arrow:
        def upload(batches: Iterable[Any]) -> Iterator[Any]:
            import pyarrow as pa
            from pyspark import TaskContext

            container, prefix = open_container(lake, connection)
            task = TaskContext.get()
            for number, (partition, table) in enumerate(_pieces(pa, batches, form)):
                inside = "/".join(f"{name}={value}" for name, value in partition.items())
                path = f"{inside}/part-{task.partitionId() if task else 0:05}-{number:05}.parquet"
                content = _content(pa, table)
                container.upload_blob(_name(prefix, f"{place}/{path}"), content, overwrite=True)
                one = _file(f"{form.folder}/{path}", len(content), partition, table, form)
                yield pa.RecordBatch.from_arrays([pa.array([json.dumps(asdict(one))])], names=["file"])

        return upload

    return with_connection


def described(files: DataFrame) -> list[LakeFile]:
    """Return the files that the executors have uploaded."""
    return sorted((msgspec.json.decode(row[0], type=LakeFile) for row in files.collect()), key=lambda one: one.path)


def downloader(lake: str, table: str, connection: str | None) -> Arrow:
    """Return a function for mapInArrow, from the paths of a table's files to their rows, each with its path."""

    def download(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import parquet

        container, prefix = open_container(lake, connection)
        for batch in batches:
            for path in batch.column(0).to_pylist():
                whole = container.download_blob(_name(prefix, f"{table}/{path}")).readall()
                for part in parquet.read_table(pa.BufferReader(whole)).to_batches():
                    paths = pa.array([path] * part.num_rows, pa.string())
                    columns, names = [paths, *part.columns], ["__path", *part.schema.names]
                    yield pa.RecordBatch.from_arrays(columns, names=names)

    return download


def _pieces(pa: Any, batches: Iterable[Any], form: Form) -> Iterator[tuple[dict[str, str], Any]]:
    """Return the rows of each partition, at most `each` of them, without the columns of the partition."""
    standing: tuple[str, ...] | None = None
    parts: list[Any] = []
    for values, part in _runs(batches, form.partition):
        if parts and (values != standing or sum(one.num_rows for one in parts) >= form.each):
            yield _piece(pa, standing or (), parts, form)
            parts = []
        standing = values
        parts.append(part)
    if parts:
        yield _piece(pa, standing or (), parts, form)


def _runs(batches: Iterable[Any], names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for batch in batches:
        rows = zip(*(map(str, batch.column(name).to_pylist()) for name in names), strict=True)
        for values, run in groupby(enumerate(rows), key=lambda one: one[1]):
            numbers = [at for at, _ in run]
            yield values, batch.slice(numbers[0], len(numbers))


def _piece(pa: Any, values: tuple[str, ...], parts: list[Any], form: Form) -> tuple[dict[str, str], Any]:
    table = pa.Table.from_batches(parts).drop_columns(list(form.partition))
    return dict(zip(form.partition, values, strict=True)), table


def _content(pa: Any, table: Any) -> bytes:
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink)
    return bytes(sink.getvalue().to_pybytes())


def _file(path: str, size: int, partition: dict[str, str], table: Any, form: Form) -> LakeFile:
    from pyarrow import compute

    ends = {name: compute.min_max(table.column(name)).as_py() for name in form.order}
    least = {name: range_end(one["min"]) for name, one in ends.items()}
    most = {name: range_end(one["max"]) for name, one in ends.items()}
    return LakeFile(path, size, table.num_rows, partition, least, most)


def _name(prefix: str, path: str) -> str:
    return "/".join(filter(None, [prefix, path]))
