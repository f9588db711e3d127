"""The result of a part: its figures, the machine and the time. All results are one JSON file."""

import json
import math
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.figures import Cell, Figure, Table

LARGE, SERVER = "full", "server"  # sizes of a part: the large one, and the one with a store on SQL Server
SIZES = ("", LARGE, SERVER)


class ResultsRefused(Exception):
    """A file of results cannot be used. The message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class PartResult:
    """One run of a part. `is_dirty` says that the code differed from the commit, or None where there is no git."""

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
    size: str = ""  # one of SIZES

    @property
    def missed(self) -> tuple[Figure, ...]:
        """The figures that miss their targets."""
        return tuple(figure for figure in self.figures if figure.met is False)


Results = Mapping[str, list[PartResult]]  # by size, and then in the order of the parts


def text_of(results: Iterable[PartResult]) -> str:
    """Return the JSON of results, with a line for each figure and each row. A number that is not finite is null."""
    return f"{_lined(map(_entry, sorted(results, key=_place)))}\n"


def results_of(text: str) -> list[PartResult]:
    """Return the results of a JSON text. Raises ValueError when it is cut off, or holds no results."""
    try:
        return [_result(one) for one in json.loads(text)]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def write_result(path: Path, result: PartResult) -> None:
    """Put the result of a part and its size into the file in place of the earlier one. Only one run may write."""
    others = [one for each in read_results(path).values() for one in each if _place(one) != _place(result)]
    write_whole(path, text_of([*others, result]))


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


def read_results(path: Path) -> Results:
    """Return the results of a file, and none without the file. Raises ResultsRefused and OSError."""
    if not path.exists():
        return {}
    try:
        results = sorted(results_of(path.read_text(encoding="utf-8")), key=_place)
    except ValueError as error:
        raise ResultsRefused(f"{path} is no whole file of results ({error}): restore it, or delete it") from error
    found = {size: [one for one in results if one.size == size] for size in SIZES}
    return {size: parts for size, parts in found.items() if parts}


def _place(result: PartResult) -> tuple[str, str]:
    return result.part, result.size


def _entry(result: PartResult) -> str:
    found = asdict(result)
    figures, tables = found.pop("figures"), found.pop("tables")
    shown = ", ".join(
        f'"{name}": {_lined(map(text, given))}'
        for name, text, given in (("figures", _json, figures), ("tables", _table, tables))
    )
    return f"{_json(found)[:-1]}, {shown}}}"


def _table(table: dict[str, Any]) -> str:
    rows = table.pop("rows")
    return f'{_json(table)[:-1]}, "rows": {_lined(map(_json, rows))}}}'


def _lined(texts: Iterable[str]) -> str:
    return f"[\n{body}\n]" if (body := ",\n".join(texts)) else "[]"


def _json(value: Any) -> str:
    return json.dumps(_finite(value), ensure_ascii=False, allow_nan=False)


def _result(found: dict[str, Any]) -> PartResult:
    figures = tuple(Figure(**{**one, "value": _number(one["value"])}) for one in found.pop("figures"))
    tables = tuple(
        Table(one["name"], tuple(one["columns"]), tuple(map(tuple, one["rows"]))) for one in found.pop("tables")
    )
    return PartResult(**{**found, "load": tuple(found["load"])}, figures=figures, tables=tables)


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
