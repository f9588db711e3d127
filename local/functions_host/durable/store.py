"""Store the Durable state in SQLite: each method is one transaction, so a killed process leaves all of it or nothing.

The store has its own connection. One thread uses it, never across an `await`. Instants are ISO texts of one width in
UTC, so that they compare as texts.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from local.functions_host.durable.instances import (
    CONTROLS,
    ActivityDue,
    ActivityOrder,
    Entry,
    Episode,
    EpisodeCommit,
    Event,
    Instance,
    NewInstance,
    Outgoing,
    Status,
)

TABLES = """
CREATE TABLE IF NOT EXISTS durable_instance (
    instance_id TEXT NOT NULL PRIMARY KEY, execution_id TEXT NOT NULL, name TEXT NOT NULL, status TEXT NOT NULL,
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL, input TEXT, output TEXT, custom_status TEXT
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS durable_history (
    instance_id TEXT NOT NULL, position INTEGER NOT NULL, event TEXT NOT NULL,
    PRIMARY KEY (instance_id, position)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS durable_inbox (
    entry_number INTEGER PRIMARY KEY AUTOINCREMENT, instance_id TEXT NOT NULL, execution_id TEXT,
    due_at TEXT NOT NULL, is_control INTEGER NOT NULL, event TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS durable_inbox_due ON durable_inbox (due_at);
CREATE INDEX IF NOT EXISTS durable_inbox_instance ON durable_inbox (instance_id, due_at);
CREATE TABLE IF NOT EXISTS durable_activity (
    activity_number INTEGER PRIMARY KEY AUTOINCREMENT, instance_id TEXT NOT NULL, execution_id TEXT NOT NULL,
    task_id INTEGER NOT NULL, name TEXT NOT NULL, input TEXT,
    UNIQUE (instance_id, execution_id, task_id)
);
"""

# A suspended instance is due only for its control events.
READ_READY = """
SELECT inbox.instance_id FROM durable_inbox AS inbox
LEFT JOIN durable_instance AS instance ON instance.instance_id = inbox.instance_id
WHERE inbox.due_at <= :now AND (inbox.is_control = 1 OR instance.status IS NOT 'Suspended')
GROUP BY inbox.instance_id ORDER BY MIN(inbox.due_at) LIMIT :top
"""
READ_NEXT_DUE = "SELECT MIN(due_at) FROM durable_inbox WHERE due_at > ?"
READ_ENTRIES = """
SELECT entry_number, execution_id, event FROM durable_inbox
WHERE instance_id = ? AND due_at <= ? ORDER BY due_at, entry_number
"""
ADD_ENTRY = "INSERT INTO durable_inbox (instance_id, execution_id, due_at, is_control, event) VALUES (?, ?, ?, ?, ?)"
REMOVE_ENTRY = "DELETE FROM durable_inbox WHERE entry_number = ?"
REMOVE_ENTRIES = "DELETE FROM durable_inbox WHERE instance_id = ?"
REMOVE_ENTRIES_OF_EXECUTION = "DELETE FROM durable_inbox WHERE instance_id = ? AND execution_id = ?"

INSTANCE_COLUMNS = "instance_id, execution_id, name, status, created_at, updated_at, input, output, custom_status"
ADD_INSTANCE = f"INSERT INTO durable_instance ({INSTANCE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, NULL, NULL)"
READ_INSTANCE = f"SELECT {INSTANCE_COLUMNS} FROM durable_instance WHERE instance_id = ?"
UPDATE_INSTANCE = """
UPDATE durable_instance SET status = :status, updated_at = :at, output = :output, custom_status = :custom_status
WHERE instance_id = :instance_id AND execution_id = :execution_id
"""
CONTINUE_INSTANCE = """
UPDATE durable_instance SET execution_id = :next_execution_id, input = :input, status = :status, updated_at = :at,
    custom_status = COALESCE(:custom_status, custom_status)
WHERE instance_id = :instance_id AND execution_id = :execution_id
"""

READ_HISTORY = "SELECT event FROM durable_history WHERE instance_id = ? ORDER BY position"
ADD_HISTORY = "INSERT INTO durable_history (instance_id, position, event) VALUES (?, ?, ?)"
REMOVE_HISTORY = "DELETE FROM durable_history WHERE instance_id = ?"
REMOVE_INSTANCE = (
    "DELETE FROM durable_instance WHERE instance_id = ?",
    REMOVE_HISTORY,
    REMOVE_ENTRIES,
    "DELETE FROM durable_activity WHERE instance_id = ?",
)

ADD_ACTIVITY = """
INSERT INTO durable_activity (instance_id, execution_id, task_id, name, input) VALUES (?, ?, ?, ?, ?)
"""
READ_ACTIVITIES = """
SELECT activity_number, instance_id, execution_id, task_id, name, input FROM durable_activity
WHERE activity_number > ? ORDER BY activity_number LIMIT ?
"""
REMOVE_ACTIVITY = "DELETE FROM durable_activity WHERE activity_number = ?"

StateFault = sqlite3.Error  # any method raises it when the file cannot be read or written


class InstanceExists(Exception):
    """An instance of that id has not ended, so it cannot be replaced."""

    def __init__(self, status: Status) -> None:
        super().__init__(f"An Orchestration instance with the status {status} already exists.")


class DurableStore:
    """The state in the file at `path`, or in memory without one."""

    def __init__(self, path: Path | None) -> None:
        self._database = sqlite3.connect(path or ":memory:", isolation_level=None)
        self._database.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;" + TABLES)

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def ready(self, now: datetime, top: int) -> Sequence[str]:
        """Return the instances and entities with due events, the longest due first."""
        rows = self._database.execute(READ_READY, {"now": _to_text(now), "top": top})
        return [instance_id for (instance_id,) in rows]

    def next_due_at(self, now: datetime) -> datetime | None:
        """Return the next instant after `now` at which an event is due, or None."""
        (text,) = self._database.execute(READ_NEXT_DUE, (_to_text(now),)).fetchone()
        return None if text is None else datetime.fromisoformat(text)

    def read_episode(self, instance_id: str, now: datetime) -> Episode:
        """Return the input of an orchestrator's next turn."""
        past = self._database.execute(READ_HISTORY, (instance_id,))
        entries = [
            Entry(number, execution_id, json.loads(text))
            for number, execution_id, text in self._database.execute(READ_ENTRIES, (instance_id, _to_text(now)))
        ]
        return Episode(self.find(instance_id), [text for (text,) in past], entries)

    def commit_episode(self, commit: EpisodeCommit) -> bool:
        """Write a turn's changes. Write nothing and return False when the execution is gone."""
        with self._transaction():
            if not self._update_instance(commit):
                return False
            self._database.executemany(REMOVE_ENTRY, [(number,) for number in commit.consumed])
            if commit.successor is None:
                rows = [
                    (commit.instance_id, commit.past + index, json.dumps({**event, "IsPlayed": True}))
                    for index, event in enumerate(commit.events)
                ]
                self._database.executemany(ADD_HISTORY, rows)
            else:
                self._database.execute(REMOVE_HISTORY, (commit.instance_id,))
                self._database.execute(REMOVE_ENTRIES_OF_EXECUTION, (commit.instance_id, commit.execution_id))
                self._send([_beginning(commit.successor, commit.at)])
            if commit.status.is_final:
                self._database.execute(REMOVE_ENTRIES, (commit.instance_id,))
            self._database.executemany(ADD_ACTIVITY, map(astuple, commit.activities))
            self._send(commit.outgoing)
        return True

    def _update_instance(self, commit: EpisodeCommit) -> bool:
        values = {
            "instance_id": commit.instance_id,
            "execution_id": commit.execution_id,
            "status": commit.status,
            "at": _to_text(commit.at),
            "output": commit.output,
            "custom_status": commit.custom_status,
        }
        if (successor := commit.successor) is None:
            return self._database.execute(UPDATE_INSTANCE, values).rowcount == 1
        values |= {"next_execution_id": successor.execution_id, "input": successor.input}
        return self._database.execute(CONTINUE_INSTANCE, values).rowcount == 1

    def create(self, new: NewInstance, at: datetime) -> None:
        """Start an orchestration and replace an ended one of its id. Raises InstanceExists when it has not ended."""
        with self._transaction():
            known = self.find(new.instance_id)
            if known is not None and not known.status.is_final:
                raise InstanceExists(known.status)
            self._remove(new.instance_id)
            stamps = (_to_text(at), _to_text(at))
            row = (new.instance_id, new.execution_id, new.name, Status.PENDING, *stamps, new.input)
            self._database.execute(ADD_INSTANCE, row)
            self._send([_beginning(new, at)])

    def send(self, outgoing: Outgoing) -> None:
        with self._transaction():
            self._send([outgoing])

    def _send(self, outgoing: Iterable[Outgoing]) -> None:
        rows = (
            (
                each.instance_id,
                each.execution_id,
                _to_text(each.due_at),
                each.event.get("EventType") in CONTROLS,
                json.dumps(each.event),
            )
            for each in outgoing
        )
        self._database.executemany(ADD_ENTRY, rows)

    def discard(self, entries: Iterable[Entry]) -> None:
        """Drop entries that no instance will take."""
        with self._transaction():
            self._database.executemany(REMOVE_ENTRY, [(each.number,) for each in entries])

    def activities_after(self, number: int, top: int) -> Sequence[ActivityDue]:
        rows = self._database.execute(READ_ACTIVITIES, (number, top))
        return [ActivityDue(row[0], ActivityOrder(*row[1:])) for row in rows]

    def complete_activity(self, number: int, result: Outgoing) -> bool:
        """Deliver an activity's result once. Return False when it was delivered or purged before."""
        with self._transaction():
            if self._database.execute(REMOVE_ACTIVITY, (number,)).rowcount != 1:
                return False
            self._send([result])
        return True

    def find(self, instance_id: str) -> Instance | None:
        row = self._database.execute(READ_INSTANCE, (instance_id,)).fetchone()
        return None if row is None else _instance(row)

    def history(self, instance_id: str) -> Sequence[Event]:
        return [json.loads(text) for (text,) in self._database.execute(READ_HISTORY, (instance_id,))]

    def purge(self, instance_id: str) -> None:
        with self._transaction():
            self._remove(instance_id)

    def _remove(self, instance_id: str) -> None:
        for statement in REMOVE_INSTANCE:
            self._database.execute(statement, (instance_id,))


def _beginning(new: NewInstance, at: datetime) -> Outgoing:
    return Outgoing(new.instance_id, new.execution_id, new.started(at), at)


def _instance(row: Sequence[Any]) -> Instance:
    instance_id, execution_id, name, status, created_at, updated_at = row[:6]
    return Instance(
        instance_id=instance_id,
        execution_id=execution_id,
        name=name,
        status=Status(status),
        created_at=datetime.fromisoformat(created_at),
        updated_at=datetime.fromisoformat(updated_at),
        input=row[6],
        output=row[7],
        custom_status=row[8],
    )


def _to_text(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat(timespec="microseconds")
