"""All tables of a database at rest as the oracle reads them: by separate statements, by partition."""

import json
from collections import defaultdict, namedtuple
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

Sql = Callable[..., list[Any]]
Place = tuple[int, str]  # stream and partition


@dataclass(frozen=True)
class Truth:
    """The log of one partition in one incarnation; `gone` numbers left the hub, `lost` ones uncommitted.

    Nothing is committed to a closed incarnation: `last` is None, and its letters stay as they are.
    """

    stream_id: int
    partition_id: str
    events: Mapping[int, Any]
    last: int | None
    gone: set[int]
    lost: set[int]

    @property
    def place(self) -> Place:
        return self.stream_id, self.partition_id


class Range(NamedTuple):
    """One row of the ledger."""

    commit: int
    kind: str
    first: int
    last: int
    written: int
    filtered: int
    dead_lettered: int
    held: int
    absent: int
    version: str
    invocation: str

    @property
    def numbers(self) -> range:
        return range(self.first, self.last + 1)


# One attempt at a letter, and one letter in its present state.
Attempt = namedtuple("Attempt", "attempt kind status commit touched_by why")
Letter = namedtuple(
    "Letter",
    "number body body_kept error_class version status attempts due_at settled_at replayed_in held_behind",
)
READ = {  # the columns of each table after the place, and their order
    "event_hub_checkpoint": "sequence_number, commit_number",
    "partition_anchor": "sequence_number",
    "batch_ledger": "commit_number, kind, first_sequence_number, last_sequence_number, written, filtered,"
    " dead_lettered, held, absent, transform_version, invocation_id",
    "event_hub_dead_letter": "sequence_number, body, body_kept, error_class, transform_version, status, attempts,"
    " due_at, settled_at, replay_commit_number, held_behind",
    "dead_letter_attempt": "sequence_number, attempt, kind, status, commit_number, touched_by, why",
    "sequence_gap": "first_sequence_number, last_sequence_number, status",
    "sensor_reading": "sequence_number, commit_number, 'sensor_reading', ordinal, home_id, sensor_id, kind, state, ppm,"
    " observed_at",
    "home_alert": "sequence_number, commit_number, 'home_alert', ordinal, home_id, sensor_id, kind, ppm, observed_at",
}
TOTALS = "commits, {0}written, {0}filtered, {0}dead_lettered, {0}held, {0}absent"


# Of each partition of a replay: the numbers of its task, the counts in its report, and the ranges that are gone.
PROGRESS = """
    SELECT p.task_id, t.stream_id, p.part, p.first_sequence_number, p.position, p.report ->> 'written',
           p.report ->> 'filtered', p.report ->> 'dead_lettered', p.report ->> 'gone_ranges', p.last_sequence_number,
           p.report ->> 'events', p.report ->> 'gone'
      FROM task_part AS p JOIN task AS t USING (task_id) WHERE t.kind = 'replay'
"""


class Books:
    """All tables of a database at rest, by partition."""

    def __init__(self, sql: Sql) -> None:
        def read(table: str, make: Callable[..., Any], columns: str = "", order: str = "3") -> dict[Place, list[Any]]:
            found: dict[Place, list[Any]] = defaultdict(list)
            statement = f"SELECT stream_id, partition_id, {columns or READ[table]} FROM {table} ORDER BY {order}"
            for stream_id, partition_id, *values in sql(statement):
                found[stream_id, partition_id].append(make(*values))
            return found

        def row(number: int, commit: int, *row: Any) -> tuple[int, int, tuple[Any, ...]]:
            return number, commit, row

        self.checkpoints = read("event_hub_checkpoint", _values)
        totals = f"first_sequence_number, {TOTALS.format('')}, letters"
        self.totals = read("event_hub_checkpoint", _values, totals)
        self.totals_of_commits = read("batch_ledger", _after, f"commit_number, total_{TOTALS.format('total_')}")
        self.anchors = read("partition_anchor", int)
        self.ledger: dict[Place, list[Range]] = read("batch_ledger", Range)
        self.letters: dict[Place, list[Any]] = read("event_hub_dead_letter", Letter)
        self.attempts = read("dead_letter_attempt", lambda number, *one: (number, Attempt(*one)), order="3, 4")
        self.gaps = read("sequence_gap", _values)
        self.rows = read("sensor_reading", row)
        for place, rows in read("home_alert", row).items():
            self.rows[place] += rows
        self.homes = sql("SELECT home_id, armed, stream_id, partition_id, sequence_number FROM home")
        self.keys_of_replays = keys_of_replays(sql)
        self.gone_in_replays: dict[Place, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        for job_id, stream_id, id, *_, ranges, _, _, _ in sql(PROGRESS):
            self.gone_in_replays[stream_id, id][job_id] = gone_numbers(ranges)


def keys_of_replays(sql: Sql) -> dict[str, set[str]]:
    """Return the partition keys of each replay by key."""
    found = sql("SELECT task_id, asked ->> 'keys' FROM task WHERE kind = 'replay'")
    return {job_id: set(json.loads(keys)) for job_id, keys in found if keys is not None}


def _values(*values: Any) -> tuple[Any, ...]:
    return values


def _after(_: int, *values: Any) -> tuple[Any, ...]:
    return values


def gone_numbers(ranges: str) -> set[int]:
    """Return the numbers of a JSON array of {first, last}."""
    return {number for one in json.loads(ranges) for number in range(one["first"], one["last"] + 1)}
