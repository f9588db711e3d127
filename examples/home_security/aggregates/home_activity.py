"""The activity of a home, by kind of sensor and 15 minutes, hour and day of event time."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from examples.home_security.transform import SensorReading
from hubledger import Count, CountOf, Key, Least, Most, Sum, aggregate_of


@aggregate_of(
    SensorReading,
    "home_activity",
    at="observed_at",
    window=timedelta(minutes=15),
    rollups={"hour": timedelta(hours=1), "day": timedelta(days=1)},
)
@dataclass(frozen=True, slots=True)
class HomeActivity:
    """One kind of sensor of one home in the window from `window_start`, by the time of the observations.

    `active` counts the readings whose state is active. Parts per million are integer hundredths. None where no sensor
    measures them.
    """

    home_id: Annotated[str, Key(32)]
    window_start: datetime
    kind: Annotated[str, Key(20, ascii=True)]
    readings: Annotated[int, Count()]
    active: Annotated[int, CountOf("state", "active")]
    ppm_hundredths: Annotated[int | None, Sum("ppm", times=100)]
    least_ppm_hundredths: Annotated[int | None, Least("ppm", times=100)]
    most_ppm_hundredths: Annotated[int | None, Most("ppm", times=100)]
    first_observed_at: Annotated[datetime, Least("observed_at")]
    last_observed_at: Annotated[datetime, Most("observed_at")]
