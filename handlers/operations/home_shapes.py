"""What is asked of homes and what is answered, as JSON has it."""

from datetime import datetime
from typing import Annotated

import msgspec

from core.aggregation.activity import HomeActivity
from handlers.operation import Answered, Cursor, Instant, Shape

MOST_HOMES = 100

# As a registration may name a home, but for "/", "." and "..", which no address can hold.
HomeText = Annotated[str, msgspec.Meta(pattern=r"^(?!\.{1,2}$)[!-.0-~]{1,32}$", description="The id of a home.")]
Prefix = Annotated[str, msgspec.Meta(pattern=r"^[!-~]{0,32}$", description="How the ids begin; case matters.")]


class HomePath(Shape):
    """One home."""

    home_id: HomeText


class HomesQuery(Shape):
    """A page of homes, by id."""

    prefix: Prefix = ""
    cursor: Cursor | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_HOMES)] = 20


class ActivityQuery(Shape):
    """`until` looks at another day and week than the last ones: those before the end of its quarter of an hour."""

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
    """One step of a period in which a kind of sensor was heard of."""

    at: datetime
    readings: int
    active: int
    ppm: PpmAnswer | None


class KindAnswer(Answered):
    """One kind of sensor in a period. `active` of its `readings` were of state active; `ppm` is None where nothing
    measures them. Steps without a reading are left out."""

    kind: str
    readings: int
    active: int
    ppm: PpmAnswer | None
    first_observed_at: datetime
    last_observed_at: datetime
    steps: list[ActivityStepAnswer]


class PeriodAnswer(Answered):
    """A day or a week, by the time at which things happened: since, and before until."""

    since: datetime
    until: datetime
    step_minutes: int
    kinds: list[KindAnswer]


class AlertAnswer(Answered):
    """A reading that somebody should look at."""

    sensor_id: str
    kind: str
    ppm: int | None
    observed_at: datetime


class AsOfAnswer(Answered):
    """The cut that the sums are of: the commit number by stream and partition, and when the run that moved it there was
    committed (None before the first one). `is_current` when nothing was committed since."""

    cut: dict[str, int]
    is_current: bool
    committed_at: datetime | None


class ActivityAnswer(Answered):
    """A home. `newest_at` is its newest event that is shown; alerts are those of the week, the newest first, as they
    were committed: they do not wait for a run. With `more_alerts` there are others behind them."""

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


def ppm_of(one: HomeActivity) -> PpmAnswer | None:
    """The mean, the least and the most of what was measured."""
    if one.ppm_hundredths is None or one.least_ppm_hundredths is None or one.most_ppm_hundredths is None:
        return None
    mean = round(one.ppm_hundredths / one.readings / 100, 2)
    return PpmAnswer(mean=mean, least=one.least_ppm_hundredths / 100, most=one.most_ppm_hundredths / 100)
