"""The result of a part: what was measured, where and when; written to a JSON file and read back."""

import json
import math
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.figures import Cell, Figure, Table

LARGE, SERVER = "full", "server"  # folders below the results: of the large sizes, and of a store on SQL Server


class ResultsRefused(Exception):
    """A folder or a file of results cannot be used; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class PartResult:
    """One run of a part. `is_dirty` says that the code differed from the commit; None where there is no git."""

    part: str
    made_at: str
    seconds: float
    commit: str
    is_dirty: bool | None
    machine: Mapping[str, str | int]
    load: tuple[float, float]  # at the start and at the end: runnable processes, over one minute
    settings: Mapping[str, str]  # the variables BENCH_* that gave sizes
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]
    others: float | None = None  # how many cores other work kept busy meanwhile
    fault: str | None = None  # why the part ended early; the figures are those before

    @property
    def missed(self) -> tuple[Figure, ...]:
        """The figures that miss their targets."""
        return tuple(figure for figure in self.figures if figure.met is False)


def text_of(result: PartResult) -> str:
    """Return the JSON of a result. A value that is no finite number becomes null."""
    return json.dumps(_finite(asdict(result)), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def result_of(text: str) -> PartResult:
    """Return the result of a JSON text; raise ValueError when it is cut off, or is no result."""
    try:
        found: dict[str, Any] = json.loads(text)
        figures = tuple(Figure(**{**one, "value": _number(one["value"])}) for one in found.pop("figures"))
        tables = tuple(
            Table(one["name"], tuple(one["columns"]), tuple(map(tuple, one["rows"]))) for one in found.pop("tables")
        )
        return PartResult(**{**found, "load": tuple(found["load"])}, figures=figures, tables=tables)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def write_result(folder: Path, result: PartResult) -> Path:
    """Replace the file of the result's part whole, so that no reader ever sees half of it."""
    path = folder / f"{result.part}.json"
    write_whole(path, text_of(result))
    return path


def write_whole(path: Path, text: str) -> None:
    """Write a file beside the path, and put it into the path's place."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=".", delete=False) as beside:
        try:
            beside.write(text)
            beside.flush()
            os.fchmod(beside.fileno(), 0o644)
            os.replace(beside.name, path)
        except BaseException:
            os.unlink(beside.name)
            raise


def read_results(folder: Path) -> dict[str, list[PartResult]]:
    """Return the results of a folder and its subfolders, in the order of their parts, by the subfolder's name."""
    found: dict[str, list[PartResult]] = {}
    for size in ("", LARGE, SERVER):
        for path in sorted((folder / size).glob("[!.]*.json")):
            try:
                result = result_of(path.read_text(encoding="utf-8"))
            except ValueError as error:
                text = f"{path} is no whole file of results ({error}): delete it, or measure the part again"
                raise ResultsRefused(text) from error
            if result.part != path.stem:
                raise ResultsRefused(f"{path} holds the results of the part {result.part}: give it that name")
            found.setdefault(size, []).append(result)
    return found


def _number(value: Cell) -> float:
    if isinstance(value, str):
        raise TypeError(f"the value {value!r} is a text")
    return math.nan if value is None else value


def _finite(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return None
        case dict():
            return {name: _finite(one) for name, one in value.items()}
        case list() | tuple():
            return [_finite(one) for one in value]
    return value
