"""The shapes of the routes of homes."""

from datetime import datetime
from typing import Annotated

import msgspec

from hubledger.web import Answered, Cursor, Instant, Shape

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
    """A kind of sensor in a period. `active` counts the readings in state active. `ppm` is null where no sensor
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
    """A reading as its sensor sent it. `ppm` is null for a switch, `state` for a meter."""

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
    first. They do not wait for a run. `more_alerts`: the week has older alerts, which are left out. `readings` are the
    newest ones of a home without sums, as they arrived. Empty where the week has sums, and where `until` is given."""

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
