"""The report of a benchmark: a figure, its target, and the verdict."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value with its unit and its target; `met` is None without a target."""

    name: str
    value: float
    unit: str
    target: str
    met: bool | None
    note: str = ""

    def __str__(self) -> str:
        verdict = {True: "met", False: "MISSED", None: ""}[self.met]
        return (
            f"{self.name:<58} {self.value:>10.2f} {self.unit:<10} {self.target:<12} {verdict:<7} {self.note}".rstrip()
        )


def paired(first: Callable[[int], object], second: Callable[[int], object], rounds: int) -> tuple[float, float]:
    """Measure two calls in turn, so that both see the same machine; return median seconds, without the first tenth."""
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds):
        for call, taken in zip((first, second), times, strict=True):
            started = perf_counter()
            call(number)
            taken.append(perf_counter() - started)
    warm = rounds // 10
    return median(times[0][warm:]), median(times[1][warm:])
