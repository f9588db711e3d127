"""One trial: run tests in a tree with a mutant, and read from pytest's summary which test killed the mutant."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.mutants.mutant import Mutant
from tests.mutants.trees import planted

Verdict = Literal["killed", "timeout", "SURVIVED", "BROKEN", "DOES NOT APPLY"]
GOOD: tuple[Verdict, ...] = ("killed", "timeout")
MEMORY = 4_000_000  # KiB of a test run: a mutant that loops may collect things for ever
# A bug that shows as one of these is no bug of the logic: any test that loads the code would see it.
TRIVIAL = re.compile(
    r"^E +.*\b(SyntaxError|IndentationError|NameError|UnboundLocalError|ImportError|ModuleNotFoundError"
    r"|syntax error|no such column|Incorrect number of bindings)\b.*$",
    re.MULTILINE,
)
SUMMARY = re.compile(r"^(FAILED|ERROR) (\S+?::\S.*?|\S+)(?: - (.*))?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of a mutant: `by` is the test that killed it, or the reason why it counts for nothing."""

    mutant: Mutant
    verdict: Verdict
    by: str
    seconds: float


class Runner:
    """Runs pytest in trees, each run in a separate process group; `stop` ends all that run."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def try_mutant(self, mutant: Mutant, tree: Path) -> Trial:
        """Run the tests of a mutant with the mutant planted."""
        began = time.monotonic()
        try:
            with planted(mutant, tree):
                verdict, by = _verdict(*self.run(mutant.tests, tree, self._deadline))
        except ValueError as error:
            verdict, by = "DOES NOT APPLY", str(error)
        except subprocess.TimeoutExpired:
            verdict, by = "timeout", f"no end after {self._deadline:g} s"
        return Trial(mutant, verdict, by, time.monotonic() - began)

    def run(self, tests: Sequence[str], tree: Path, deadline: float | None = None) -> tuple[int, str]:
        """Return pytest's exit code and output; TimeoutExpired after the deadline."""
        options = ["-x", "-q", "-rfE", "--tb=short", "--no-header", "--assert=plain"]  # plain: twice as fast
        limited = ["sh", "-c", 'ulimit -v "$0" 2>/dev/null; exec "$@"', str(MEMORY)]
        environment = {**os.environ, "COLUMNS": "400"} | ({"PYTHONDONTWRITEBYTECODE": "1"} if deadline else {})
        process = subprocess.Popen(
            [*limited, sys.executable, "-m", "pytest", *options, *tests],
            cwd=tree,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        with self._lock:
            self._running.add(process)
        try:
            if self._stopped:
                raise KeyboardInterrupt
            output, _ = process.communicate(timeout=deadline)
        finally:
            self._end(process)
        return process.returncode, output

    def stop(self) -> None:
        """End every run, and let no further one begin."""
        with self._lock:
            self._stopped, running = True, list(self._running)
        for process in running:
            _kill(process)

    def _end(self, process: subprocess.Popen[str]) -> None:
        if process.poll() is None:
            _kill(process)
            process.communicate()
        with self._lock:
            self._running.discard(process)


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill the process group of a run: a hanging test may have children."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _verdict(code: int, output: str) -> tuple[Verdict, str]:
    if code == 0:
        return "SURVIVED", ""
    trivial, found = TRIVIAL.search(output), SUMMARY.search(output)
    if trivial:
        return "BROKEN", trivial[0].removeprefix("E").strip()
    if found is None or found[1] == "ERROR":
        return "BROKEN", found[0] if found else f"pytest ended with {code}: {output.strip()[-300:]}"
    return "killed", found[2]
