"""What a piece of a replay writes into the embedded store, within the transaction of its caller."""

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from core.errors import ReplayConflict
from core.model.rows import PlacedRow, row_table
from core.replay.pieces import ReplayCommit
from core.store.queries import load_queries
from core.store.replay_records import commit_values, replayed_letter_values
from core.store.replay_statements import sqlite_retraction, sqlite_set_states, sqlite_state_retraction, state_keys
from core.store.row_statements import sqlite_insert

Values = dict[str, Any]


def write_replay(connection: sqlite3.Connection, commit: ReplayCommit) -> Values:
    """Rows, letters and ledger; return the values of the commit with its number and what was counted.

    Raises ReplayConflict when the checkpoint is before the events.
    """
    values = commit_values(commit)
    counted = run(connection, "count_replay", values).fetchone()
    if counted is None:
        raise ReplayConflict(commit.partition, commit.job_id)
    values["commit_number"] = counted[0]
    values["rows_retracted"] = sum(_replace(connection, row_class, commit, values) for row_class in commit.row_classes)
    values["letters_resolved"] = run(connection, "resolve_letters", values).rowcount if commit.succeeded else 0
    values["letters_added"] = _add_letters(connection, commit, values["commit_number"])
    run(connection, "record_attempts", values)
    run(connection, "record_replay", values)
    return values


def run(connection: sqlite3.Connection, name: str, values: Values) -> sqlite3.Cursor:
    """A named statement; it takes of the values those that it names."""
    return connection.execute(load_queries("sqlite")[name].text, values)


def _replace(connection: sqlite3.Connection, row_class: type, commit: ReplayCommit, values: Values) -> int:
    """Take away what the events wrote in a table and write what they write now; how many rows were taken."""
    place = (values["stream_id"], values["partition_id"], values["commit_number"])
    placed = commit.settled.rows.get(row_class, ())
    if row_table(row_class).key:
        return _set_states(connection, row_class, placed, values) if placed else 0
    retraction, insert = sqlite_retraction(row_class), sqlite_insert(row_class)
    taken = connection.execute(retraction.keep, values).rowcount
    if taken:
        connection.execute(retraction.delete, values)
    connection.executemany(insert.text, insert.values_of(placed, *place))
    return taken


def _set_states(connection: sqlite3.Connection, row_class: type, placed: Sequence[PlacedRow], values: Values) -> int:
    place = (values["stream_id"], values["partition_id"], values["commit_number"])
    keys = json.dumps(state_keys(row_class).values_of(placed, *place), default=str)
    taken = connection.execute(sqlite_state_retraction(row_class), {**values, "keys": keys}).rowcount
    setting = sqlite_set_states(row_class)
    connection.executemany(setting.text, setting.values_of(placed, *place))
    return taken


def _add_letters(connection: sqlite3.Connection, commit: ReplayCommit, commit_number: int) -> int:
    """Reopen the letters that there are and add the others; how many were added."""
    number = {"commit_number": commit_number}
    letters = [replayed_letter_values(letter, commit) | number for letter in commit.settled.letters]
    if not letters:
        return 0
    queries = load_queries("sqlite")
    connection.executemany(queries["reopen_letters"].text, letters)
    return max(0, connection.executemany(queries["add_replayed_letters"].text, letters).rowcount)
