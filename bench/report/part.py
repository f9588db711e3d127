"""One part measured in this process: its results printed as they come, and returned with the circumstances."""

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from time import perf_counter

from bench.figures import Figure, Result, Table
from bench.report.machine import commit, fault_text, load, machine
from bench.report.results import PartResult


def measure_part(part: str, measure: Callable[[], Iterator[Result]]) -> PartResult:
    """Measure a part. When it raises, print the fault in a line and return it with the results before."""
    began, load_before, (name, is_dirty) = perf_counter(), load(), commit()
    results: list[Result] = []
    fault = None
    try:
        for result in measure():
            print(result, flush=True)
            results.append(result)
    except Exception as error:  # noqa: BLE001 - whatever a part raises, the other parts are measured
        fault = fault_text(error)
    return PartResult(
        part=part,
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(perf_counter() - began, 1),
        commit=name,
        is_dirty=is_dirty,
        machine=machine(),
        load=(load_before, load()),
        settings=settings(),
        figures=tuple(one for one in results if isinstance(one, Figure)),
        tables=tuple(one for one in results if isinstance(one, Table)),
        fault=fault,
    )


def faulted(part: str, fault: str) -> PartResult:
    """Return the result of a part whose process ended without one."""
    name, is_dirty = commit()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return PartResult(part, now, 0.0, name, is_dirty, machine(), (load(), load()), settings(), (), (), fault=fault)


def settings() -> dict[str, str]:
    """Return the variables that give sizes."""
    return {name: value for name, value in sorted(os.environ.items()) if name.startswith("BENCH_")}
