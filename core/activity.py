"""What a person looks at: the activity of a home, by kind of sensor and window of event time."""

from dataclasses import dataclass
from datetime import datetime, timedelta

WINDOW = timedelta(minutes=15)  # as jobs/transforms.py has it


@dataclass(frozen=True, slots=True)
class HomeActivity:
    """One kind of sensor of one home in the 15 minutes from `window_start`, by the time at which things happened.

    `active` counts readings of state active. Parts per million are in integer hundredths, None where nothing measures
    them; sums are integers, so that increments and a rebuild agree to the bit.
    """

    home_id: str
    window_start: datetime
    kind: str
    readings: int
    active: int
    ppm_hundredths: int | None
    least_ppm_hundredths: int | None
    most_ppm_hundredths: int | None
    first_observed_at: datetime
    last_observed_at: datetime
