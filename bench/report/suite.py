"""Parts measured one after the other, each in a process of its own, so that none can stop or disturb the others."""

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

from bench.report.machine import busy_seconds, own_seconds
from bench.report.part import faulted
from bench.report.results import PartResult, ResultsRefused, read_results, results_of, write_result
from local.programs import Interrupted
from local.stack.processes import Pause

LOOK_EVERY = 0.2  # seconds
GRACE = 60.0  # seconds: from Ctrl-C until a part has ended its processes

Orders = Mapping[str, Mapping[str, str]]  # the variables that give its sizes, by part


@dataclass(frozen=True, slots=True)
class Suite:
    """The place of measurements: the file of results or None, and the file descriptors that they hold open."""

    results: Path | None
    holds: Sequence[int]
    environment: Mapping[str, str]  # it wins over the sizes that an order names
    pause: Pause
    size: str = ""
    module: str = "bench"  # what measures one part, and writes its results to the file after `--json`

    def measure(self, orders: Orders) -> Iterator[PartResult]:
        """Measure the parts in their order, and store and yield the result of each. Raises Interrupted on a signal."""
        with tempfile.TemporaryDirectory() as scratch:
            for part, sizes in orders.items():
                print(" ".join([f"\n{part}", *(f"{name}={value}" for name, value in sizes.items())]), flush=True)
                result = self._measured(part, sizes, Path(scratch) / f"{part}.json")
                if self.results and (result.figures or result.tables or result.fault):
                    result = _stored(self.results, replace(result, size=self.size))
                if result.fault:
                    print(f"{part}: FAULT {result.fault}", flush=True)
                yield result

    def _measured(self, part: str, sizes: Mapping[str, str], file: Path) -> PartResult:
        began, busy, own = perf_counter(), busy_seconds(), own_seconds()
        child = subprocess.Popen(
            [sys.executable, "-m", self.module, "--json", str(file), part],
            env={**sizes, **self.environment},
            start_new_session=True,  # Ctrl-C reaches this process alone, which passes it on once
            pass_fds=self.holds,
        )
        try:
            while child.poll() is None:
                self.pause(LOOK_EVERY)
        except Interrupted:
            _end(child)
            raise
        try:
            (result,) = results_of(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return faulted(part, f"its process ended with {_ending(child.returncode)} and left no results")
        others = (busy_seconds() - busy) - (own_seconds() - own)
        return replace(result, others=max(0.0, round(others / (perf_counter() - began), 2)))


@contextmanager
def held(results: Path) -> Iterator[int]:
    """Keep a file of results for this run. Raises ResultsRefused when another run has it, or nobody can write it.

    The file descriptor holds the file's folder as long as any process has it open: a part that outlives this process,
    too.
    """
    holds = _opened(results.parent)
    try:
        read_results(results)
        yield holds
    finally:
        os.close(holds)


def _opened(folder: Path) -> int:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        holds = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise ResultsRefused(f"{folder} cannot hold results: {error.strerror}") from error
    try:
        fcntl.flock(holds, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(holds)
        raise ResultsRefused(f"a different run writes to {folder}: end that one first") from error
    return holds


def summary(results: list[PartResult]) -> str:
    """Return the lines that end a run: targets met, and what missed or failed."""
    met = sum(figure.met is True for result in results for figure in result.figures)
    missed = [(result.part, figure) for result in results for figure in result.missed]
    lines = [f"\ntargets: {met} met, {len(missed)} missed"]
    lines += [
        f"MISSED {part}: {figure.name}: {figure.value:,.4g} {figure.unit}, {figure.target}" for part, figure in missed
    ]
    lines += [f"FAULT {result.part}: {result.fault}" for result in results if result.fault]
    return "\n".join(lines)


def _stored(results: Path, result: PartResult) -> PartResult:
    try:
        write_result(results, result)
    except OSError as error:
        return replace(result, fault=f"its results were not written: {error.strerror}")
    return result


def _end(child: subprocess.Popen[bytes]) -> None:
    """Have a part end its processes. Kill it when that takes too long."""
    child.send_signal(signal.SIGINT)
    try:
        child.wait(GRACE)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _ending(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"code {code}"
