"""The commit in one call against executemany and fast_executemany, on a T-SQL server: STORE or MSSQL_CONNECTION."""

import os
import secrets
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from statistics import median
from time import perf_counter
from typing import Any

from bench.figures import Figure
from bench.samples import PARTITION, ROOMS, START, reading
from core.model.commits import BatchCommit, DeadLetter, PartitionState, Settled
from core.model.events import Event, SequenceNumber
from core.model.rows import LINEAGE
from core.settle.cause import cause_of
from core.settle.partition_store import Partitions, batch_script
from core.store.sqlserver.connections import Session, connect, load_driver
from core.store.sqlserver.database import SqlServerDatabase
from core.store.sqlserver.schema import migrate_server
from core.store.sqlserver.statements import rows_values, without_zone
from examples.home_security.transform import SensorReading

SIZES, LETTERS, ROUNDS = (100, 500, 2_000), 5, 12
OURS = "ours"
LEAST = {"fast_executemany": 3, "executemany": 8}  # times as fast as the driver's ways
ROW = (*LINEAGE, "home_id", "sensor_id", "kind", "state", "ppm", "observed_at")
LETTER = (
    "stream_id", "partition_id", "sequence_number", "offset_token", "enqueued_at", "properties", "body", "error_class",
    "error_type", "error", "fingerprint", "transform_version", "status", "failed_at",
)  # fmt: skip
_TABLES = "SELECT t.name FROM sys.tables AS t WHERE t.schema_id = SCHEMA_ID('{}');"
_FOREIGN_KEYS = """
SELECT OBJECT_NAME(f.parent_object_id), f.name FROM sys.foreign_keys AS f WHERE f.schema_id = SCHEMA_ID('{}');
"""
Write = Callable[[BatchCommit], object]


def measure(store: str = "") -> Iterator[Figure]:
    """Measure three sizes against two other ways to write. Skip it without a server."""
    server = store or os.environ.get("MSSQL_CONNECTION")
    if not server:
        print("sqlserver: skipped, neither STORE nor MSSQL_CONNECTION names a T-SQL server")
        return
    schema = f"hubledger_bench_{secrets.token_hex(4)}"
    migrate_server(server, schema, rooms=ROOMS)
    try:
        for size in SIZES:
            yield from _compare(server, schema, size)
    finally:
        drop_schema(connect(server), schema)


def _compare(server: str, schema: str, size: int) -> Iterator[Figure]:
    """Compare the store's way to write a commit with two others, over a second connection."""
    database = SqlServerDatabase(server, schema=schema)
    store, connection = Partitions(database), load_driver().connect(server, autocommit=False)
    others = {name: _many(connection, schema, fast=name.startswith("fast")) for name in LEAST}
    try:
        seconds = _medians(store, {OURS: store.commit_batch, **others}, size)
    finally:
        database.close()
        connection.close()
    for name, least in LEAST.items():
        ratio, rate = seconds[name] / seconds[OURS], f"{size / seconds[OURS]:,.0f} rows/s"
        yield Figure(f"commit of {size} in one call, times {name}", ratio, "x", f">= {least}", ratio >= least, rate)


def _medians(store: Partitions, ways: dict[str, Write], size: int) -> dict[str, float]:
    """Write batches with each way in turn, so that all see the same machine. Return their median seconds."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, write in ways.items():
            commit = _commit(store.read_partition(PARTITION), size)
            started = perf_counter()
            write(commit)
            times[name].append(perf_counter() - started)
    return {name: median(taken[2:]) for name, taken in times.items()}


def _commit(state: PartitionState, size: int) -> BatchCommit:
    first = 0 if state.checkpoint is None else state.checkpoint.sequence_number + 1
    rows = [(first + place, 0, replace(reading(place), ppm=place)) for place in range(size - LETTERS)]
    letters = [_letter(first + place) for place in range(size - LETTERS, size)]
    settled = Settled({SensorReading: rows}, letters, len(rows), 0)
    last = letters[-1].event
    return BatchCommit(state, uuid.uuid4(), SequenceNumber(first), last, settled, "bench/1", "bench", datetime.now(UTC))


def _letter(number: int) -> DeadLetter:
    event = Event(SequenceNumber(number), str(number * 200), START, None, {}, b"{" * 260)
    return DeadLetter(event, "poison", "core.errors.PoisonEvent", "no event of a home", "0123456789abcdef", "exhausted")


def _many(connection: Any, schema: str, fast: bool) -> Write:
    """Return a way to write a commit with the means of the driver: a statement for each table."""
    cursor = connection.cursor()

    def write(commit: BatchCommit) -> None:
        steps = {str(step.statement): step for step in batch_script(commit).steps}
        values = _spaced(
            {name: value for step in steps.values() if step.many is None for name, value in step.values.items()}
        )
        number = commit.state.checkpoint.commit_number + 1 if commit.state.checkpoint else 1
        values |= {"commit_number": number, "kind": "batch", "held": 0, "absent": 0}
        cursor.fast_executemany = False
        _advance(cursor, schema, values)
        cursor.fast_executemany = fast
        place = (values["stream_id"], values["partition_id"])
        rows = rows_values(SensorReading)(commit.settled.rows[SensorReading], 0, "", 0)
        cursor.executemany(
            _insert(schema, "sensor_reading", ROW),
            [(*place, *row[:2], number, *row[2:-1], row[-1].replace("T", " ")) for row in rows],
        )
        letters = [_spaced({**steps["add_letter"].values, **each}) for each in steps["add_letter"].many or ()]
        cursor.executemany(
            _insert(schema, "event_hub_dead_letter", (*LETTER, "attempts", "cause")),
            [(*(letter[name] for name in LETTER), 1, cause_of(str(letter["fingerprint"]))) for letter in letters],
        )
        ledger = [name for name in values if name not in _OF_THE_CHECKPOINT]
        cursor.execute(_insert(schema, "batch_ledger", ledger), [values[name] for name in ledger])
        connection.commit()

    return write


def _spaced(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with times in ODBC's form, because fast_executemany lets the driver convert them."""
    return {
        name: without_zone(value).replace("T", " ") if name.endswith("_at") and value else value
        for name, value in values.items()
    }


_OF_THE_CHECKPOINT = ("sequence_number", "offset_token", "enqueued_at", "commit_id", "updated_at", "expected")


def _advance(cursor: Any, schema: str, values: dict[str, Any]) -> None:
    table = f"{schema}.event_hub_checkpoint"
    moved = ("sequence_number", "offset_token", "enqueued_at", "commit_id", "updated_at", "commit_number")
    if "expected" not in values:
        names = ("stream_id", "partition_id", *moved)
        cursor.execute(_insert(schema, "event_hub_checkpoint", names), [values[name] for name in names])
        return
    cursor.execute(
        f"UPDATE {table} SET {', '.join(f'{name} = {_marker(name)}' for name in moved)}"
        " WHERE stream_id = ? AND partition_id = ? AND sequence_number = ?",
        [values[name] for name in (*moved, "stream_id", "partition_id", "expected")],
    )
    if cursor.rowcount != 1:
        raise RuntimeError("the checkpoint moved: a different process writes to this schema; run the benchmark alone")


def _insert(schema: str, table: str, names: tuple[str, ...] | list[str]) -> str:
    return f"INSERT INTO {schema}.{table} ({', '.join(names)}) VALUES ({', '.join(map(_marker, names))})"


def _marker(name: str) -> str:
    return "CONVERT(uniqueidentifier, ?)" if name == "commit_id" else "?"


def drop_schema(session: Session, schema: str) -> None:
    """Drop a schema with the tables that stand in it, ours and those of the rooms, and close the session."""
    for table, key in session.run(_FOREIGN_KEYS.format(schema))[-1]:
        session.run(f"ALTER TABLE {schema}.{table} DROP CONSTRAINT {key};")
    for (table,) in session.run(_TABLES.format(schema))[-1]:
        session.run(f"DROP TABLE {schema}.{table};")
    session.run(f"DROP SCHEMA {schema};")
    session.close()
