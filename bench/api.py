"""The operator's API over a large store: the handlers' time for status and letters, without the hub's."""

import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import azure.functions as func

from bench.figures import Figure
from core.model.events import PartitionId
from core.store.sqlite.schema import migrate_sqlite

LETTERS = int(os.environ.get("BENCH_LETTERS", "1000000"))
RANGES = int(os.environ.get("BENCH_RANGES", "10000000"))
PARTITIONS, EVENTS, CAUSES = 16, 10, 40  # events of a range, causes of letters
RARE = 7  # the one letter of each partition with a rare cause and a rare status
ROUNDS = 30
LIMIT_MS = 50.0
MOMENT = "strftime('%Y-%m-%dT%H:%M:%S', 1767225600 + {} % 10000000, 'unixepoch') || '.000000Z'"

_RANGES = f"""
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < :ranges - 1)
INSERT INTO batch_ledger
SELECT 1, :partition_id, i + 1, 'batch', i * {EVENTS}, i * {EVENTS} + {EVENTS - 1},
       {EVENTS} - (i < :letters), 0, i < :letters, 0, 0, {EVENTS}, 'v', 'i', '2026-01-01T00:00:00.000000Z', NULL
  FROM n
"""
_CHECKPOINT = f"""
INSERT INTO event_hub_checkpoint
SELECT 1, :partition_id, :ranges * {EVENTS} - 1, 'o', '2026-01-01T00:00:00.000000Z', :ranges, 'i',
       '2026-01-01T00:00:00.000000Z'
"""
_LETTERS = f"""
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < :letters - 1)
INSERT INTO event_hub_dead_letter
       (stream_id, partition_id, sequence_number, offset_token, enqueued_at, partition_key, properties, body,
        error_class, error_type, error, fingerprint, transform_version, status, attempts, failed_at)
SELECT 1, :partition_id, i * {EVENTS}, 'o', '2026-01-01T00:00:00.000000Z', 'home-' || (i % 1000), '{{}}',
       randomblob(200), 'poison', 'core.errors.PoisonEvent', 'no such kind ' || (i % {CAUSES}),
       CASE i WHEN {RARE} THEN 'rare' ELSE printf('%016x', i % {CAUSES}) END, 'v',
       CASE WHEN i = {RARE} THEN 'held' WHEN i % 5 = 0 THEN 'waiting' WHEN i % 5 = 1 THEN 'resolved'
            WHEN i % 5 = 2 THEN 'discarded' ELSE 'exhausted' END, 1,
       {MOMENT.format("(i * 7919 + :partition_id)")}
  FROM n
"""


def _ends() -> Mapping[PartitionId, int]:
    """Return an end for each partition without a hub, so that its time is not measured."""
    return {PartitionId(str(number)): RANGES // PARTITIONS * EVENTS + 5 for number in range(PARTITIONS)}


def measure() -> Iterator[Figure]:
    """Measure status and pages of letters against their limit, and other requests without one."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = Path(folder) / "store.db"
        migrate_sqlite(path)
        began = time.perf_counter()
        _fill(path)
        print(f"  {RANGES:,} ranges and {LETTERS:,} letters in {time.perf_counter() - began:.0f} s", flush=True)
        yield from _figures(path)


def _fill(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("INSERT INTO event_stream VALUES (1, 'bench/telemetry', 'hubledger', 1, '2026-01-01')")
        for number in range(PARTITIONS):
            values = {
                "partition_id": str(number), "ranges": RANGES // PARTITIONS, "letters": LETTERS // PARTITIONS,
            }  # fmt: skip
            connection.execute("BEGIN")
            for statement in (_RANGES, _CHECKPOINT, _LETTERS):
                connection.execute(statement, {name: values[name] for name in values if f":{name}" in statement})
            connection.execute("COMMIT")


def _figures(path: Path) -> Iterator[Figure]:
    ask = _app(path)
    yield Figure(
        "status, all ranges summed for the first time", _milliseconds(lambda: ask("status"), 1), "ms", "", None
    )
    limited = {
        "status": lambda: ask("status"),
        "first page of letters": lambda: ask("list_letters"),
        "first page of the letters of a status": lambda: ask("list_letters", status="waiting"),
        "first page of the letters of a cause": lambda: ask("list_letters", fingerprint=f"{7:016x}"),
        "first page of the letters of a rare status": lambda: ask("list_letters", status="held"),
        "first page of the letters of a rare cause": lambda: ask("list_letters", fingerprint="rare"),
        "where a number went": lambda: ask("explain_number", partition_id="7", sequence_number="70"),
    }
    for name, call in limited.items():
        taken = _milliseconds(call, ROUNDS)
        yield Figure(f"{name}, median of {ROUNDS}", taken, "ms", f"< {LIMIT_MS:g}", taken < LIMIT_MS)
    yield Figure("status, all letters counted again", _milliseconds(lambda: _counted_anew(ask), 5), "ms", "", None)
    yield Figure("letters by cause, all of them", _milliseconds(lambda: ask("group_letters"), 3), "ms", "", None)
    yield Figure("audit of every range", _milliseconds(lambda: ask("audit_ledger"), 1), "ms", "", None)


def _app(path: Path) -> Callable[..., Any]:
    """Return a function that runs an operation over this store, as the HTTP functions do."""
    os.environ.update(STORE_CONNECTION=f"sqlite:{path}", EVENTHUB_NAME="telemetry", EVENTHUB_CONSUMER_GROUP="hubledger")
    os.environ["EVENTHUB"] = "Endpoint=sb://bench;SharedAccessKeyName=n;SharedAccessKey=s"
    from handlers.api import ROUTES, operations
    from handlers.app import HUB_ENDS, app
    from handlers.remembered import Remembered
    from handlers.web.answering import answer

    app.value = replace(app(), hub_ends=Remembered(_ends, HUB_ENDS))
    routes = {route.name: route for route in ROUTES}

    def ask(operation: str, **values: str) -> Any:
        in_path = {
            name: values.pop(name) for name in ("partition_id", "sequence_number") if operation == "explain_number"
        }
        request = func.HttpRequest("GET", "/api", params=values, route_params=in_path, body=b"")
        response = answer(request, routes[operation], operations())
        if response.status_code != 200:
            raise RuntimeError(response.get_body().decode())
        return response

    return ask


def _counted_anew(ask: Callable[..., Any]) -> None:
    from handlers.app import app

    app().letter_counts.forget()
    ask("status")


def _milliseconds(call: Callable[[], Any], rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        taken.append(1e3 * (time.perf_counter() - began))
    return median(taken)
