"""The days after which old rows go."""

from collections.abc import Mapping
from dataclasses import dataclass

# The days after which rows of each table go, unless a setting or a request names others. The rows of retracted_row and
# dead_letter_attempt go with those of the ledger and of the letters; of the tasks, replays and redrives stay.
DEFAULT_DAYS: Mapping[str, int] = {
    "batch_ledger": 400,
    "event_hub_dead_letter": 90,
    "staged_event": 30,
    "replay_diff": 30,
    "task": 400,
    "aggregation_failure": 90,
}
MOST_DAYS = 36_500


@dataclass(frozen=True, slots=True)
class PurgePolicy:
    """The settings of purges: whether one begins each day by itself, and the days after which rows of a table go."""

    daily: bool
    days: Mapping[str, int]


def policy_of(daily: bool, given: Mapping[str, object], faults: list[str]) -> PurgePolicy:
    """Return the policy of the settings; PURGE_DAYS names the days of some tables. Add its faults to those given."""
    tables = ", ".join(DEFAULT_DAYS)
    unknown = [f"PURGE_DAYS names {table!r}, which is none of {tables}" for table in given if table not in DEFAULT_DAYS]
    wrong = [
        f"PURGE_DAYS of {table} must be a number of days from 1 to {MOST_DAYS}, not {days!r}"
        for table, days in given.items()
        if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= MOST_DAYS
    ]
    named = {table: days for table, days in given.items() if isinstance(days, int)}
    faults += [*unknown, *wrong]
    return PurgePolicy(daily, {**DEFAULT_DAYS, **named})
