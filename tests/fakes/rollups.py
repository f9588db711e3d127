"""Windows of rows, and rollups of windows, computed by plain Python: a second arithmetic, to compare levels with."""

from collections.abc import Iterable
from datetime import UTC, datetime, time, timedelta
from typing import Any

from core.model.aggregates import Aggregate, Measure, aggregate_table

MIDNIGHT = datetime(2000, 1, 1, tzinfo=UTC)


def windows_of(rows: Iterable[Any], one: Aggregate) -> list[Any]:
    """Return the windows of the finest level over rows of the source, in the order of its key."""
    found: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        at = getattr(row, one.at)
        begins = _begin(at if isinstance(at, datetime) else datetime.combine(at, time(), UTC), one.window)
        key = tuple(begins if name == "window_start" else getattr(row, name) for name in one.key)
        found.setdefault(key, []).append(row)
    return [one.of(*key, *(_measured(each, found[key]) for each in one.measures)) for key in sorted(found)]


def rolled(windows: Iterable[Any], level: Aggregate) -> list[Any]:
    found: dict[tuple[Any, ...], list[Any]] = {}
    for one in windows:
        begins = _begin(one.window_start, level.window)
        key = tuple(begins if name == "window_start" else getattr(one, name) for name in level.key)
        found.setdefault(key, []).append(one)
    return [_summed(key, found[key], level) for key in sorted(found)]


def with_levels(windows: Iterable[Any]) -> list[Any]:
    finest = list(windows)
    levels = aggregate_table(type(finest[0])).rollups
    return [*finest, *(one for level in levels for one in rolled(finest, level))]


def _measured(measure: Measure, rows: list[Any]) -> Any:
    if measure.column is None:
        return len(rows)
    column = [value for row in rows if (value := getattr(row, measure.column)) is not None]
    if measure.kind == "count":
        return column.count(measure.value)
    least_or_most_or_sum = {"sum": sum, "least": min, "most": max}[measure.kind]
    found = least_or_most_or_sum(column) if column else None  # type: ignore[operator]
    return found * measure.times if isinstance(found, int) else found


def _begin(moment: datetime, window: timedelta) -> datetime:
    return moment - (moment - MIDNIGHT) % window


def _summed(key: tuple[Any, ...], windows: list[Any], level: Aggregate) -> Any:
    values = []
    for measure in level.measures:
        column = [value for one in windows if (value := getattr(one, measure.name)) is not None]
        joined = {"count": sum, "sum": sum, "least": min, "most": max}[measure.kind]
        values.append(joined(column) if column else None)  # type: ignore[operator]
    return level.of(*key, *values)
