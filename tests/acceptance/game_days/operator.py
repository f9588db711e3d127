"""The person on duty: runs the commands of a section of the runbook at a terminal, and answers yes when asked.

`az` and `azd` are stand-ins that only note their arguments: the game day carries these commands out.
"""

import os
import pty
import re
import select
import subprocess
import sys
import termios
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from local.programs import APP
from tests.acceptance.game_days.page import PLACEHOLDER
from tests.patience import Patience

SIZE = (50, 160)  # lines and columns of the terminal
DEADLINE = 60.0  # seconds of an idle machine for one command that shows nothing new
AZURE = ("az", "azd", "spark-submit")
NAMES = {"GROUP": "rg-hubledger", "APP_NAME": "hubledger-app", "WORKERS": "hubledger-workers"}
_NOTING = """#!/bin/sh
printf '%s\\n' "$(basename "$0") $*" >> "{calls}"
"""
_QUESTION = re.compile(rb"\[y/N\]:? *$", re.I)


@dataclass(frozen=True, slots=True)
class Ran:
    """A command as it was run, what the terminal showed, and its exit code."""

    command: str
    output: str
    code: int


@dataclass
class Operator:
    """Follows docs/runbook.md at the terminal. `url` is the app's address. `ran` has every command so far."""

    folder: Path
    url: str = ""
    ran: list[Ran] = field(default_factory=list)

    def run(self, command: str, **given: str) -> Ran:
        """Run a command of the page to the letter, in a shell at a terminal.

        `given` says where each placeholder comes from: a pattern whose group is found in what earlier commands showed,
        or, for words that nobody has to look up, `=the words`.
        """
        words = PLACEHOLDER.sub(lambda word: self._value(word[0], given), command)
        master, slave = pty.openpty()
        termios.tcsetwinsize(slave, SIZE)
        with subprocess.Popen(
            ["bash", "-c", words], cwd=APP, env=self._environment(), stdin=slave, stdout=slave, stderr=slave
        ) as process:
            os.close(slave)
            try:
                output = _shown(master, process)
            except AssertionError:
                process.kill()
                raise
        os.close(master)
        self.ran.append(Ran(words, output.decode("utf-8", "replace").replace("\r\n", "\n"), process.returncode))
        return self.ran[-1]

    def azure_calls(self) -> list[str]:
        calls = self.folder / "calls"
        return calls.read_text(encoding="utf-8").splitlines() if calls.exists() else []

    @property
    def seen(self) -> str:
        return "\n".join(one.output for one in self.ran)

    def _value(self, name: str, given: Mapping[str, str]) -> str:
        pattern = given.get(name, f"={name}")
        if pattern.startswith("="):
            return pattern[1:]
        found = re.findall(pattern, self.seen)
        assert found, f"nothing on the screen says {name}: {pattern}\n{self.seen}"
        return str(found[-1])

    def _environment(self) -> dict[str, str]:
        tools = self.folder / "tools"
        if not tools.exists():
            tools.mkdir()
            noting = _NOTING.format(calls=self.folder / "calls")
            python = f'#!/bin/sh\nexec "{sys.executable}" "$@"\n'  # a link would leave its venv
            for name, text in {"python": python, **dict.fromkeys(AZURE, noting)}.items():
                (tools / name).write_text(text, encoding="utf-8")
                (tools / name).chmod(0o755)
        kept = {name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ}
        wide = {"TERM": "dumb", "NO_COLOR": "1", "LANG": "C.UTF-8"}
        return {**kept, **wide, "PATH": f"{tools}:{os.environ['PATH']}", "HUBLEDGER_URL": self.url, **NAMES}


def _shown(master: int, process: "subprocess.Popen[bytes]") -> bytes:
    """Return what a command shows until its end. Answer its questions with yes."""
    shown, patience = b"", Patience(DEADLINE)
    while True:
        ready, _, _ = select.select([master], [], [], 0.2)
        try:
            more = os.read(master, 65_536) if ready else b""
        except OSError:  # Linux: the terminal has no more users
            return shown
        if ready and not more:
            return shown
        shown += more
        if more and _QUESTION.search(shown):
            os.write(master, b"y\n")
        if not ready and process.poll() is not None:
            return shown
        patience.look(partial(bytes.decode, shown, errors="replace"))
