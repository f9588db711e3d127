"""Find homes by the beginning of their ids, and show the last day and week of one, with its alerts."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec

from core.model.aggregates import aggregate_table
from examples.home_security.activity import Period, end_of_window, steps, totals, within
from examples.home_security.aggregates.home_activity import HomeActivity
from handlers.app import App, app
from handlers.web.cursors import key_of, page_of, query_of
from handlers.web.operation import Answered, Call, Cursor, Instant, Nothing, Shape, operation, utc
from handlers.web.problems import NOT_FOUND, invalid, not_found

DAY, DAY_STEP = timedelta(days=1), timedelta(minutes=30)
WEEK, WEEK_STEP = timedelta(days=7), timedelta(hours=4)
MOST_ALERTS, MOST_READINGS, MOST_RUNS = 50, 20, 100
EARLIEST, LATEST = (
    datetime(2000, 1, 1, tzinfo=UTC),
    datetime(2101, 1, 1, tzinfo=UTC),
)  # a little wider than event times may be
MOST_HOMES = 100

# The ids that a registration may use, without "/", "." and "..", which no address can hold.
ADDRESSABLE = r"^(?!\.{1,2}\Z)[!-.0-~]{1,32}\Z"
HomeText = Annotated[str, msgspec.Meta(pattern=ADDRESSABLE, description="The id of a home.")]
Prefix = Annotated[str, msgspec.Meta(pattern=r"^[!-~]{0,32}\Z", description="The beginning of the ids; case matters.")]


class HomePath(Shape):
    """A home."""

    home_id: HomeText


class HomesQuery(Shape):
    """A page of homes, by id."""

    prefix: Prefix = ""
    cursor: Cursor | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_HOMES)] = 20


class ActivityQuery(Shape):
    """`until` shows an earlier day and week: those that end with its quarter of an hour."""

    until: Instant | None = None


class HomeAnswer(Answered):
    """A registered home. `has_page` is false for an id that no address can hold."""

    home_id: str
    has_page: bool


class HomesAnswer(Answered):
    """A page of homes."""

    homes: list[HomeAnswer]
    next: str | None


class PpmAnswer(Answered):
    """Parts per million, to the hundredth."""

    mean: float
    least: float
    most: float


class ActivityStepAnswer(Answered):
    """A step of a period in which a kind of sensor sent readings."""

    at: datetime
    readings: int
    active: int
    ppm: PpmAnswer | None


class KindAnswer(Answered):
    """A kind of sensor in a period. `active` counts the readings in state active; `ppm` is null where no sensor
    measures it. Steps without a reading are left out."""

    kind: str
    readings: int
    active: int
    ppm: PpmAnswer | None
    first_observed_at: datetime
    last_observed_at: datetime
    steps: list[ActivityStepAnswer]


class PeriodAnswer(Answered):
    """A day or a week of event time: from `since` to just before `until`."""

    since: datetime
    until: datetime
    step_minutes: int
    kinds: list[KindAnswer]


class AlertAnswer(Answered):
    """A reading that raised an alert."""

    sensor_id: str
    kind: str
    ppm: int | None
    observed_at: datetime


class ReadingAnswer(Answered):
    """A reading as its sensor sent it; `ppm` is null for a switch, `state` for a meter."""

    sensor_id: str
    kind: str
    state: str | None
    ppm: int | None
    observed_at: datetime


class AsOfAnswer(Answered):
    """The cut of the sums: the commit number of each stream and partition, and the time when its run was committed
    (null before the first run). `is_current` is true if nothing was committed since."""

    cut: dict[str, int]
    is_current: bool
    committed_at: datetime | None


class ActivityAnswer(Answered):
    """A home. `newest_at` is the time of its newest event in the answer. `alerts` are those of the week, the newest
    first; they do not wait for a run. `more_alerts`: the week has older alerts, which are left out. `readings` are the
    newest ones of a home without sums, as they arrived; empty where the week has sums, and where `until` is given."""

    at: datetime
    home_id: str
    time_zone: str
    armed: bool
    as_of: AsOfAnswer
    newest_at: datetime | None
    day: PeriodAnswer
    week: PeriodAnswer
    alerts: list[AlertAnswer]
    more_alerts: bool
    readings: list[ReadingAnswer]


def ppm_of(one: HomeActivity) -> PpmAnswer | None:
    """Return the mean, the lowest and the highest of the measurements."""
    if one.ppm_hundredths is None or one.least_ppm_hundredths is None or one.most_ppm_hundredths is None:
        return None
    mean = round(one.ppm_hundredths / one.readings / 100, 2)
    return PpmAnswer(mean=mean, least=one.least_ppm_hundredths / 100, most=one.most_ppm_hundredths / 100)


@operation("Registered homes by the beginning of their ids", "homes")
def find_homes(call: Call[Nothing, HomesQuery, Nothing]) -> HomesAnswer:
    """List a page of homes; one home more is read, to see if there is a next page."""
    query, bound_to = call.query, query_of(call.query)
    after = "" if query.cursor is None else key_of(bound_to, query.cursor, tuple[Prefix])[0]
    found = app().aggregation_store.find_homes(query.prefix, after, query.limit + 1)
    page, following = page_of(found, query.limit, bound_to, lambda home_id: (home_id,))
    homes = [HomeAnswer(home_id=one, has_page=re.match(ADDRESSABLE, one) is not None) for one in page]
    return HomesAnswer(homes=homes, next=following)


@operation("The last day and week of a home, and its alerts", "homes", problems=(NOT_FOUND,))
def show_activity(call: Call[HomePath, ActivityQuery, Nothing]) -> ActivityAnswer:
    """Show any home."""
    return activity_of(call)


def activity_of(call: Call[HomePath, ActivityQuery, Nothing]) -> ActivityAnswer:
    """Return the activity of a home. The cut is read first, so the sums may be newer than the cut, but never older."""
    own, home_id = app(), call.path.home_id
    home = own.homes.find_home(home_id)
    if home is None:
        raise not_found("home_id", f"no home is registered as {home_id}")
    as_of = _as_of(own)
    until = _until(call, own)
    day, week = Period(until, DAY, DAY_STEP), Period(until, WEEK, WEEK_STEP)
    windows = own.aggregation_store.read_windows(HomeActivity, home_id, week.since, week.until)
    alerts = own.homes.read_alerts(home_id, week.since, week.until, MOST_ALERTS + 1)
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
        readings=[] if windows or call.query.until else _readings(own, home_id),
    )


def _readings(own: App, home_id: str) -> list[ReadingAnswer]:
    found = own.homes.read_newest_readings(home_id, MOST_READINGS)
    return [msgspec.convert(one, ReadingAnswer, from_attributes=True) for one in found]


def _until(call: Call[HomePath, ActivityQuery, Nothing], own: App) -> datetime:
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
    last_window = own.homes.read_last_window(home_id, now)
    last_alert = own.homes.read_alerts(home_id, EARLIEST, now, 1)
    found = [one.observed_at for one in last_alert] + ([] if last_window is None else [last_window])
    return end_of_window(max(found)) if found else now


def _as_of(own: App) -> AsOfAnswer:
    store, job = own.aggregation_store, aggregate_table(HomeActivity).name
    standing = store.read_standing(job)
    runs = store.read_runs(job, standing.number + 1, MOST_RUNS)
    committed = (one.closed_at for one in runs if one.status == "committed")
    return AsOfAnswer(
        cut=json.loads(standing.cut), is_current=standing.cut == standing.reached, committed_at=next(committed, None)
    )


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
