from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pytest

from core.errors import InvalidTransform
from core.model import aggregates
from core.model.aggregates import Count, CountOf, Kept, Key, Least, Most, Sum, aggregate_of, aggregate_table
from core.transforms.loading import find_aggregate, load_aggregates
from examples.flight_info.aggregates.flight_punctuality import FlightPunctuality
from examples.flight_info.transform import FlightChange
from examples.home_security.aggregates.home_activity import HomeActivity
from examples.home_security.transform import Home, SensorReading

QUARTER, HOUR, DAY = timedelta(minutes=15), timedelta(hours=1), timedelta(days=1)
NOON = datetime(2026, 2, 10, 12, tzinfo=UTC)


def test_an_aggregate_names_its_tables_its_key_and_its_measures() -> None:
    one = aggregate_table(HomeActivity)
    assert (one.name, one.staged) == ("home_activity", "home_activity_staged")
    assert (one.source, one.at, one.count) == (SensorReading, "observed_at", "readings")
    assert one.key == ("home_id", "window_start", "kind")
    assert [each.name for each in one.grouped_by] == ["home_id", "kind"]
    assert one.instants == ("window_start", "first_observed_at", "last_observed_at")
    assert aggregates.aggregate_named("home_activity") is find_aggregate("home_activity") is one
    assert one.end_of_window(NOON) == one.end_of_window(NOON + QUARTER - timedelta(microseconds=1)) == NOON + QUARTER
    with pytest.raises(InvalidTransform, match="Home is not an aggregate: declare it with @aggregate_of"):
        aggregate_table(Home)
    with pytest.raises(InvalidTransform, match="no aggregate is named nothing"):
        find_aggregate("nothing")


def test_the_aggregates_of_a_transform_are_those_of_its_rows() -> None:
    for rows, names in (
        ([], ["flight_punctuality", "home_activity"]),
        ([(Home, SensorReading)], ["home_activity"]),
        ([(FlightChange,)], ["flight_punctuality"]),
        ([()], []),
    ):
        assert [one.name for one in load_aggregates(*rows)] == names


def made(fields: dict[str, Any], source: type = SensorReading, **options: Any) -> Callable[[], type]:
    def declare() -> type:
        declared: type = dataclass(frozen=True)(type("Wrong", (), {"__annotations__": fields}))
        given = {"at": "observed_at", "window": QUARTER, **options}
        return aggregate_of(source, "wrong", **given)(declared)

    return declare


GOOD = {"home_id": Annotated[str, Key(32)], "window_start": datetime, "readings": Annotated[int, Count()]}


def more(**fields: Any) -> Callable[[], type]:
    return made({**GOOD, **fields})


WRONG = {
    "is no class of appended rows": made(GOOD, source=Home),
    "Wrong.home: a key is a column of the source": made({"home": Annotated[str, Key(32)], **GOOD}),
    "Wrong.ppm: a key is a column of the source, of type str or int": made(
        {"ppm": Annotated[int | None, Key()], **GOOD}
    ),
    "Wrong.home_id: annotate it with Key or a measure": made({"home_id": str, "window_start": datetime}),
    "Wrong.home_id: annotate it with one Key or one measure": made({"home_id": Annotated[str, Key(), Count()]}),
    "Wrong.kind: the key comes before the measures": more(kind=Annotated[str, Key(20)]),
    "the first of them before window_start": made({"window_start": datetime, **dict([*GOOD.items()][::2])}),
    "one measure is Count()": more(more=Annotated[int, Count()]),
    "Wrong.most: the source has no column watts": more(most=Annotated[int, Most("watts")]),
    "Wrong.most: state holds no integers": more(most=Annotated[str | None, Most("state")]),
    "Wrong.sum: times is a whole number up to 1000000, and not 0": more(
        sum=Annotated[int | None, Sum("ppm", times=1_000_001)]
    ),
    "Wrong.sum: observed_at holds no integers": more(sum=Annotated[int, Sum("observed_at")]),
    "Wrong.least: write int | None as its type, because that is the type of ppm": more(
        least=Annotated[int, Least("ppm")]
    ),
    "Wrong.active: write int as its type, because it counts rows": more(
        active=Annotated[int | None, CountOf("state", "active")]
    ),
    "sensor_id is no column of the source that always holds an instant or a day": made(GOOD, at="sensor_id"),
    "a day is no whole number of windows of 0:07:00": made(GOOD, window=timedelta(minutes=7)),
}


def levels(rollups: dict[str, Any], window: Any = QUARTER) -> Callable[[], type]:
    return made(GOOD, window=window, rollups=rollups)


def test_each_level_is_an_aggregate_with_its_own_tables_windows_and_class() -> None:
    finest, hour, day = aggregate_table(HomeActivity).levels
    assert [one.name for one in (finest, hour, day)] == ["home_activity", "home_activity_hour", "home_activity_day"]
    assert (day.staged, day.window, day.key, day.values) == ("home_activity_day_staged", DAY, finest.key, finest.values)
    assert aggregate_table(day.of) is day
    assert hour.levels == (hour,)
    assert {one.name for one in aggregates.declared_aggregates()} & {one.name for one in finest.levels} == {
        "home_activity"
    }
    assert [one.name for one in aggregate_table(FlightPunctuality).levels] == ["flight_punctuality"]
    one = day.of("home-1", NOON, "motion", 1, 1, None, None, None, NOON, NOON)
    assert isinstance(one, HomeActivity)
    assert (day.of.__name__, replace(one, readings=2).readings) == ("HomeActivityDay", 2)


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


@pytest.mark.parametrize("fault", [*WRONG, *WRONG_LEVELS])
def test_a_wrong_declaration_is_refused_with_its_fault(fault: str) -> None:
    with pytest.raises(InvalidTransform) as refused:
        (WRONG | WRONG_LEVELS)[fault]()
    assert fault in str(refused.value)


def test_the_fields_of_the_wrong_ones_are_otherwise_good_as_are_levels_with_the_same_retention_or_a_longer_one() -> (
    None
):
    assert aggregate_table(made(GOOD)()).columns == ("home_id", "window_start", "readings")
    one = aggregate_table(levels({"hour": Kept(HOUR, 10 * DAY), "day": DAY}, Kept(QUARTER, 10 * DAY))())
    assert [level.keep for level in one.levels] == [10 * DAY, 10 * DAY, None]
