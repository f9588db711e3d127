"""Retention: remove the windows that a level no longer keeps, between two runs, in small transactions.

A run leaves such windows out too, by the time of its plan. So a late event opens no window that lacks its other events.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from core.aggregation.store.commits import Aggregations
from core.model.locks import ROWS_AT_ONCE
from core.transforms.aggregates import find_aggregate

TIME = timedelta(minutes=1)  # of one tick; the next one continues


def remove_old_windows(store: Aggregations, job: str, now: Callable[[], datetime]) -> Mapping[str, int]:
    """Remove the windows before the horizon of each level; return the number of each level that lost some."""
    began, removed = now(), Counter[str]()
    for level in find_aggregate(job).levels:
        horizon = level.horizon(began)
        while horizon is not None and now() - began < TIME:
            count = store.remove_windows(level.of, horizon, ROWS_AT_ONCE)
            removed[level.name] += count
            if count < ROWS_AT_ONCE:
                break
    return +removed
