"""The recount of an aggregate: the appended rows of a store, added up by the aggregate's declaration in plain Python.

The recount of the rows has compared these rows with the published events.
"""

import sqlite3
from collections import namedtuple
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from core.model.aggregates import EPOCH, WINDOW_START, Aggregate, Measure
from core.model.rows import row_table
from local.recount.stored import instant_text
from local.stack.app_totals import reading

SHOWN = 20  # the limit of named windows


Window = tuple[Any, ...]  # the values of an aggregate's key, in the order of its columns


@dataclass(frozen=True, slots=True)
class Recounted:
    """Both sides of the recount of the aggregate `name`: the windows by the rows, and the windows in the store.

    The sums of a window are a named tuple that begins with the number of rows. `coarser` has the recounts of the
    coarser levels.
    """

    name: str
    expected: Mapping[Window, Any]
    found: Mapping[Window, Any]
    coarser: tuple["Recounted", ...] = ()

    @property
    def rows(self) -> int:
        return sum(sums[0] for sums in self.found.values())

    @property
    def differences(self) -> list[str]:
        """The differing windows of each level: the first ones with their values, then the number of all others."""
        differing = sorted(
            one for one in {*self.expected, *self.found} if self.expected.get(one) != self.found.get(one)
        )
        shown = [f"{self.name}: {' '.join(map(str, one))}: {self._difference(one)}" for one in differing[:SHOWN]]
        more = len(differing) - len(shown)
        further = [f"{self.name}: and {more} more windows differ"] if more else []
        return [*shown, *further, *(text for one in self.coarser for text in one.differences)]

    def _difference(self, window: Window) -> str:
        expected, found = self.expected.get(window), self.found.get(window)
        if found is None or expected is None:
            return "it is missing" if found is None else "no row belongs to it"
        names = [name for name in expected._fields if getattr(found, name) != getattr(expected, name)]
        return ", ".join(f"{name} {getattr(found, name)} instead of {getattr(expected, name)}" for name in names)


def recount_aggregate(of: Aggregate, store: Path) -> Recounted:
    """Add up the rows of a store for each level of an aggregate, and read the levels of the store."""
    with reading(store) as connection:
        columns = row_table(of.source).columns
        selected = ", ".join(f"[{name}]" for name in columns)
        found = connection.execute(f"SELECT {selected} FROM {row_table(of.source).name}")
        rows = [dict(zip(columns, row, strict=True)) for row in found]
        finest, *coarser = (_recounted(connection, level, rows) for level in of.levels)
    return replace(finest, coarser=tuple(coarser))


def _recounted(connection: sqlite3.Connection, of: Aggregate, rows: Iterable[Mapping[str, Any]]) -> Recounted:
    values = (of.count, *(name for name in of.values if name != of.count))
    sums_of = cast(Any, namedtuple)("Sums", values)
    parts: dict[Window, list[Mapping[str, Any]]] = {}
    for row in rows:
        begins = {WINDOW_START: _begin(row[of.at], of)}
        parts.setdefault(tuple({**row, **begins}[name] for name in of.key), []).append(row)
    measures = {one.name: one for one in of.measures}
    expected = {one: sums_of(*(_value(measures[name], part) for name in values)) for one, part in parts.items()}
    selected = ", ".join(f"[{name}]" for name in (*of.key, *values))
    stored = connection.execute(f"SELECT {selected} FROM {of.name}").fetchall()
    found = {row[: len(of.key)]: sums_of(*row[len(of.key) :]) for row in stored}
    return Recounted(of.name, _retained(expected, of), _retained(found, of))


def _retained(windows: dict[Window, Any], of: Aggregate) -> dict[Window, Any]:
    """Return the windows that no run has removed because of their age."""
    horizon, place = of.horizon(datetime.now(UTC)), of.key.index(WINDOW_START)
    return {one: sums for one, sums in windows.items() if horizon is None or one[place] >= instant_text(horizon)}


def _begin(at: str, of: Aggregate) -> str:
    """Return the beginning of the window of an instant, or of a day."""
    moment = datetime.fromisoformat(at)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return instant_text(moment - (moment - EPOCH) % of.window)


def _value(measure: Measure, rows: list[Mapping[str, Any]]) -> Any:
    """Return the value of a measure. Instants are texts, which sort like times."""
    if measure.kind == "count":
        return sum(measure.column is None or row[measure.column] == measure.value for row in rows)
    values = [row[measure.column] for row in rows if measure.column and row[measure.column] is not None]
    if not values:
        return None
    values = values if measure.holds is datetime else [measure.times * value for value in values]
    if measure.kind == "sum":
        return sum(values)
    return min(values) if measure.kind == "least" else max(values)
