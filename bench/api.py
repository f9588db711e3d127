"""The operator's API over a large store: the handlers' time for status and letters, without the hub's."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import azure.functions as func

from bench.figures import Figure
from bench.large_store import PARTITIONS, Size, fill, start_worker
from core.model.events import PartitionId
from core.store.sqlite.database import SqliteDatabase

SIZE = Size(int(os.environ.get("BENCH_RANGES", "10000000")), int(os.environ.get("BENCH_LETTERS", "1000000")))
ROUNDS = 30
LIMIT_MS, STATUS_MS = 50.0, 5.0  # of a request, and of what the page asks for every few seconds


def _ends() -> Mapping[PartitionId, int]:
    """Return an end for each partition without a hub, so that its time is not measured."""
    return {PartitionId(str(number)): SIZE.last + 6 for number in range(PARTITIONS)}


def measure() -> Iterator[Figure]:
    """Measure status and pages of letters against their limit, and other requests without one."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = Path(folder) / "store.db"
        began = time.perf_counter()
        fill(path, SIZE)
        print(
            f"  {SIZE.ranges:,} ranges and {SIZE.letters:,} letters in {time.perf_counter() - began:.0f} s", flush=True
        )
        yield from _figures(path)


def _figures(path: Path) -> Iterator[Figure]:
    yield from _limited({"start of a worker, its part in SQL": lambda: _start_worker(path)})
    ask = app_on(path)
    yield Figure("first status, open letters counted", _milliseconds(lambda: ask("status"), 1), "ms", "", None)
    polled: dict[str, Callable[[], Any]] = {
        "status": lambda: ask("status"),
        "health of the ledger": lambda: _forgetting_health(ask),
    }
    yield from _limited(polled, STATUS_MS)
    limited: dict[str, Callable[[], Any]] = {
        "facts of the watch": _watch,
        "first page of letters": lambda: ask("list_letters"),
        "first page of the letters of a status": lambda: ask("list_letters", status="waiting"),
        "first page of the letters of a cause": lambda: ask("list_letters", fingerprint=f"{7:016x}"),
        "first page of the letters of a rare status": lambda: ask("list_letters", status="retrying"),
        "first page of the letters of a rare cause": lambda: ask("list_letters", fingerprint="rare"),
        "where a number went": lambda: ask("explain_number", partition_id="7", sequence_number="70"),
    }
    yield from _limited(limited)
    yield Figure("status, open letters counted again", _milliseconds(lambda: _counted_anew(ask), 5), "ms", "", None)
    yield Figure("letters by cause, all of them", _milliseconds(lambda: ask("group_letters"), 3), "ms", "", None)
    yield from _audits()


def _limited(calls: Mapping[str, Callable[[], Any]], limit: float = LIMIT_MS) -> Iterator[Figure]:
    for name, call in calls.items():
        taken = _milliseconds(call, ROUNDS)
        yield Figure(f"{name}, median of {ROUNDS}", taken, "ms", f"< {limit:g}", taken < limit)


def _audits() -> Iterator[Figure]:
    one = _milliseconds(lambda: _audit_as_a_task(PartitionId("7")), 1)
    yield Figure("audit of a partition", one, "ms", "", None)
    yield Figure("audit of all partitions", _milliseconds(_audit_as_a_task, 1), "ms", "", None)


def _start_worker(path: Path) -> None:
    with closing(SqliteDatabase(path)) as database:
        start_worker(database)


def _audit_as_a_task(partition_id: PartitionId | None = None) -> None:
    """Audit a partition, or all, without a limit of time."""
    from core.audit.audit import audit
    from handlers.app import app
    from handlers.operations.audits import audit_store

    assert audit(audit_store(app()), partition_id).balanced


def _forgetting_health(ask: Callable[..., Any]) -> None:
    from handlers.operations import status as health

    health.BOOKS.forget()
    ask("health_ledger")


def _watch() -> None:
    """Read the facts of the watch, with the hub's ends of this module and without a look at the hub, and store the
    minute."""
    from core.ledger.store import Ledger
    from core.ledger.watch import observe
    from handlers.app import app
    from handlers.timers import watching

    own = replace(watching(app()), ends=lambda: {id: end - 6 for id, end in _ends().items()})
    seen = observe(own, datetime.now(UTC))
    seen.facts()
    Ledger(app().stream).store_minute(seen.minute)


def app_on(path: Path) -> Callable[..., Any]:
    """Return a function that runs an operation over this store, as the HTTP functions do."""
    os.environ.update(STORE_CONNECTION=f"sqlite:{path}", EVENTHUB_NAME="telemetry", EVENTHUB_CONSUMER_GROUP="hubledger")
    os.environ["EVENTHUB"] = "Endpoint=sb://bench;SharedAccessKeyName=n;SharedAccessKey=s"
    from handlers.api import OPERATIONS, ROUTES
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
        response = answer(request, routes[operation], OPERATIONS, "bench")
        if response.status_code not in (200, 503):
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
