"""The report of a benchmark: figures with their targets and verdicts, and tables."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value with its unit and its target. `met` is None without a target."""

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


Cell: TypeAlias = str | int | float | None  # None where nothing was measured


@dataclass(frozen=True, slots=True)
class Table:
    """A table of measured values. `name` is its heading."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __str__(self) -> str:
        lines = [self.columns, *(tuple(map(cell_text, row)) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join([self.name, *("  ".join(map(_placed, line, widths)).rstrip() for line in lines)])


Result: TypeAlias = Figure | Table


def cell_text(cell: Cell) -> str:
    match cell:
        case None:
            return "-"
        case float():
            return f"{cell:,.0f}" if abs(cell) >= 100 else f"{cell:,.3g}"
        case int():
            return f"{cell:,}"
        case _:
            return cell


def _placed(text: str, width: int) -> str:
    return text.rjust(width) if text[:1].isdigit() or text[:1] == "-" else text.ljust(width)


def paired(first: Callable[[int], object], second: Callable[[int], object], rounds: int) -> tuple[float, float]:
    """Measure two calls in turn, so that both see the same machine. Return median seconds, without the first tenth."""
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds):
        for call, taken in zip((first, second), times, strict=True):
            started = perf_counter()
            call(number)
            taken.append(perf_counter() - started)
    warm = rounds // 10
    return median(times[0][warm:]), median(times[1][warm:])
