"""Levels of an aggregate: their tables, their windows, their retention, and what is refused."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pytest

from core.errors import InvalidTransform
from core.model.aggregates import Count, Kept, Key, aggregate_of, aggregate_table, declared_aggregates
from examples.flight_info.aggregates.flight_punctuality import FlightPunctuality
from examples.home_security.aggregates.home_activity import HomeActivity
from examples.home_security.transform import SensorReading

QUARTER, HOUR, DAY = timedelta(minutes=15), timedelta(hours=1), timedelta(days=1)
NOON = datetime(2026, 2, 10, 12, tzinfo=UTC)


def made(rollups: dict[str, Any], window: Any = QUARTER) -> Callable[[], type]:
    """Return a function that declares an aggregate with these levels."""

    def declare() -> type:
        fields = {
            "home_id": Annotated[str, Key(32)],
            "window_start": datetime,
            "readings": Annotated[int, Count()],
        }
        declared: type = dataclass(frozen=True)(type("Wrong", (), {"__annotations__": fields}))
        return aggregate_of(SensorReading, "wrong", at="observed_at", window=window, rollups=rollups)(declared)

    return declare


def test_each_level_is_an_aggregate_with_its_own_tables_and_windows() -> None:
    finest, hour, day = aggregate_table(HomeActivity).levels
    assert [one.name for one in (finest, hour, day)] == ["home_activity", "home_activity_hour", "home_activity_day"]
    assert (day.staged, day.window, day.key, day.values) == ("home_activity_day_staged", DAY, finest.key, finest.values)
    assert aggregate_table(day.of) is day
    assert hour.levels == (hour,)
    assert {one.name for one in declared_aggregates()} & {one.name for one in finest.levels} == {"home_activity"}
    assert [one.name for one in aggregate_table(FlightPunctuality).levels] == ["flight_punctuality"]


def test_a_window_of_a_level_is_of_its_own_class_with_the_fields_of_the_declared_one() -> None:
    day = aggregate_table(HomeActivity).levels[-1].of
    one = day("home-1", NOON, "motion", 1, 1, None, None, None, NOON, NOON)
    assert isinstance(one, HomeActivity)
    assert (day.__name__, replace(one, readings=2).readings) == ("HomeActivityDay", 2)


def test_windows_are_kept_for_their_time_to_the_beginning_of_the_day() -> None:
    one = aggregate_table(made({"day": DAY}, Kept(QUARTER, 7 * DAY))())
    assert [level.keep for level in one.levels] == [7 * DAY, None]
    midnight = NOON - 12 * HOUR
    assert one.horizon(NOON) == one.horizon(midnight) == midnight - 7 * DAY
    assert one.horizon(midnight - timedelta(microseconds=1)) == midnight - 8 * DAY
    assert one.rollups[0].horizon(NOON) is None


WRONG = {
    "Wrong: rollup hour: 0:50:00 is no whole number of windows of 0:15:00": made({"hour": timedelta(minutes=50)}),
    "Wrong: rollup third: 0:20:00 is no whole number of windows of 0:15:00": made({"third": timedelta(minutes=20)}),
    "Wrong: rollup hour: 0:15:00 is no whole number": made({"hour": QUARTER}),
    "Wrong: rollup week: 7 days, 0:00:00 is no whole number of windows of 0:15:00, or no whole part of a day": made(
        {"week": 7 * DAY}
    ),
    "Wrong: rollup hour: 1:00:00 is no whole number of windows of 1 day, 0:00:00": made({"day": DAY, "hour": HOUR}),
    "Wrong: rollup Hour: a name has lower-case letters": made({"Hour": HOUR}),
    "Wrong: rollup staged: a name has lower-case letters, digits and _, and is not staged or staging": made(
        {"staged": HOUR}
    ),
    "Wrong: rollup day: it is kept for a shorter time": made({"day": Kept(DAY, 9 * DAY)}, Kept(QUARTER, 10 * DAY)),
    "Wrong: rollup hour: it is kept for a shorter time": made({"hour": Kept(HOUR, 9 * DAY)}),
    "Wrong: rollup day: it is kept for a day at least, not for 1:00:00": made({"day": Kept(DAY, HOUR)}),
    "Wrong: window: it is kept for a day at least, not for 0:00:00": made({}, Kept(QUARTER, timedelta())),
    "Wrong: a day is no whole number of windows of 0:07:00": made({}, timedelta(minutes=7)),
    "Wrong: rollup second: 0:00:00.500000 is no whole number": made(
        {"second": timedelta(milliseconds=500)}, timedelta(milliseconds=250)
    ),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_level_is_refused_with_its_fault(fault: str) -> None:
    with pytest.raises(InvalidTransform) as refused:
        WRONG[fault]()
    assert fault in str(refused.value)


def test_levels_with_the_same_retention_or_a_longer_one_are_good() -> None:
    one = aggregate_table(made({"hour": Kept(HOUR, 10 * DAY), "day": DAY}, Kept(QUARTER, 10 * DAY))())
    assert [level.keep for level in one.levels] == [10 * DAY, 10 * DAY, None]
