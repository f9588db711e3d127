"""Rollups of windows, computed by plain Python: a second arithmetic, to compare levels with."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from core.model.aggregates import Aggregate, aggregate_table

MIDNIGHT = datetime(2000, 1, 1, tzinfo=UTC)


def rolled(windows: Iterable[Any], level: Aggregate) -> list[Any]:
    """Return the windows of a level, in the order of its key, from those of any finer level."""
    found: dict[tuple[Any, ...], list[Any]] = {}
    for one in windows:
        begins = _begin(one.window_start, level.window)
        key = tuple(begins if name == "window_start" else getattr(one, name) for name in level.key)
        found.setdefault(key, []).append(one)
    return [_summed(key, found[key], level) for key in sorted(found)]


def with_levels(windows: Iterable[Any]) -> list[Any]:
    """Return windows of the finest level, followed by those of every rollup."""
    finest = list(windows)
    levels = aggregate_table(type(finest[0])).rollups
    return [*finest, *(one for level in levels for one in rolled(finest, level))]


def _begin(moment: datetime, window: timedelta) -> datetime:
    return moment - (moment - MIDNIGHT) % window


def _summed(key: tuple[Any, ...], windows: list[Any], level: Aggregate) -> Any:
    values = []
    for measure in level.measures:
        column = [value for one in windows if (value := getattr(one, measure.name)) is not None]
        joined = {"count": sum, "sum": sum, "least": min, "most": max}[measure.kind]
        values.append(joined(column) if column else None)  # type: ignore[operator]
    return level.of(*key, *values)
