"""An aggregate of tests with a retention: quarters of an hour for seven days, days for ever."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from core.model.aggregates import Count, Kept, Key, Most, aggregate_of, aggregate_table
from examples.home_security.transform import SensorReading
from hubledger.cli.ddl.tables import tables_text
from tests.fakes.engines import SqliteEngine

KEPT_ACTIVITY = "kept_activity"
KEEP = timedelta(days=7)


@aggregate_of(
    SensorReading,
    KEPT_ACTIVITY,
    at="observed_at",
    window=Kept(timedelta(minutes=15), KEEP),
    rollups={"day": timedelta(days=1)},
)
@dataclass(frozen=True, slots=True)
class KeptActivity:
    home_id: Annotated[str, Key(32)]
    window_start: datetime
    readings: Annotated[int, Count()]
    last_observed_at: Annotated[datetime, Most("observed_at")]


OF = aggregate_table(KeptActivity)


def create_tables(sqlite: SqliteEngine) -> None:
    for statement in tables_text(OF, "sqlite").split(";\n"):
        if "CREATE" in statement:
            sqlite.sql(statement)
