"""A second process that tries to write all the time. `python -m bench.writer DATABASE` prints its longest wait."""

import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

REST = 0.0005  # seconds between two tries


@dataclass(slots=True)
class Wait:
    """The longest wait of the second process, in seconds."""

    longest: float = 0.0


@contextmanager
def second_writer(path: Path) -> Iterator[Wait]:
    """Run the process during this block. Its longest wait is known afterwards."""
    wait, command = Wait(), [sys.executable, "-m", "bench.writer", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        if running.stdout is None or running.stdout.readline() != "ready\n":
            raise RuntimeError("the second writer did not start")
        try:
            yield wait
        finally:
            running.terminate()
            wait.longest = float(running.stdout.readline())


def main(path: str) -> None:
    """Ask for the write lock again and again until SIGTERM, and print the longest wait in seconds."""
    told: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    longest = 0.0
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0.0)) as connection:
        print("ready", flush=True)
        free_at = time.perf_counter()
        while not told:
            asked_at = time.perf_counter()
            if _wrote(connection):
                free_at = time.perf_counter()
            else:
                longest = max(longest, asked_at - free_at)
            time.sleep(REST)
    print(longest, flush=True)


def _wrote(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        return False
    connection.execute("ROLLBACK")
    return True


if __name__ == "__main__":
    main(sys.argv[1])
