"""A host in its own process, as a person starts it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.patience import Patience, allowed, ended

ROOT = Path(__file__).parents[3]
DEADLINE_S = 30.0  # of an idle machine
READY = "functions host ready on "


class StartedHost:
    """`python -m local.functions_host` for an app; it is ready when this is made."""

    def __init__(self, app: Path, *arguments: str) -> None:
        self._seen = app / "seen.jsonl"
        command = [sys.executable, "-m", "local.functions_host", "--app", str(app), "--port", "0", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "SEEN_FILE": str(self._seen)}
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.lines = self._until_ready()
        self.base_url = self.lines[-1].removeprefix(READY)

    def _until_ready(self) -> list[str]:
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line.rstrip("\n"))
            if line.startswith(READY):
                return lines
        raise AssertionError(f"the host did not get ready: {self.process.communicate()[1]}")

    def seen(self, function_name: str) -> list[Any]:
        """Return the notes of a function, of all processes that ran the app."""
        if not self._seen.exists():
            return []
        lines = self._seen.read_text().splitlines()
        return [value for name, value in map(json.loads, lines) if name == function_name]

    def until(self, holds: Callable[[], object]) -> None:
        """Wait for a condition while the host runs."""
        patience = Patience(DEADLINE_S)
        while not holds():
            assert self.process.poll() is None, f"the host ended with {self.process.returncode}"
            patience.pause()

    def stop(self, number: int) -> tuple[int, str]:
        """Send a signal; return the exit code and the text of standard error."""
        self.process.send_signal(number)
        _, errors = ended(self.process, DEADLINE_S)
        return self.process.returncode, errors


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command to its end."""
    command = [sys.executable, "-m", "local.functions_host", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=allowed(DEADLINE_S), check=False)
