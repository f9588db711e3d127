"""Homes in SQL: registrations, alerts, the last window and the newest readings of a home."""

from dataclasses import dataclass
from datetime import datetime

from examples.home_security.activity import Alert, HomeReading, RegisteredHome
from examples.home_security.aggregates.home_activity import HomeActivity
from hubledger.web import RoomStore

PREFIX_END = "\x7f"  # sorts after every character that an id may have
MOST_ROWS = 5_000  # newest rows of a partition among which the readings of one home are found


@dataclass(frozen=True, slots=True)
class HomeName:
    """The id of a home."""

    home_id: str


class Homes:
    """Reads homes, which all streams share."""

    def __init__(self, store: RoomStore) -> None:
        self._store = store

    def find_homes(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        """Return ids of registered homes that begin with `prefix` and come after `after` ("": all), in order."""
        page = {"prefix": prefix, "prefix_end": prefix + PREFIX_END, "after_id": after, "most": limit}
        return tuple(one.home_id for one in self._store.read(HomeName, "find_homes", **page))

    def find_home(self, home_id: str) -> RegisteredHome | None:
        """Return a registered home. None when there is none."""
        found = self._store.read(RegisteredHome, "find_home", home_id=home_id)
        return found[0] if found else None

    def read_alerts(self, home_id: str, since: datetime, until: datetime, most: int) -> tuple[Alert, ...]:
        """Return a home's alerts in [since, until), the newest first."""
        span = {"since_at": since, "until_at": until}
        return self._store.read(Alert, "read_alerts", home_id=home_id, most=most, **span)

    def read_last_window(self, home_id: str, until: datetime) -> datetime | None:
        """Return the beginning of the last window of a home that begins before an instant. None when there is none."""
        return self._store.read_last_window(HomeActivity, home_id, until)

    def read_newest_readings(self, home_id: str, most: int) -> tuple[HomeReading, ...]:
        """Return the readings of a home that arrived last, the last first. Raw rows, whether they are summed or not.

        Only the newest `MOST_ROWS` rows of the partition of its registration are looked at: no index leads to a home.
        """
        return self._store.read(HomeReading, "read_newest_readings", home_id=home_id, most_rows=MOST_ROWS, most=most)
