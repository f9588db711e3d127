"""A separate process over the database that its environment names: `python -m tests.fakes.separate SEED BATCHES SIZE`.

It ingests the batches of partition 0 one after another and prints the number of each one that it is done with.
"""

import os
import subprocess
import sys
from pathlib import Path

from core.errors import CheckpointConflict
from core.ingest.gaps import NO_GAP_READING, GapReading
from core.ingest.ingest import Ingestion, ingest_batch
from core.model.events import EventBatch
from core.model.policies import embedded_path
from core.model.ports import Clock
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlserver.database import SqlServerDatabase
from tests.fakes.builders import PATIENCE, batch, events, stamps
from tests.fakes.kept import PersistentEngine
from tests.fakes.plain_transform import PLAIN
from tests.fakes.store import Store
from tests.patience import ended

ROOT = Path(__file__).parents[2]


def start(engine: PersistentEngine, *arguments: object) -> "subprocess.Popen[str]":
    """Start a process over an engine's database. What it prints is kept for the test."""
    command = [sys.executable, "-m", "tests.fakes.separate", *map(str, arguments)]
    environment = os.environ | engine.environment()
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def output(running: "subprocess.Popen[str]") -> str:
    out, fault = ended(running, 120)
    assert running.returncode == 0, fault
    return out


def opened() -> Store:
    connection = os.environ["STORE_CONNECTION"]
    path = embedded_path(connection)
    if path is not None:
        return Store(SqliteDatabase(path, busy_timeout=30.0))
    return Store(SqlServerDatabase(connection, schema=os.environ["STORE_SCHEMA"]))


def handed_over(given: EventBatch, store: Store, own: Clock, gap_reading: GapReading = NO_GAP_READING) -> None:
    """Ingest a batch as the host has it ingested: where others won too many times in a row, once more."""
    while True:
        try:
            ingest_batch(given, Ingestion(store, PLAIN, own, gap_reading))
            return
        except CheckpointConflict:
            continue


def own(seed: str, batches: str, size: str) -> None:
    """Go through all batches. What another owner commits meanwhile is dropped by the guard."""
    store, clock, length = opened().patient(PATIENCE), stamps(int(seed)), int(size)
    for number in range(int(batches)):
        handed_over(batch(events(number * length, number * length + length - 1, "double home-1")), store, clock)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    own(*sys.argv[1:])
