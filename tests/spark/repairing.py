"""A world whose aggregate is changed by hand and repaired, and tables beside which runs go on."""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any

from core.aggregation.orders import Pipelines
from core.aggregation.runs import ALL_DAYS, AggregationRun, Days, Order, OrderedKind, Portion, Staged
from core.aggregation.store import Aggregations
from core.errors import StoreUnavailable
from examples.home_security.aggregates.home_activity import HomeActivity
from jobs.sqlite_tables import SqliteTables
from tests.fakes.aggregation_engines import HOME_ACTIVITY
from tests.spark.readings import NOON, gas, switch
from tests.spark.world import World

DAY = timedelta(days=1)
HOMES = [f"home-{number}" for number in range(8)]


class LiveTables(SqliteTables):
    """Tables beside which something happens each time before the stored windows are read."""

    def __init__(self, tables: SqliteTables, happens: Callable[[], None]) -> None:
        vars(self).update(vars(tables))
        self._happens = happens

    def standing(self, *given: Any) -> Any:
        self._happens()
        return super().standing(*given)


class DyingStore(Aggregations):
    """A store whose process dies before it commits a portion, after some have been committed."""

    def __init__(self, store: Aggregations, portions: int) -> None:
        vars(self).update(vars(store))
        self._left = portions

    def commit_portion(self, run: AggregationRun, staged: Staged, portion: Portion) -> bool:
        if not self._left:
            raise StoreUnavailable("killed between two slices")
        self._left -= 1
        return super().commit_portion(run, staged, portion)


def order(world: World, kind: OrderedKind, days: Days = ALL_DAYS) -> None:
    """Order a run as a person does."""
    at = world.clock.now()
    given = Order(HOME_ACTIVITY, kind, "somebody", "because", at, days=days)
    Pipelines(world.store.database).place(given, world.store.read_standing(HOME_ACTIVITY))


def days_of(first: datetime, last: datetime) -> Days:
    """Return the days of two instants."""
    return Days(first.date(), last.date())


def fill(world: World, days: int = 3) -> None:
    """Commit readings of all homes on some days."""
    for number in range(days):
        at = NOON - number * DAY
        world.commit([row for home in HOMES for row in (gas(home, at=at), switch(home, at=at))], of=str(number % 2))


def spoil(world: World) -> None:
    """Change a window, delete one, and add one, each on NOON's day."""
    day = f"{NOON:%Y-%m-%d}"
    world.sqlite.sql(f"UPDATE home_activity SET readings = 7 WHERE home_id = 'home-1' AND window_start LIKE '{day}%'")
    world.sqlite.sql(
        f"DELETE FROM home_activity WHERE home_id = 'home-2' AND kind = 'motion' AND window_start LIKE '{day}%'"
    )
    world.sqlite.sql(
        "INSERT INTO home_activity SELECT 'home-9', window_start, kind, readings, active, ppm_hundredths,"
        " least_ppm_hundredths, most_ppm_hundredths, first_observed_at, last_observed_at, run_number, slice"
        f" FROM home_activity WHERE home_id = 'home-3' AND kind = 'motion' AND window_start LIKE '{day}%'"
    )


def of_days(windows: list[HomeActivity], first: date, last: date) -> list[HomeActivity]:
    """Return the windows of some days."""
    return [one for one in windows if first <= one.window_start.date() <= last]
