"""The replay of a demo: events whose rows are in committed runs are replayed through the API."""

import http.client
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.model.aggregates import Aggregate
from core.model.rows import row_table
from local.books import BooksUnavailable, get, reading
from local.operator import open_task
from local.processes import Pause

LOOK_EVERY = 0.5  # seconds
LOOKS = 240  # without anything new: two minutes, and longer on a busy machine, where a look takes longer

# The partition of the newest incarnation with the most rows in committed runs, from its first event to the last one of
# these runs. A range from the first event on gives each event the states of its time, so the rows are the same.
_RANGE = """
SELECT l.partition_id, MIN(l.first_sequence_number), MAX(l.last_sequence_number), (
    SELECT COUNT(*) FROM {source} AS r
    WHERE r.stream_id = l.stream_id AND r.partition_id = l.partition_id AND r.commit_number <= j.value
) AS committed_rows
FROM aggregation_cut AS c JOIN json_each(c.cut) AS j
    JOIN batch_ledger AS l ON l.stream_id || '/' || l.partition_id = j.key AND l.commit_number <= j.value
WHERE c.job = ? AND l.kind = 'batch' AND l.stream_id = (SELECT MAX(stream_id) FROM event_stream)
GROUP BY l.partition_id ORDER BY committed_rows DESC, l.partition_id LIMIT 1
"""


class NotReplayed(Exception):
    """The replay did not end well; the message holds the last answer of the app."""


@dataclass(frozen=True, slots=True)
class Range:
    """The events of a partition from the first to the last number, which have `rows` in committed runs."""

    partition_id: str
    first: int
    last: int
    rows: int


def committed_range(store: Path, of: Aggregate) -> Range | None:
    """Return the range that a demo replays for an aggregate; None when no committed run has a row of it."""
    with reading(store) as connection:
        found = connection.execute(_RANGE.format(source=row_table(of.source).name), (of.name,)).fetchone()
    return None if found is None or not found[3] else Range(*found)


def replay(address: str, chosen: Range, pause: Pause, show: Callable[[str], object]) -> None:
    """Replay a range for good, and wait until it is done; raise NotReplayed when it ends in a different way."""
    numbers = f"numbers {chosen.first} to {chosen.last} of partition {chosen.partition_id}"
    show(f"replaying {numbers}, with {chosen.rows:,} rows in committed runs")
    order = {
        "partitions": [chosen.partition_id],
        "from": {"sequence_number": str(chosen.first)},
        "to": {"sequence_number": str(chosen.last)},
        "dry_run": False,
        "reason": "the demo replays rows that are in the aggregate",
    }
    try:
        code, job = open_task(address, "replay", order)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotReplayed(f"the replay has no answer: {error}") from error
    if code != 201:
        raise NotReplayed(f"the replay is answered with {code}: {job}")
    counts = _ended(address, job["task_id"], pause)["counts"]
    show(f"replayed {counts['events']:,} events: {counts['rows_retracted']:,} rows were replaced")


def _ended(address: str, task_id: str, pause: Pause) -> dict[str, Any]:
    looks, seen, last = 0, None, ""
    while looks < LOOKS:
        try:
            job: dict[str, Any] = json.loads(get(address, f"/api/tasks/{task_id}"))
        except (BooksUnavailable, OSError, http.client.HTTPException, ValueError) as error:
            last = str(error)
        else:
            if job["status"] == "done":
                return job
            last = f"it is {job['status']}: {job['fault'] or 'no fault is noted'}"
            if job["status"] in ("failed", "cancelled"):
                break
            looks, seen = (looks if job == seen else 0), job
        looks += 1
        pause(LOOK_EVERY)
    raise NotReplayed(f"replay {task_id} is not done: {last}")
