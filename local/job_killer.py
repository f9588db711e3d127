"""The processes of a demo's jobs: measure their work, and kill one of them, so that a next attempt follows."""

import os
import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from core.aggregation.tick import PROGRAM
from local.aggregate_proof import KILLED
from local.books import reading

LOOK_EVERY = 0.2  # seconds
TICK = os.sysconf("SC_CLK_TCK")  # of the times in /proc
SPARK, LAUNCHER = "org.apache.spark.deploy.SparkSubmit", "org.apache.spark.launcher.Main"
_FAILED = "SELECT COUNT(*) FROM aggregation_failure WHERE reason IN (?, ?)"
_SUBMITTED = "SELECT run_id, run_number, attempt FROM aggregation_run WHERE job = ? AND status = 'submitted'"


class JobKiller:
    """Kills the jobs of an aggregate during a `with` block, each once, until the app has recorded a killed one.

    `jobs` is the folder with a folder for each job.
    """

    def __init__(self, store: Path, jobs: Path, aggregate: str, look_every: float = LOOK_EVERY) -> None:
        self._store = store
        self._jobs = jobs
        self._aggregate = aggregate
        self._look_every = look_every
        self._struck: set[str] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> "JobKiller":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()

    def _work(self) -> None:
        is_recorded = False
        while not is_recorded and not self._ended.wait(self._look_every):
            with suppress(sqlite3.Error, OSError):  # the store is locked, or the process has just ended
                is_recorded = self.look()

    def look(self) -> bool:
        """Kill the job that runs, and return True once the app has recorded a killed one."""
        with reading(self._store) as connection:
            if connection.execute(_FAILED, KILLED).fetchone()[0]:
                return True
            submitted = connection.execute(_SUBMITTED, (self._aggregate,)).fetchall()
        for run_id, number, attempt in submitted:
            name = f"agg-{run_id}-{attempt}"
            pid = None if name in self._struck else spark_process(self._jobs / name)
            if pid is not None:
                self._struck.add(name)
                print(f"killing Spark, process {pid}, in run {number}, attempt {attempt}", flush=True)
                os.kill(pid, signal.SIGKILL)
        return False


def spark_process(folder: Path) -> int | None:
    """Return the id of a job's Spark process while the job's program runs; None before and after."""
    group = _group(folder)
    processes = dict(_members(group)) if group else {}
    if not any(Path(words[1]).name == PROGRAM for words in processes.values() if len(words) > 1):
        return None
    return next((pid for pid, words in processes.items() if SPARK in words and LAUNCHER not in words), None)


def worked(folder: Path) -> float:
    """Return the seconds of the processor that the processes of a job have used; 0 when it has none."""
    group = _group(folder)
    return sum(sum(map(int, fields[11:15])) / TICK for _, fields in _stats(group)) if group else 0.0


def _group(folder: Path) -> int | None:
    """Return the process group of a job; None before it is started."""
    try:
        return int((folder / "group").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _members(group: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the processes of a process group, with the words of their commands."""
    for entry, _ in _stats(group):
        with suppress(OSError):  # it has just ended
            yield int(entry.name), (entry / "cmdline").read_text().split("\0")


def _stats(group: int) -> Iterator[tuple[Path, list[str]]]:
    """Yield the folders of the processes of a process group, with the fields after their names in `stat`."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):  # it has just ended
            fields = (entry / "stat").read_text().rpartition(") ")[2].split()
            if int(fields[2]) == group:
                yield entry, fields
