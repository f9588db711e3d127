"""The time to import `function_app`, beyond that of azure.functions and azure.durable_functions."""

import subprocess
import sys
from collections.abc import Iterator
from statistics import median

from bench.figures import Figure

ROUNDS = 11
_BARE = "import azure.functions, azure.durable_functions"
_CODE = "import time; started = time.perf_counter(); {}; print(time.perf_counter() - started)"


def measure() -> Iterator[Figure]:
    """Measure the difference of medians in milliseconds, in turn in new processes."""
    bare, ours = [], []
    for _ in range(ROUNDS):
        bare.append(_seconds(_BARE))
        ours.append(_seconds(f"{_BARE}, function_app"))
    extra = (median(ours) - median(bare)) * 1e3
    note = f"{median(bare) * 1e3:.0f} ms alone"
    yield Figure("import of function_app over azure.functions and durable", extra, "ms", "<= 25", extra <= 25, note)


def _seconds(statement: str) -> float:
    code = [sys.executable, "-c", _CODE.format(statement)]
    return float(subprocess.run(code, capture_output=True, text=True, check=True).stdout)
