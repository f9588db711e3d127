"""core/model/aggregates.py: declarations, their levels and retention, and what is refused."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pytest

from core.errors import InvalidTransform
from core.model.aggregates import (
    Count,
    CountOf,
    Kept,
    Key,
    Least,
    Most,
    Sum,
    aggregate_named,
    aggregate_of,
    aggregate_table,
    declared_aggregates,
)
from core.transforms.loading import find_aggregate, load_aggregates
from examples.flight_info.aggregates.flight_punctuality import FlightPunctuality
from examples.flight_info.transform import FlightChange
from examples.home_security.aggregates.home_activity import HomeActivity
from examples.home_security.transform import Home, SensorReading


def test_an_aggregate_names_its_tables_its_key_and_its_measures() -> None:
    one = aggregate_table(HomeActivity)
    assert (one.name, one.staged, one.source, one.at) == (
        "home_activity",
        "home_activity_staged",
        SensorReading,
        "observed_at",
    )
    assert one.key == ("home_id", "window_start", "kind")
    assert [each.name for each in one.grouped_by] == ["home_id", "kind"]
    assert one.count == "readings"
    assert one.instants == ("window_start", "first_observed_at", "last_observed_at")
    assert aggregate_named("home_activity") is find_aggregate("home_activity") is one


def test_the_aggregates_of_a_transform_are_those_of_its_rows() -> None:
    assert [one.name for one in load_aggregates()] == ["flight_punctuality", "home_activity"]
    assert [one.name for one in load_aggregates((Home, SensorReading))] == ["home_activity"]
    assert [one.name for one in load_aggregates((FlightChange,))] == ["flight_punctuality"]
    assert load_aggregates(()) == ()


def test_a_window_ends_after_its_length() -> None:
    one, noon = aggregate_table(HomeActivity), datetime(2026, 2, 10, 12, tzinfo=UTC)
    assert one.end_of_window(noon) == one.end_of_window(noon + QUARTER - timedelta(microseconds=1)) == noon + QUARTER


def test_what_was_never_declared_is_refused() -> None:
    with pytest.raises(InvalidTransform, match="Home is not an aggregate: declare it with @aggregate_of"):
        aggregate_table(Home)
    with pytest.raises(InvalidTransform, match="no aggregate is named nothing"):
        find_aggregate("nothing")


def made(fields: dict[str, Any], source: type = SensorReading, **options: Any) -> Callable[[], type]:
    """Return a function that declares a class with these fields."""

    def declare() -> type:
        declared: type = dataclass(frozen=True)(type("Wrong", (), {"__annotations__": fields}))
        given = {"at": "observed_at", "window": QUARTER, **options}
        return aggregate_of(source, "wrong", **given)(declared)

    return declare


HOME = {"home_id": Annotated[str, Key(32)], "window_start": datetime}
GOOD = {**HOME, "readings": Annotated[int, Count()]}
WRONG = {
    "is no class of appended rows": made(GOOD, source=Home),
    "Wrong.home: a key is a column of the source": made({"home": Annotated[str, Key(32)], **GOOD}),
    "Wrong.ppm: a key is a column of the source, of type str or int": made(
        {"ppm": Annotated[int | None, Key()], **GOOD}
    ),
    "Wrong.home_id: annotate it with Key or a measure": made({"home_id": str, "window_start": datetime}),
    "Wrong.home_id: annotate it with one Key or one measure": made({"home_id": Annotated[str, Key(), Count()]}),
    "Wrong.kind: the key comes before the measures": made({**GOOD, "kind": Annotated[str, Key(20)]}),
    "the first of them before window_start": made(
        {"window_start": datetime, "home_id": Annotated[str, Key(32)], "readings": Annotated[int, Count()]}
    ),
    "one measure is Count()": made({**GOOD, "more": Annotated[int, Count()]}),
    "Wrong.most: the source has no column watts": made({**GOOD, "most": Annotated[int, Most("watts")]}),
    "Wrong.most: state holds no integers": made({**GOOD, "most": Annotated[str | None, Most("state")]}),
    "Wrong.sum: times is a whole number up to 1000000, and not 0": made(
        {**GOOD, "sum": Annotated[int | None, Sum("ppm", times=1_000_001)]}
    ),
    "Wrong.sum: observed_at holds no integers": made({**GOOD, "sum": Annotated[int, Sum("observed_at")]}),
    "Wrong.least: write int | None as its type, because that is the type of ppm": made(
        {**GOOD, "least": Annotated[int, Least("ppm")]}
    ),
    "Wrong.active: write int as its type, because it counts rows": made(
        {**GOOD, "active": Annotated[int | None, CountOf("state", "active")]}
    ),
    "sensor_id is no column of the source that always holds an instant or a day": made(GOOD, at="sensor_id"),
    "a day is no whole number of windows of 0:07:00": made(GOOD, window=timedelta(minutes=7)),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_declaration_is_refused_with_its_fault(fault: str) -> None:
    with pytest.raises(InvalidTransform) as refused:
        WRONG[fault]()
    assert fault in str(refused.value)


def test_the_fields_of_the_wrong_ones_are_otherwise_good() -> None:
    assert aggregate_table(made(GOOD)()).columns == ("home_id", "window_start", "readings")


QUARTER, HOUR, DAY = timedelta(minutes=15), timedelta(hours=1), timedelta(days=1)
NOON = datetime(2026, 2, 10, 12, tzinfo=UTC)


def levels(rollups: dict[str, Any], window: Any = QUARTER) -> Callable[[], type]:
    """Return a function that declares an aggregate with these levels."""
    return made(GOOD, window=window, rollups=rollups)


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
    one = aggregate_table(levels({"day": DAY}, Kept(QUARTER, 7 * DAY))())
    assert [level.keep for level in one.levels] == [7 * DAY, None]
    midnight = NOON - 12 * HOUR
    assert one.horizon(NOON) == one.horizon(midnight) == midnight - 7 * DAY
    assert one.horizon(midnight - timedelta(microseconds=1)) == midnight - 8 * DAY
    assert one.rollups[0].horizon(NOON) is None


WRONG_LEVELS = {
    "Wrong: rollup hour: 0:50:00 is no whole number of windows of 0:15:00": levels({"hour": timedelta(minutes=50)}),
    "Wrong: rollup third: 0:20:00 is no whole number of windows of 0:15:00": levels({"third": timedelta(minutes=20)}),
    "Wrong: rollup hour: 0:15:00 is no whole number": levels({"hour": QUARTER}),
    "Wrong: rollup week: 7 days, 0:00:00 is no whole number of windows of 0:15:00, or no whole part of a day": levels(
        {"week": 7 * DAY}
    ),
    "Wrong: rollup hour: 1:00:00 is no whole number of windows of 1 day, 0:00:00": levels({"day": DAY, "hour": HOUR}),
    "Wrong: rollup Hour: a name has lower-case letters": levels({"Hour": HOUR}),
    "Wrong: rollup staged: a name has lower-case letters, digits and _, and is not staged or staging": levels(
        {"staged": HOUR}
    ),
    "Wrong: rollup day: it is kept for a shorter time": levels({"day": Kept(DAY, 9 * DAY)}, Kept(QUARTER, 10 * DAY)),
    "Wrong: rollup hour: it is kept for a shorter time": levels({"hour": Kept(HOUR, 9 * DAY)}),
    "Wrong: rollup day: it is kept for a day at least, not for 1:00:00": levels({"day": Kept(DAY, HOUR)}),
    "Wrong: window: it is kept for a day at least, not for 0:00:00": levels({}, Kept(QUARTER, timedelta())),
    "Wrong: a day is no whole number of windows of 0:07:00": levels({}, timedelta(minutes=7)),
    "Wrong: rollup second: 0:00:00.500000 is no whole number": levels(
        {"second": timedelta(milliseconds=500)}, timedelta(milliseconds=250)
    ),
}


@pytest.mark.parametrize("fault", WRONG_LEVELS)
def test_a_wrong_level_is_refused_with_its_fault(fault: str) -> None:
    with pytest.raises(InvalidTransform) as refused:
        WRONG_LEVELS[fault]()
    assert fault in str(refused.value)


def test_levels_with_the_same_retention_or_a_longer_one_are_good() -> None:
    one = aggregate_table(levels({"hour": Kept(HOUR, 10 * DAY), "day": DAY}, Kept(QUARTER, 10 * DAY))())
    assert [level.keep for level in one.levels] == [10 * DAY, 10 * DAY, None]
