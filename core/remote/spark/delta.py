"""The lake's tables by delta-rs, which commits the files of the jobs. No Java is needed for that.

delta-rs checks a commit against others that were made since, but not against an OPTIMIZE that rewrote a file which the
commit removes: rows would be there twice. So a commit here is for exactly one version of its table, without retries.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from core.aggregation.lake_tables import (
    FILES_KEPT,
    MEND,
    NO_TABLE,
    LakeFile,
    Mark,
    StandingTable,
    TableChange,
    range_end,
)
from core.errors import LakeDamaged, LakeUnreachable
from core.remote.hub.client import first_line
from core.remote.spark.lake_storage import Storage

_KINDS = {"string": "string", "bigint": "long", "int": "integer", "double": "double", "boolean": "boolean"}
_KINDS |= {"timestamp": "timestamp", "date": "date"}
_NAMES = {delta: spark for spark, delta in _KINDS.items()}
ACTIONS = frozenset({"add", "remove", "metaData", "protocol", "txn", "commitInfo", "cdc", "domainMetadata"})
LOG, ENTRY = "_delta_log", 20  # the folder of a table's log, and the digits of an entry's number


class DeltaLake:
    """A Lake of Delta tables in a storage."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._read_entries: dict[str, set[tuple[str, int]]] = {}  # names and sizes, by table: each entry is read once

    @property
    def location(self) -> str:
        return self._storage.location

    def read_table(self, table: str, job: str) -> StandingTable:
        with _lake_faults(table):
            found = self._open(table)
            if found is None:
                return NO_TABLE
            run = found.transaction_version(job)
            if run is None:
                raise LakeUnreachable(
                    f"LAKE: {table} is a table that this app did not make: move it away, or name a different LAKE"
                )
            kinds = {field.name: str(getattr(field.type, "type", field.type)) for field in found.schema().fields}
            columns = {name: _NAMES.get(kind, kind) for name, kind in kinds.items()}
            return StandingTable(found.version(), run, columns, tuple(_lake_files(found)))

    def commit(self, table: str, standing: StandingTable, change: TableChange, mark: Mark) -> bool:
        from deltalake import Field, Schema
        from deltalake.exceptions import CommitFailedError, DeltaError
        from deltalake.schema import PrimitiveType
        from deltalake.transaction import CommitProperties, Transaction, create_table_with_add_actions

        kinds = ((name, PrimitiveType(_KINDS[kind])) for name, kind in change.columns.items())
        schema, transaction = Schema([Field(*one) for one in kinds]), Transaction(mark.job, mark.number)
        properties = CommitProperties(dict(mark.facts), max_commit_retries=0, app_transactions=[transaction])
        with _lake_faults(table):
            try:
                if standing.version < 0:
                    create_table_with_add_actions(
                        self._storage.uri(table),
                        schema,
                        _added(change),
                        partition_by=list(change.partition),
                        storage_options=self._storage.options(),
                        commit_properties=properties,
                    )
                    return True
                found = self._open(table, standing.version)
                if found is None:
                    return False
                actions = [*_added(change), *_removed(standing, change)]
                mode = "overwrite" if change.is_whole else "append"
                found.create_write_transaction(
                    actions, mode, schema, list(change.partition), commit_properties=properties
                )
            except CommitFailedError:
                return False
            except DeltaError:
                if standing.version < 0 and self._open(table) is not None:
                    return False  # a different tick made the table
                raise
        return True

    def lacks(self, table: str, files: Sequence[LakeFile]) -> bool:
        with _lake_faults(table):
            folders = {one.path.partition("/")[0] for one in files}
            found = {folder: self._storage.sizes(f"{table}/{folder}") for folder in folders}
        there = {(f"{folder}/{name}", size) for folder in folders for name, size in found[folder].items()}
        return not there.issuperset((one.path, one.size) for one in files)

    def check_log(self, table: str) -> None:
        with _lake_faults(table):
            sizes = self._storage.sizes(f"{table}/{LOG}")
            first = max((name[:ENTRY] for name in sizes if name.endswith(".checkpoint.parquet")), default="")
            entries = {one for one in sizes.items() if one[0].endswith(".json") and one[0][:ENTRY] > first}
            for name, _ in sorted(entries - self._read_entries.get(table, set())):
                if not _has_action(self._storage.read(f"{table}/{LOG}/{name}")):
                    raise LakeDamaged(f"LAKE: {table}: {LOG}/{name} is no entry of a log{MEND}")
            self._read_entries[table] = entries

    def remove_log(self, table: str) -> None:
        with _lake_faults(table):
            for name in self._storage.sizes(f"{table}/{LOG}"):
                self._storage.remove(f"{table}/{LOG}/{name}")

    def write_text(self, path: str, text: str) -> None:
        with _lake_faults(path):
            self._storage.write(path, text.encode())

    def read_text(self, folder: str) -> str | None:
        with _lake_faults(folder):
            names = [name for name in self._storage.sizes(folder) if name.endswith(".txt")]
            return self._storage.read(f"{folder}/{names[0]}").decode("utf-8", "replace") if names else None

    def maintain(self, table: str) -> Mapping[str, int]:
        """Compact, remove unused files, write a checkpoint and remove old log entries. Return the counts."""
        with _lake_faults(table):
            found = self._open(table)
            if found is None:
                return {}
            compacted = found.optimize.compact(commit_properties=_strict())
            removed = found.vacuum(int(FILES_KEPT.total_seconds()) // 3600, dry_run=False, full=True)
            found.create_checkpoint()
            found.cleanup_metadata()
            return {"compacted": int(compacted["numFilesRemoved"]), "removed": len(removed)}

    def delete(self, table: str, condition: str) -> int:
        with _lake_faults(table):
            found = self._open(table)
            if found is None:
                return 0
            return int(found.delete(condition, commit_properties=_strict())["num_deleted_rows"])

    def _open(self, table: str, version: int | None = None) -> Any:
        """Return a table, or None when there is none."""
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        try:
            return DeltaTable(self._storage.uri(table), version, storage_options=self._storage.options())
        except TableNotFoundError:
            return None


def _has_action(entry: bytes) -> bool:
    """Return True when the lines are JSON and at least one is an action. Readers skip other objects and blank lines."""
    try:
        lines = [json.loads(line) for line in entry.splitlines() if line.strip()]
    except ValueError:
        return False
    return any(isinstance(line, dict) and not ACTIONS.isdisjoint(line) for line in lines)


@contextmanager
def _lake_faults(place: str) -> Iterator[None]:
    """Raise LakeUnreachable for a fault of the storage or of delta-rs."""
    from azure.core.exceptions import AzureError
    from deltalake.exceptions import DeltaError

    try:
        yield
    except DeltaError as error:
        raise LakeDamaged(f"LAKE: {place}: {first_line(error)}{MEND}") from error
    except (AzureError, OSError) as error:
        raise LakeUnreachable(f"LAKE: {place}: {first_line(error)}") from error


def _strict() -> Any:
    from deltalake.transaction import CommitProperties

    return CommitProperties(max_commit_retries=0)


def _added(change: TableChange) -> list[Any]:
    from deltalake.transaction import AddAction

    now, actions = time.time_ns() // 1_000_000, []
    for one in change.added:
        nulls = {name: 0 for name, value in one.least.items() if value is not None}
        ends = {"minValues": dict(one.least), "maxValues": dict(one.most), "nullCount": nulls}
        stats = json.dumps({"numRecords": one.rows, **ends})
        actions.append(AddAction(one.path, one.size, one.partition, now, True, stats))
    return actions


def _removed(standing: StandingTable, change: TableChange) -> list[Any]:
    from deltalake.transaction import RemoveAction

    if change.is_whole:
        return []  # the mode of the commit removes all
    gone = set(change.removed)
    now = time.time_ns() // 1_000_000
    return [
        RemoveAction(one.path, True, now, size=one.size, partition_values=dict(one.partition))
        for one in standing.files
        if one.path in gone
    ]


def _lake_files(found: Any) -> Iterator[LakeFile]:
    table = found.get_add_actions(flatten=True)
    columns = {name: table.column(name).to_pylist() for name in table.schema.names}
    for at in range(table.num_rows):
        row = {name: values[at] for name, values in columns.items()}
        yield LakeFile(
            row["path"],
            row["size_bytes"],
            row.get("num_records") or 0,
            {name: str(value) for name, value in _of(row, "partition.").items()},
            _of(row, "min."),
            _of(row, "max."),
        )


def _of(row: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {
        name.removeprefix(prefix): range_end(value)
        for name, value in row.items()
        if name.startswith(prefix) and value is not None
    }
