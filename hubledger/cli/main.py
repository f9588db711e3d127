"""`bin/hubledger COMMAND`: put the commands together, and turn every fault into a line and an exit code.

0: done. 1: refused, or the thing that was asked about is not healthy. 2: a wrong call or setting, or no connection.
130: interrupted.
"""

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path

OF_ROOMS = ("new", "migrate-diff", "try")
OF_PROJECT = ("core", "hubledger", "local")
DONE, FAULT, USAGE = 0, 1, 2
ROOT = Path(__file__).resolve().parents[2]  # the project


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr does: not every terminal has every letter
    try:
        from hubledger.cli.commands import run

        return run(given, _fail) if given else max(USAGE, run(["--help"], _fail))
    except KeyboardInterrupt:
        return _fail("interrupted; nothing was written", 130)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] in OF_PROJECT:
            raise
        return _fail(missing(str(error.name), given))
    except BrokenPipeError:  # the reader of a pipe has gone, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAULT


def missing(name: str, given: Sequence[str]) -> str:
    """Return how to install a package that a command lacks."""
    if name == "mcp":
        return f"mcp is missing: run `{sys.executable} -m pip install -r {ROOT / 'requirements-mcp.txt'}`"
    file = "local/requirements.txt" if given and given[0] in OF_ROOMS else "requirements-cli.txt"
    alone = f"python3 -m venv .venv && .venv/bin/python -m pip install -r {file}"
    return f"{name} is missing: run `make setup`, or `{alone}`, in {ROOT}; then use bin/hubledger"


def _fail(line: str, code: int = FAULT) -> int:
    print(f"hubledger: {line}", file=sys.stderr)
    return code
