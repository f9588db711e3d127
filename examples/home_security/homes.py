"""Homes in SQL: registrations, alerts, the last window and the newest readings of a home."""

from datetime import datetime

from core.store.columns import instant_of, instant_or_none, instant_text
from core.store.database import Database
from core.store.script import of_rows
from examples.home_security.activity import Alert, HomeReading, RegisteredHome
from examples.home_security.aggregates.home_activity import HomeActivity

PREFIX_END = "\x7f"  # sorts after every character that an id may have
MOST_ROWS = 5_000  # newest rows of a partition among which the readings of one home are found


class Homes:
    """Reads homes, which all streams share."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find_homes(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        """Return ids of registered homes that begin with `prefix` and come after `after` ("": all), in order."""
        page = {"prefix": prefix, "prefix_end": prefix + PREFIX_END, "after_id": after, "most": limit}
        return tuple(home_id for (home_id,) in self._database.ask("find_homes", **page))

    def find_home(self, home_id: str) -> RegisteredHome | None:
        """Return a registered home; None when there is none."""
        found = self._database.ask("find_home", home_id=home_id)
        return RegisteredHome(found[0][0], found[0][1], bool(found[0][2])) if found else None

    def read_alerts(self, home_id: str, since: datetime, until: datetime, most: int) -> tuple[Alert, ...]:
        """Return a home's alerts in [since, until), the newest first."""
        span = {"since_at": instant_text(since), "until_at": instant_text(until)}
        found = self._database.ask("read_alerts", home_id=home_id, most=most, **span)
        return tuple(Alert(sensor_id, kind, ppm, instant_of(at)) for sensor_id, kind, ppm, at in found)

    def read_last_window(self, home_id: str, until: datetime) -> datetime | None:
        """Return the beginning of the last window of a home that begins before an instant; None when there is none."""
        statement = of_rows("read_last_window", HomeActivity)
        ((found,),) = self._database.ask(statement, key_value=home_id, until_at=instant_text(until))
        return instant_or_none(found)

    def read_newest_readings(self, home_id: str, most: int) -> tuple[HomeReading, ...]:
        """Return the readings of a home that arrived last, the last first; raw rows, whether they are summed or not.

        Only the newest `MOST_ROWS` rows of the partition of its registration are looked at: no index leads to a home.
        """
        found = self._database.ask("read_newest_readings", home_id=home_id, most_rows=MOST_ROWS, most=most)
        return tuple(HomeReading(sensor, kind, state, ppm, instant_of(at)) for sensor, kind, state, ppm, at in found)
