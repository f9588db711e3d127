"""The first and the last instant that a row can hold are in their windows, in SQL and in the lake."""

from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from tests.spark.readings import gas
from tests.spark.world import World

WITH_LAKE = True

FIRST, LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)
END_OF_DAY = datetime(2026, 2, 28, 23, 59, 59, 999_999, UTC)
TIMES = (FIRST, END_OF_DAY, LAST)


def windows(world: World) -> list[tuple[object, ...]]:
    """Return the windows of every level that are stored, as texts."""
    names = ("home_activity", "home_activity_hour", "home_activity_day")
    select = "SELECT window_start, readings, ppm_hundredths, least_ppm_hundredths, first_observed_at FROM "
    return [row for name in names for row in world.sqlite.sql(f"{select}{name} ORDER BY window_start")]


def expected(least: int, total: int, readings: int) -> list[tuple[object, ...]]:
    begins = [
        ("0001-01-01T00:00:00", "2026-02-28T23:45:00", "9999-12-31T23:45:00"),
        ("0001-01-01T00:00:00", "2026-02-28T23:00:00", "9999-12-31T23:00:00"),
        ("0001-01-01T00:00:00", "2026-02-28T00:00:00", "9999-12-31T00:00:00"),
    ]
    at = [f"{one.isoformat(timespec='microseconds').removesuffix('+00:00')}Z" for one in TIMES]
    return [
        (f"{begin}.000000Z", readings, 100 * total, 100 * least, first)
        for level in begins
        for begin, first in zip(level, at, strict=True)
    ]


def test_each_instant_is_in_its_window_also_when_a_replay_takes_the_least_value(world: World) -> None:
    """The window is computed again from its rows, which end with year 9999."""
    firsts = [world.commit([gas(at=at, ppm=5), gas(at=at, ppm=7)]) for at in TIMES]
    world.settle()
    assert windows(world) == expected(5, 12, 2)
    world.remove(firsts, "0")
    world.settle()
    assert windows(world) == expected(7, 7, 1)


def test_the_lake_has_the_same_windows(world: World, folder: Path) -> None:
    for ppm in (5, 7):
        world.commit([gas(at=at, ppm=ppm) for at in TIMES])
        world.settle()
    days = pl.read_delta(str(folder / "gold/home_activity")).select("window_start", "first_observed_at", "window_date")
    assert [(row[1], row[2]) for row in sorted(days.rows())] == [(at, at.date()) for at in TIMES]
    assert windows(world) == expected(5, 12, 2)
