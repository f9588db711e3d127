"""Homes: found by how their ids begin; one with its last day and week by kind of sensor, and its alerts."""

import json
import re
from datetime import UTC, datetime, timedelta

import msgspec

from core.aggregation.activity import HomeActivity, Period, end_of_window, steps, totals, within
from core.aggregation.tick import HOME_ACTIVITY
from core.store.homes import HomeReading
from handlers.aggregation_services import aggregation_services
from handlers.cursors import cursor_of, key_of
from handlers.desk import desk
from handlers.operation import Call, Nothing, Operation, utc
from handlers.operations.home_shapes import (
    ActivityAnswer,
    ActivityQuery,
    ActivityStepAnswer,
    AlertAnswer,
    AsOfAnswer,
    HomeAnswer,
    HomePath,
    HomesAnswer,
    HomesQuery,
    KindAnswer,
    PeriodAnswer,
    ppm_of,
)
from handlers.problems import NOT_FOUND, invalid, not_found

DAY, DAY_STEP = timedelta(days=1), timedelta(minutes=30)
WEEK, WEEK_STEP = timedelta(days=7), timedelta(hours=4)
MOST_ALERTS, MOST_RUNS = 50, 100
EARLIEST, LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2101, 1, 1, tzinfo=UTC)  # as events may be, and a little
_UNADDRESSABLE = re.compile(r".*/.*|\.{1,2}")


def find_homes(call: Call[Nothing, HomesQuery, Nothing]) -> HomesAnswer:
    """A page; one home more is read, to see whether there is a page behind it."""
    query = call.query
    bound_to = msgspec.structs.replace(query, cursor=None, limit=1)
    after = "" if query.cursor is None else key_of(bound_to, query.cursor, tuple[str])[0]
    found = aggregation_services().store.find_homes(query.prefix, after, query.limit + 1)
    page = found[: query.limit]
    homes = [HomeAnswer(home_id=one, has_page=not _UNADDRESSABLE.fullmatch(one)) for one in page]
    return HomesAnswer(homes=homes, next=cursor_of(bound_to, (page[-1],)) if len(found) > query.limit else None)


def show_activity(call: Call[HomePath, ActivityQuery, Nothing]) -> ActivityAnswer:
    """The cut is read first: sums that a run adds meanwhile are newer than what they say to be of, never older."""
    home_id, homes = call.path.home_id, desk().store.homes
    home = homes.find_home(home_id)
    if home is None:
        raise not_found("home_id", f"no home is registered as {home_id}")
    as_of = _as_of()
    until = _until(call, homes)
    day, week = Period(until, DAY, DAY_STEP), Period(until, WEEK, WEEK_STEP)
    windows = aggregation_services().store.read_activity(home_id, week.since, week.until)
    alerts = homes.read_alerts(home_id, week.since, week.until, MOST_ALERTS + 1)
    newest = [one.last_observed_at for one in windows] + [one.observed_at for one in alerts[:1]]
    return ActivityAnswer(
        at=call.at,
        home_id=home.home_id,
        time_zone=home.time_zone,
        armed=home.armed,
        as_of=as_of,
        newest_at=max(newest, default=None),
        day=_period(day, windows),
        week=_period(week, windows),
        alerts=[msgspec.convert(one, AlertAnswer, from_attributes=True) for one in alerts[:MOST_ALERTS]],
        more_alerts=len(alerts) > MOST_ALERTS,
    )


def _until(call: Call[HomePath, ActivityQuery, Nothing], homes: HomeReading) -> datetime:
    """The end of what is asked for; else of the home's newest event so far; else of now.

    Event time, so that a stream with a clock of its own (a feed, a replay) shows its own last day. What a sensor dates
    past now does not count: one wrong clock would hide the day that there was.
    """
    asked = utc(call.query.until, "until")
    if asked is not None:
        if not EARLIEST <= asked < LATEST:
            raise invalid("until", f"between the years {EARLIEST:%Y} and {LATEST:%Y}")
        return end_of_window(asked)
    now, home_id = end_of_window(call.at), call.path.home_id
    last_window = homes.read_last_window(home_id, now)
    last_alert = homes.read_alerts(home_id, EARLIEST, now, 1)
    found = [one.observed_at for one in last_alert] + ([] if last_window is None else [last_window])
    return end_of_window(max(found)) if found else now


def _as_of() -> AsOfAnswer:
    store = aggregation_services().store
    standing = store.read_standing(HOME_ACTIVITY)
    runs = store.read_runs(HOME_ACTIVITY, standing.number + 1, MOST_RUNS)
    committed = (one.closed_at for one in runs if one.status == "committed")
    return AsOfAnswer(
        cut=json.loads(standing.cut), is_current=standing.cut == standing.reached, committed_at=next(committed, None)
    )


def _period(period: Period, windows: tuple[HomeActivity, ...]) -> PeriodAnswer:
    own = within(windows, period)
    parts = steps(own, period)
    return PeriodAnswer(
        since=period.since,
        until=period.until,
        step_minutes=int(period.step / timedelta(minutes=1)),
        kinds=[_kind(one, [part for part in parts if part.kind == one.kind]) for one in totals(own)],
    )


def _kind(total: HomeActivity, parts: list[HomeActivity]) -> KindAnswer:
    return KindAnswer(
        kind=total.kind,
        readings=total.readings,
        active=total.active,
        ppm=ppm_of(total),
        first_observed_at=total.first_observed_at,
        last_observed_at=total.last_observed_at,
        steps=[
            ActivityStepAnswer(at=one.window_start, readings=one.readings, active=one.active, ppm=ppm_of(one))
            for one in parts
        ],
    )


OPERATIONS = (
    Operation(
        "find_homes",
        "Registered homes by how their ids begin",
        find_homes,
        {200: HomesAnswer},
        query=HomesQuery,
        tag="homes",
    ),
    Operation(
        "show_activity",
        "The last day and week of a home, and its alerts",
        show_activity,
        {200: ActivityAnswer},
        path=HomePath,
        query=ActivityQuery,
        problems=(NOT_FOUND,),
        tag="homes",
    ),
)
