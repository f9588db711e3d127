"""A real terminal: tmux with a server of its own, in which one command line runs."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.patience import Patience, allowed
from tests.repo.product import ROOT

TMUX = shutil.which("tmux")
WITHOUT_TMUX = "tmux is not installed: apt-get install tmux"
DEADLINE_S = 60.0  # of an idle machine
ENDED = "ended with code "


def environment(url: str, **more: str) -> dict[str, str]:
    """The environment of a command: without what would turn off colour or change the width."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES", "TERM")}
    return {**kept, "HUBLEDGER_URL": url, **more}


def hubledger(url: str, *arguments: str, root: Path = ROOT, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command of a checkout without a terminal."""
    return subprocess.run(
        [sys.executable, "-m", "hubledger", *arguments],
        cwd=root,
        env=environment(url, **more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=allowed(DEADLINE_S),
        check=False,
    )


class Terminal:
    """One command in a terminal of a size. The terminal stays after its end, with the exit code on a line."""

    def __init__(self, folder: Path, given: Mapping[str, str], command: str, size: tuple[int, int] = (80, 40)) -> None:
        self._socket = str(folder / "tmux")
        width, height = size
        line = f"trap : INT; {sys.executable} -m hubledger {command}; echo {ENDED}$?; cat"
        fresh = {**given, "TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "SHELL": "/bin/sh"}
        at = ["new-session", "-d", "-x", str(width), "-y", str(height), line]
        self._tmux("-f", "/dev/null", *at, env=fresh)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._tmux("kill-server", checked=False)

    def _tmux(self, *arguments: str, env: Mapping[str, str] | None = None, checked: bool = True) -> str:
        assert TMUX is not None
        done = subprocess.run(
            [TMUX, "-S", self._socket, *arguments], cwd=ROOT, env=env, capture_output=True, text=True, check=checked
        )
        return done.stdout

    def press(self, *keys: str) -> None:
        """Press keys, by their names in tmux."""
        self._tmux("send-keys", *keys)

    def screen(self, *, with_colours: bool = False) -> str:
        """The text on the screen, with its colours as escapes where they are wanted."""
        return self._tmux("capture-pane", "-p", *(["-e"] if with_colours else []))

    def title(self) -> str:
        """The title that a program gave the terminal, or tmux's own."""
        return self._tmux("display-message", "-p", "#{pane_title}").strip()

    def until(self, holds: Callable[[str], object]) -> str:
        """Wait until the screen fulfils a condition, and return it."""
        patience = Patience(DEADLINE_S)
        while not holds(screen := self.screen()):
            patience.pause(self.screen, 0.05)
        return screen

    def shows(self, text: str) -> str:
        """Wait until the screen shows a text, its lines joined, and return the screen."""
        return self.until(lambda screen: text in joined(screen))

    def code(self) -> int:
        """Wait until the command has ended, and return its exit code."""
        ended = re.compile(rf"{ENDED}(\d+)")
        found = ended.search(joined(self.until(lambda screen: ended.search(joined(screen)))))
        assert found
        return int(found[1])


class Shell(Terminal):
    """A shell in a terminal of 80x24, in which a person types one line after the other."""

    def __init__(self, folder: Path, root: Path, given: Mapping[str, str]) -> None:
        self._socket = str(folder / "tmux")
        fresh = {**given, "TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
        at = ["new-session", "-d", "-x", "80", "-y", "24", "-c", str(root), "/bin/sh"]
        self._tmux("-f", "/dev/null", *at, env=fresh)
        self.type("trap : INT")

    def type(self, line: str) -> None:
        """Type a line, and press Enter."""
        self._tmux("send-keys", "-l", line)
        self.press("Enter")

    def begin(self, line: str) -> None:
        """Type a command on an empty screen; `code` waits for its end."""
        self._tmux("send-keys", "-R")
        self._tmux("clear-history")
        self.type(f"{line}; echo {ENDED}$?")

    def screen(self, *, with_colours: bool = False) -> str:
        """All that was printed since the command began; a line that the terminal has wrapped is one line."""
        return self._tmux("capture-pane", "-p", "-J", "-S", "-")


def joined(screen: str) -> str:
    """The screen without the breaks of its lines."""
    return screen.replace("\n", "")
