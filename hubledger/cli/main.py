"""`python -m hubledger COMMAND`: put the commands together, and turn every fault into a line and an exit code.

0: done; 1: refused, or the thing that was asked about is not healthy; 2: a wrong call or setting, or no
connection; 130: interrupted.
"""

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

OF_ROOMS = ("new", "migrate-diff", "try")
OF_PROJECT = ("core", "hubledger", "local")
DONE, FAULT, USAGE = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return _fail("interrupted; nothing was written", 130)


def _run(arguments: Sequence[str] | None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr does: not every terminal has every letter
    try:
        from hubledger.cli.commands import run

        return run(given, _fail) if given else max(USAGE, run(["--help"], _fail))
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] in OF_PROJECT:
            raise
        return _fail(_missing(str(error.name), given))
    except BrokenPipeError:  # the reader of a pipe has gone, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAULT


def _missing(name: str, given: Sequence[str]) -> str:
    if given and given[0] in OF_ROOMS:
        return (
            f"{name} is missing: run `make .venv/local.done` and use .venv/bin/python, or run"
            " `pip install -r local/requirements.txt`"
        )
    return f"{name} is missing: run `pip install -r requirements-cli.txt`"


def _fail(line: str, code: int = FAULT) -> int:
    print(f"hubledger: {line}", file=sys.stderr)
    return code
