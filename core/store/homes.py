"""What is known of one home besides its windows: its registration, its alerts, and how far its windows reach."""

from datetime import datetime

from core.aggregation.activity import Alert, RegisteredHome
from core.store import NamedQueries
from core.store.named import instant_or_none
from core.store.records import instant_of, instant_text


class HomeReading:
    """Reads homes from an engine, of all its streams."""

    def __init__(self, engine: NamedQueries) -> None:
        self._engine = engine

    def find_home(self, home_id: str) -> RegisteredHome | None:
        """A registered home."""
        found = self._engine.ask("find_home", home_id=home_id)
        return RegisteredHome(found[0][0], found[0][1], bool(found[0][2])) if found else None

    def read_alerts(self, home_id: str, since: datetime, until: datetime, most: int) -> tuple[Alert, ...]:
        """A home's alerts of [since, until), the newest first."""
        span = {"since_at": instant_text(since), "until_at": instant_text(until)}
        found = self._engine.ask("read_alerts", home_id=home_id, most=most, **span)
        return tuple(Alert(sensor_id, kind, ppm, instant_of(at)) for sensor_id, kind, ppm, at in found)

    def read_last_window(self, home_id: str, until: datetime) -> datetime | None:
        """When the last window of a home begins, of those that begin before an instant."""
        ((found,),) = self._engine.ask("read_last_window", home_id=home_id, until_at=instant_text(until))
        return instant_or_none(found)
