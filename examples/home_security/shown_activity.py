"""The last day and week of a home, with its alerts."""

import json
from datetime import UTC, datetime, timedelta

from examples.home_security.activity import Period, end_of_window, steps, totals, within
from examples.home_security.aggregates.home_activity import HomeActivity
from examples.home_security.homes import Homes
from examples.home_security.shapes import (
    ActivityAnswer,
    ActivityQuery,
    ActivityStepAnswer,
    AlertAnswer,
    AsOfAnswer,
    HomePath,
    KindAnswer,
    PeriodAnswer,
    PpmAnswer,
    ReadingAnswer,
)
from hubledger.web import Call, Nothing, Windows, invalid, not_found, utc

DAY, DAY_STEP = timedelta(days=1), timedelta(minutes=30)
WEEK, WEEK_STEP = timedelta(days=7), timedelta(hours=4)
MOST_ALERTS, MOST_READINGS = 50, 20
EARLIEST, LATEST = (
    datetime(2000, 1, 1, tzinfo=UTC),
    datetime(2101, 1, 1, tzinfo=UTC),
)  # a little wider than event times may be


def ppm_of(one: HomeActivity) -> PpmAnswer | None:
    """Return the mean, the lowest and the highest of the measurements."""
    if one.ppm_hundredths is None or one.least_ppm_hundredths is None or one.most_ppm_hundredths is None:
        return None
    mean = round(one.ppm_hundredths / one.readings / 100, 2)
    return PpmAnswer(mean=mean, least=one.least_ppm_hundredths / 100, most=one.most_ppm_hundredths / 100)


def read_activity(call: Call[HomePath, ActivityQuery, Nothing]) -> ActivityAnswer:
    """Return the activity of a home."""
    store, home_id = call.room().store, call.path.home_id
    homes = Homes(store)
    home = homes.find_home(home_id)
    if home is None:
        raise not_found("home_id", f"no home is registered as {home_id}")
    until = _until(call, homes)
    day, week = Period(until, DAY, DAY_STEP), Period(until, WEEK, WEEK_STEP)
    read = store.read_windows(HomeActivity, home_id, week.since, week.until)
    windows = read.windows
    alerts = homes.read_alerts(home_id, week.since, week.until, MOST_ALERTS + 1)
    newest = [one.last_observed_at for one in windows] + [one.observed_at for one in alerts[:1]]
    return ActivityAnswer(
        at=call.at,
        home_id=home.home_id,
        time_zone=home.time_zone,
        armed=home.armed,
        as_of=_as_of(read),
        newest_at=max(newest, default=None),
        day=_period(day, windows),
        week=_period(week, windows),
        alerts=[
            AlertAnswer(sensor_id=one.sensor_id, kind=one.kind, ppm=one.ppm, observed_at=one.observed_at)
            for one in alerts[:MOST_ALERTS]
        ],
        more_alerts=len(alerts) > MOST_ALERTS,
        readings=[] if windows or call.query.until else _readings(homes, home_id),
    )


def _readings(homes: Homes, home_id: str) -> list[ReadingAnswer]:
    found = homes.read_newest_readings(home_id, MOST_READINGS)
    return [
        ReadingAnswer(sensor_id=one.sensor_id, kind=one.kind, state=one.state, ppm=one.ppm, observed_at=one.observed_at)
        for one in found
    ]


def _until(call: Call[HomePath, ActivityQuery, Nothing], homes: Homes) -> datetime:
    """Return the end of the period: the quarter of an hour of `until`, else of the home's newest event, else of now.

    The period is in event time, so that a stream with its own clock (a feed, a replay) shows its own last day. Events
    dated after now do not count: one wrong clock would hide the last day.
    """
    requested = utc(call.query.until, "until")
    if requested is not None:
        if not EARLIEST <= requested < LATEST:
            raise invalid("until", f"must be between the years {EARLIEST:%Y} and {LATEST:%Y}")
        return end_of_window(requested)
    now, home_id = end_of_window(call.at), call.path.home_id
    last_window = homes.read_last_window(home_id, now)
    last_alert = homes.read_alerts(home_id, EARLIEST, now, 1)
    found = [one.observed_at for one in last_alert] + ([] if last_window is None else [last_window])
    return end_of_window(max(found)) if found else now


def _as_of(read: Windows[HomeActivity]) -> AsOfAnswer:
    return AsOfAnswer(cut=json.loads(read.cut), is_current=read.is_current, committed_at=read.committed_at)


def _period(period: Period, windows: tuple[HomeActivity, ...]) -> PeriodAnswer:
    inside = within(windows, period)
    parts = steps(inside, period)
    return PeriodAnswer(
        since=period.since,
        until=period.until,
        step_minutes=int(period.step / timedelta(minutes=1)),
        kinds=[_kind(one, [part for part in parts if part.kind == one.kind]) for one in totals(inside)],
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
