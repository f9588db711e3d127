"""`python -m hubledger COMMAND`: put the commands together, and turn every fault into one line and an exit code.

0: done; 1: refused, or a fault was found; 2: the command was called in a wrong way; 130: interrupted.
"""

import os
import sys
from collections.abc import Sequence

NEEDED = ("typer", "rich", "msgspec")
DONE, FAULT, USAGE = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return _fail("interrupted; nothing was written", 130)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        from hubledger.commands import run
    except ModuleNotFoundError as error:
        if error.name not in NEEDED:
            raise
        return _fail(
            f"{error.name} is missing: run `make .venv/local.done` and use .venv/bin/python, or run"
            " `pip install -r local/requirements.txt`"
        )
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return run(given, _fail) if given else max(USAGE, run(["--help"], _fail))
    except BrokenPipeError:  # the reader of a pipe has gone, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAULT


def _fail(line: str, code: int = FAULT) -> int:
    print(f"hubledger: {line}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
