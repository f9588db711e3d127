"""Measure the import of `function_app`, as a share of the import of azure.functions and azure.durable_functions."""

import subprocess
import sys
from collections.abc import Iterator
from statistics import median

from bench.figures import Figure

ROUNDS = 11
LIMIT = 0.15
_CODE = """
from time import perf_counter
started = perf_counter()
import azure.functions, azure.durable_functions
bare = perf_counter()
import function_app
print(bare - started, perf_counter() - bare)
"""


def measure() -> Iterator[Figure]:
    """Measure both parts in each of some fresh processes, and yield the median of their ratios."""
    parts = [_seconds() for _ in range(ROUNDS)]
    ratio = median(beyond / bare for bare, beyond in parts)
    bare, beyond = (median(column) * 1e3 for column in zip(*parts, strict=True))
    note = f"{beyond:.0f} ms beyond {bare:.0f} ms"
    yield Figure("import of function_app beyond the bare import", ratio, "of it", f"<= {LIMIT}", ratio <= LIMIT, note)


def _seconds() -> tuple[float, float]:
    done = subprocess.run([sys.executable, "-c", _CODE], capture_output=True, text=True, check=True)
    bare, beyond = map(float, done.stdout.split())
    return bare, beyond
