"""The means of a room's operations: its statements, the windows of its aggregates, and links that it signs."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from core.aggregation.store.commits import Aggregations
from core.api.links import Signer
from core.model.aggregates import aggregate_table
from core.store.columns import instant_or_none, instant_text
from core.store.database import Database
from core.store.decoding import decoded
from core.store.script import of_rows

Value = TypeVar("Value")
Window = TypeVar("Window")
MOST_RUNS = 100  # newest runs among which the last committed one is found


@dataclass(frozen=True, slots=True)
class Windows(Generic[Window]):
    """Windows of an aggregate in order, and its cut (JSON: the commit number of each stream and partition), whether
    nothing was committed since, and when its run was committed (None before the first run)."""

    windows: tuple[Window, ...]
    cut: str
    is_current: bool
    committed_at: datetime | None


class RoomStore:
    """Reads what a room asks of the database. All streams share the rows of a room."""

    def __init__(self, database: Database, aggregations: Aggregations) -> None:
        self._database = database
        self._aggregations = aggregations

    def read(self, value_class: type[Value], statement: str, **values: Any) -> tuple[Value, ...]:
        """Return the rows of a named statement of the room (`queries/*.sql`) as values of a dataclass.

        The columns have the order of its fields. A datetime is given and read as an instant.
        """
        given = {name: instant_text(one) if isinstance(one, datetime) else one for name, one in values.items()}
        return decoded(value_class, self._database.ask(statement, **given))

    def read_windows(
        self, aggregate: type[Window], key: str | int, since: datetime, until: datetime
    ) -> Windows[Window]:
        """Return the windows of a value of the first column of the key that begin in [since, until).

        The cut is read first, so the windows may be newer than the cut, but never older.
        """
        job = aggregate_table(aggregate).name
        standing = self._aggregations.read_standing(job)
        runs = self._aggregations.read_runs(job, standing.number + 1, MOST_RUNS)
        committed = (one.closed_at for one in runs if one.status == "committed")
        windows = self._aggregations.read_windows(aggregate, key, since, until)
        return Windows(windows, standing.cut, standing.cut == standing.reached, next(committed, None))

    def read_last_window(self, aggregate: type, key: str | int, until: datetime) -> datetime | None:
        """Return the beginning of the last window of a key that begins before an instant; None when there is none."""
        asked = {"key_value": key, "until_at": instant_text(until)}
        ((found,),) = self._database.ask(of_rows("read_last_window", aggregate), **asked)
        return instant_or_none(found)


@dataclass(frozen=True, slots=True)
class RoomMeans:
    """The means of a room's operations: the store, and the signer of its links."""

    store: RoomStore
    signer: Signer
