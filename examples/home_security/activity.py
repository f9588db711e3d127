"""The activity of a home that pages show, by kind of sensor and window of event time."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from examples.home_security.aggregates.home_activity import HomeActivity
from hubledger import aggregate_table


@dataclass(frozen=True, slots=True)
class RegisteredHome:
    """A home, as its latest registration describes it."""

    home_id: str
    time_zone: str
    armed: bool


@dataclass(frozen=True, slots=True)
class Alert:
    """A reading of a home that needs attention."""

    sensor_id: str
    kind: str
    ppm: int | None
    observed_at: datetime


@dataclass(frozen=True, slots=True)
class HomeReading:
    """A reading of a home as its row has it: a switch has a `state`, a meter has `ppm`."""

    sensor_id: str
    kind: str
    state: str | None
    ppm: int | None
    observed_at: datetime


@dataclass(frozen=True, slots=True)
class Period:
    """The period that a page shows: it ends at `until` and is cut into steps. `length` and `step` are whole windows."""

    until: datetime
    length: timedelta
    step: timedelta

    @property
    def since(self) -> datetime:
        return self.until - self.length


def end_of_window(moment: datetime) -> datetime:
    """Return the end of the window of an instant."""
    return aggregate_table(HomeActivity).end_of_window(moment)


def within(windows: Iterable[HomeActivity], period: Period) -> tuple[HomeActivity, ...]:
    """Return the windows that begin in a period."""
    return tuple(one for one in windows if period.since <= one.window_start < period.until)


def totals(windows: Iterable[HomeActivity]) -> tuple[HomeActivity, ...]:
    """Return one sum for each kind of sensor, in order of name. Each sum starts at the first window of its kind."""
    return _summed((one.kind, one) for one in windows)


def steps(windows: Iterable[HomeActivity], period: Period) -> tuple[HomeActivity, ...]:
    """Return one sum for each kind and each step of a period that has windows, in order of kind and time."""
    starts = (replace(one, window_start=_start_of_step(one.window_start, period)) for one in windows)
    return _summed(((one.kind, one.window_start), one) for one in starts)


def _start_of_step(moment: datetime, period: Period) -> datetime:
    return period.since + (moment - period.since) // period.step * period.step


def _summed(placed: Iterable[tuple[object, HomeActivity]]) -> tuple[HomeActivity, ...]:
    sums: dict[object, HomeActivity] = {}
    for key, one in placed:
        sums[key] = _added(sums[key], one) if key in sums else one
    return tuple(sorted(sums.values(), key=lambda one: (one.kind, one.window_start)))


def _added(one: HomeActivity, other: HomeActivity) -> HomeActivity:
    ppm = [each.ppm_hundredths for each in (one, other) if each.ppm_hundredths is not None]
    least = [each.least_ppm_hundredths for each in (one, other) if each.least_ppm_hundredths is not None]
    most = [each.most_ppm_hundredths for each in (one, other) if each.most_ppm_hundredths is not None]
    return replace(
        one,
        window_start=min(one.window_start, other.window_start),
        readings=one.readings + other.readings,
        active=one.active + other.active,
        ppm_hundredths=sum(ppm) if ppm else None,
        least_ppm_hundredths=min(least, default=None),
        most_ppm_hundredths=max(most, default=None),
        first_observed_at=min(one.first_observed_at, other.first_observed_at),
        last_observed_at=max(one.last_observed_at, other.last_observed_at),
    )
