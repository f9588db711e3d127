"""All tables of a database at rest as the oracle reads them: by separate statements, by partition."""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Sql = Callable[..., list[Any]]
Place = tuple[int, str]  # stream and partition


class EventLike(Protocol):
    """An event as the hub's log has it."""

    @property
    def sequence_number(self) -> int: ...

    @property
    def enqueued_at(self) -> Any: ...

    @property
    def partition_key(self) -> str | None: ...

    @property
    def body(self) -> bytes: ...


@dataclass(frozen=True)
class Truth:
    """The log of one partition in one incarnation; `gone` numbers left the hub, `lost` ones uncommitted.

    Nothing is committed to a closed incarnation: `last` is None, and its letters stay as they are.
    """

    stream_id: int
    partition_id: str
    events: Mapping[int, EventLike]
    last: int | None
    gone: set[int]
    lost: set[int]

    @property
    def place(self) -> Place:
        return self.stream_id, self.partition_id


@dataclass(frozen=True)
class Range:
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


@dataclass(frozen=True)
class Attempt:
    """One attempt at a letter."""

    attempt: int
    kind: str
    status: str
    commit: int | None
    touched_by: str
    why: str | None


@dataclass(frozen=True)
class Letter:
    """One letter in its present state."""

    number: int
    body: bytes
    body_kept: int
    error_class: str
    version: str
    status: str
    attempts: int
    due_at: str | None
    settled_at: str | None
    replayed_in: int | None
    held_behind: int | None


def read_by_place(sql: Sql, statement: str, make: Callable[..., Any]) -> dict[Place, list[Any]]:
    """Return rows by partition; the statement names stream and partition first."""
    found: dict[Place, list[Any]] = defaultdict(list)
    for stream_id, partition_id, *values in sql(statement):
        found[stream_id, partition_id].append(make(*values))
    return found


class Books:
    """All tables of a database at rest, by partition."""

    def __init__(self, sql: Sql) -> None:
        self.checkpoints = read_by_place(
            sql, "SELECT stream_id, partition_id, sequence_number, commit_number FROM event_hub_checkpoint", _pair
        )
        self.totals = read_by_place(
            sql,
            "SELECT stream_id, partition_id, first_sequence_number, commits, written, filtered, dead_lettered, held,"
            " absent, letters FROM event_hub_checkpoint",
            lambda *one: one,
        )
        self.totals_of_commits = read_by_place(
            sql,
            "SELECT stream_id, partition_id, total_commits, total_written, total_filtered, total_dead_lettered,"
            " total_held, total_absent FROM batch_ledger ORDER BY commit_number",
            lambda *one: one,
        )
        self.anchors = read_by_place(
            sql, "SELECT stream_id, partition_id, sequence_number FROM partition_anchor", lambda one: one
        )
        self.ledger: dict[Place, list[Range]] = read_by_place(
            sql,
            "SELECT stream_id, partition_id, commit_number, kind, first_sequence_number, last_sequence_number, written,"
            " filtered, dead_lettered, held, absent, transform_version, invocation_id FROM batch_ledger"
            " ORDER BY commit_number",
            Range,
        )
        self.letters: dict[Place, list[Letter]] = read_by_place(
            sql,
            "SELECT stream_id, partition_id, sequence_number, body, body_kept, error_class, transform_version, status,"
            " attempts, due_at, settled_at, replay_commit_number, held_behind FROM event_hub_dead_letter"
            " ORDER BY sequence_number",
            Letter,
        )
        self.attempts = read_by_place(
            sql,
            "SELECT stream_id, partition_id, sequence_number, attempt, kind, status, commit_number, touched_by, why"
            " FROM dead_letter_attempt ORDER BY sequence_number, attempt",
            lambda number, *one: (number, Attempt(*one)),
        )
        self.gaps = read_by_place(
            sql,
            "SELECT stream_id, partition_id, first_sequence_number, last_sequence_number, status FROM sequence_gap",
            lambda *one: one,
        )
        self.rows = read_by_place(
            sql, _rows("sensor_reading", "home_id, sensor_id, kind, state, ppm, observed_at"), _row
        )
        for place, rows in read_by_place(
            sql, _rows("home_alert", "home_id, sensor_id, kind, ppm, observed_at"), _row
        ).items():
            self.rows[place] += rows
        self.homes = sql("SELECT home_id, armed, stream_id, partition_id, sequence_number FROM home")
        self.gone_in_replays = read_by_place(
            sql,
            "SELECT t.stream_id, p.part, p.task_id, p.report ->> 'gone_ranges'"
            " FROM task_part AS p JOIN task AS t USING (task_id) WHERE t.kind = 'replay'",
            _gone_in,
        )
        self.keys_of_replays = keys_of_replays(sql)


def keys_of_replays(sql: Sql) -> dict[str, set[str]]:
    """Return the partition keys of each replay by key."""
    found = sql("SELECT task_id, asked ->> 'keys' FROM task WHERE kind = 'replay'")
    return {job_id: set(json.loads(keys)) for job_id, keys in found if keys is not None}


def _rows(table: str, columns: str) -> str:
    return f"SELECT stream_id, partition_id, sequence_number, commit_number, '{table}', ordinal, {columns} FROM {table}"


def _pair(*values: Any) -> tuple[Any, ...]:
    return values


def _row(number: int, commit: int, *row: Any) -> tuple[int, int, tuple[Any, ...]]:
    return number, commit, row


def _gone_in(job_id: str, ranges: str) -> tuple[str, set[int]]:
    return job_id, gone_numbers(ranges)


def gone_numbers(ranges: str) -> set[int]:
    """Return the numbers of a JSON array of {first, last}."""
    return {number for one in json.loads(ranges) for number in range(one["first"], one["last"] + 1)}
