"""One trial: run tests in a tree with a mutant, and read from pytest's summary which test killed the mutant."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE, STDOUT

from tests.mutants.tables import Mutant

Trial = tuple[str, str]  # the verdict, and the test that killed the mutant or the reason why it counts for nothing
GOOD = ("killed", "timeout")  # the others: SURVIVED, BROKEN, DOES NOT APPLY
MEMORY = 4_000_000  # KiB of a test run: a mutant that loops may collect things for ever
# A bug that shows as one of these is no bug of the logic: any test that loads the code would see it.
TRIVIAL = re.compile(
    r"^E +.*\b(SyntaxError|IndentationError|NameError|UnboundLocalError|ImportError|ModuleNotFoundError"
    r"|syntax error|no such column|Incorrect number of bindings)\b.*$",
    re.MULTILINE,
)
SUMMARY = re.compile(r"^(FAILED|ERROR) (\S+?::\S.*?|\S+)(?: - (.*))?$", re.MULTILINE)
OPTIONS = ("-x", "-q", "-rfE", "--tb=short", "--no-header", "--assert=plain")  # plain: twice as fast


class Runner:
    """Runs pytest in trees, each run in a separate process group. `stop` ends all that run."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def try_mutant(self, mutant: Mutant, tree: Path) -> Trial:
        path = tree / mutant.path
        original = path.read_text(encoding="utf-8")
        try:
            path.write_text(mutant.planted(original), encoding="utf-8")
            return _trial(*self.run(mutant.tests, tree, self._deadline))
        except ValueError as error:
            return "DOES NOT APPLY", str(error)
        except subprocess.TimeoutExpired:
            return "timeout", f"no end after {self._deadline:g} s"
        finally:
            path.write_text(original, encoding="utf-8")

    def run(self, tests: Sequence[str], tree: Path, deadline: float | None = None) -> tuple[int, str]:
        """Return pytest's exit code and output. Raises TimeoutExpired after the deadline."""
        limited = ["sh", "-c", 'ulimit -v "$0" 2>/dev/null; exec "$@"', str(MEMORY)]
        command = [*limited, sys.executable, "-m", "pytest", *OPTIONS, *tests]
        environment = {**os.environ, "COLUMNS": "400"} | ({"PYTHONDONTWRITEBYTECODE": "1"} if deadline else {})
        process = subprocess.Popen(
            command, cwd=tree, env=environment, text=True, start_new_session=True, stdout=PIPE, stderr=STDOUT
        )
        self._running.add(process)
        try:
            if self._stopped:
                raise KeyboardInterrupt
            output, _ = process.communicate(timeout=deadline)
        finally:
            if process.poll() is None:
                _kill(process)
                process.communicate()
            self._running.discard(process)
        return process.returncode, output

    def stop(self) -> None:
        self._stopped = True
        for process in list(self._running):
            _kill(process)


def _kill(process: "subprocess.Popen[str]") -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _trial(code: int, output: str) -> Trial:
    if code == 0:
        return "SURVIVED", ""
    trivial, found = TRIVIAL.search(output), SUMMARY.search(output)
    if trivial:
        return "BROKEN", trivial[0].removeprefix("E").strip()
    if found is None or found[1] == "ERROR":
        return "BROKEN", found[0] if found else f"pytest ended with {code}: {output.strip()[-300:]}"
    return "killed", found[2]
