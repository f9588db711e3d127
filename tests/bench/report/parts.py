"""Parts that fail in every way: run as a module in place of `bench`."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure, Result, Table
from bench.report.part import measure_part
from bench.report.results import text_of

SPEED = Figure("speed", 7.5, "x", ">= 5", True, "measured")
LATE = Figure("delay", 9.0, "s", "<= 2", False)
COUNTS = Table("Counts", ("peer", "lost"), (("ours", 0), ("theirs", 12), ("unknown", None)))


def good() -> Iterator[Result]:
    yield SPEED
    yield COUNTS


def late() -> Iterator[Result]:
    yield LATE


def raising() -> Iterator[Result]:
    yield SPEED
    raise RuntimeError("3 of 5 letters are in /somewhere/on/this/machine/store.db\nand more")


def killed() -> Iterator[Result]:
    yield SPEED
    os.kill(os.getpid(), signal.SIGKILL)


def leaving() -> Iterator[Result]:
    yield SPEED
    sys.exit(3)


def endless() -> Iterator[Result]:
    """Begin, wait for Ctrl-C, and note that there was time to clean up."""
    folder = Path(os.environ["BENCH_FOLDER"])
    try:
        (folder / "begun").touch()
        signal.pause()
    finally:
        (folder / "cleaned").touch()
    yield SPEED


if __name__ == "__main__":
    _, _, file, part = sys.argv
    Path(file).write_text(text_of([measure_part(part, globals()[part])]), encoding="utf-8")
