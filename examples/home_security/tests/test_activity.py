"""Sums of windows: what a day and a week of a home look like."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from examples.home_security.activity import Period, end_of_window, steps, totals, within
from examples.home_security.aggregates.home_activity import HomeActivity

NOON = datetime(2026, 3, 14, 12, tzinfo=UTC)
DAY = Period(NOON, timedelta(days=1), timedelta(minutes=30))


def window(minutes_ago: int, kind: str = "motion", readings: int = 2, ppm: int | None = None) -> HomeActivity:
    at = NOON - timedelta(minutes=minutes_ago)
    return HomeActivity("h", at, kind, readings, 1, ppm, ppm, ppm, at, at + timedelta(minutes=5))


@pytest.mark.parametrize(
    ("moment", "end"),
    [
        (NOON, NOON + timedelta(minutes=15)),
        (NOON + timedelta(microseconds=1), NOON + timedelta(minutes=15)),
        (NOON - timedelta(microseconds=1), NOON),
        (datetime(1969, 12, 31, 23, 59, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_window_ends_at_a_quarter_of_an_hour_after_each_of_its_instants(moment: datetime, end: datetime) -> None:
    assert end_of_window(moment) == end


def test_a_period_holds_windows_from_its_beginning_and_none_from_its_end() -> None:
    first, last, after, before = window(24 * 60), window(15), window(0), window(24 * 60 + 15)
    assert within([before, first, last, after], DAY) == (first, last)


def test_a_total_is_over_all_windows_of_a_kind_and_keeps_the_first_and_last_instant() -> None:
    found = totals([window(30, ppm=300), window(90, ppm=100), window(60, kind="door", readings=7)])
    assert [(one.kind, one.readings, one.active) for one in found] == [("door", 7, 1), ("motion", 4, 2)]
    motion = found[1]
    assert (motion.ppm_hundredths, motion.least_ppm_hundredths, motion.most_ppm_hundredths) == (400, 100, 300)
    assert motion.first_observed_at == window(90).first_observed_at
    assert motion.last_observed_at == window(30).last_observed_at
    assert motion.window_start == window(90).window_start


def test_what_measures_nothing_has_no_parts_per_million_and_takes_none_from_what_does() -> None:
    assert totals([window(30), window(15)])[0].ppm_hundredths is None
    (mixed,) = totals([window(30), window(15, ppm=500)])
    assert (mixed.ppm_hundredths, mixed.least_ppm_hundredths, mixed.most_ppm_hundredths) == (500, 500, 500)


def test_a_measure_of_nothing_is_a_measure() -> None:
    (found,) = totals([window(30, ppm=0), window(15, ppm=500)])
    assert (found.ppm_hundredths, found.least_ppm_hundredths) == (500, 0)


def test_steps_are_counted_from_the_beginning_of_the_period_by_kind_and_time() -> None:
    given = [window(15), window(30), window(45), window(45, kind="door")]
    found = steps(given, DAY)
    half, hour = NOON - timedelta(minutes=30), NOON - timedelta(minutes=60)
    assert [(one.kind, one.window_start, one.readings) for one in found] == [
        ("door", hour, 2),
        ("motion", hour, 2),
        ("motion", half, 4),
    ]


def test_steps_of_a_period_add_up_to_its_totals() -> None:
    windows = [window(15 * at, readings=at + 1, ppm=at) for at in range(1, 97)]
    (total,), parts = totals(windows), steps(windows, DAY)
    assert sum(one.readings for one in parts) == total.readings
    assert sum(one.ppm_hundredths or 0 for one in parts) == total.ppm_hundredths
    assert len(parts) == 48
    assert totals([replace(one, window_start=one.window_start) for one in parts]) == (total,)
