"""Store the Durable state in SQLite: each method is one transaction, so a killed process leaves all of it or nothing.

The store has its own connection; one thread uses it, never across an `await`.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from local.functions_host.durable import statements as sql
from local.functions_host.durable.history import CONTROLS, Event, execution_started, stamped
from local.functions_host.durable.instances import (
    ActivityDue,
    ActivityOrder,
    ChildOrder,
    EntityBatch,
    EntityCommit,
    Entry,
    Episode,
    EpisodeCommit,
    Instance,
    InstanceFilter,
    NewInstance,
    Outgoing,
    Parent,
    Status,
)

NO_LIMIT = -1
StateFault = sqlite3.Error  # any method raises it when the file cannot be read or written


class InstanceExists(Exception):
    """An instance of that id has not ended, so it cannot be replaced."""

    def __init__(self, status: Status) -> None:
        super().__init__(f"An Orchestration instance with the status {status} already exists.")


class DurableStore:
    """The state in the file at `path`, or in memory without one."""

    def __init__(self, path: Path | None) -> None:
        self._database = sqlite3.connect(path or ":memory:", isolation_level=None)
        self._database.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;" + sql.TABLES)

    def close(self) -> None:
        """Close the file."""
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
        rows = self._database.execute(sql.READ_READY, {"now": _to_text(now), "top": top})
        return [instance_id for (instance_id,) in rows]

    def next_due_at(self, now: datetime) -> datetime | None:
        """Return the next instant after `now` at which an event is due, or None."""
        (text,) = self._database.execute(sql.READ_NEXT_DUE, (_to_text(now),)).fetchone()
        return None if text is None else datetime.fromisoformat(text)

    def read_episode(self, instance_id: str, now: datetime) -> Episode:
        """Return the input of an orchestrator's next turn."""
        past = self._database.execute(sql.READ_HISTORY, (instance_id,))
        entries = self._entries(instance_id, now, NO_LIMIT)
        return Episode(self.find(instance_id), [text for (text,) in past], entries)

    def commit_episode(self, commit: EpisodeCommit) -> bool:
        """Write a turn's changes; write nothing and return False when the execution is gone."""
        with self._transaction():
            if not self._update_instance(commit):
                return False
            self._database.executemany(sql.REMOVE_ENTRY, [(number,) for number in commit.consumed])
            if commit.successor is None:
                self._add_history(commit)
            else:
                self._begin_again(commit, commit.successor)
            if commit.status.is_final:
                self._database.execute(sql.REMOVE_ENTRIES, (commit.instance_id,))
            self._database.executemany(sql.ADD_ACTIVITY, [_activity_row(order) for order in commit.activities])
            for order in commit.children:
                self._start_child(order, commit.at)
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
            return self._database.execute(sql.UPDATE_INSTANCE, values).rowcount == 1
        values |= {"next_execution_id": successor.execution_id, "input": successor.input}
        return self._database.execute(sql.CONTINUE_INSTANCE, values).rowcount == 1

    def _add_history(self, commit: EpisodeCommit) -> None:
        rows = [
            (commit.instance_id, commit.past + index, json.dumps({**event, "IsPlayed": True}))
            for index, event in enumerate(commit.events)
        ]
        self._database.executemany(sql.ADD_HISTORY, rows)

    def _begin_again(self, commit: EpisodeCommit, successor: NewInstance) -> None:
        self._database.execute(sql.REMOVE_HISTORY, (commit.instance_id,))
        self._database.execute(sql.REMOVE_ENTRIES_OF_EXECUTION, (commit.instance_id, commit.execution_id))
        self._send([_beginning(successor, commit.at)])

    def _start_child(self, order: ChildOrder, at: datetime) -> None:
        try:
            self._create(order.child, at)
        except InstanceExists:
            self._send([order.refused])

    def create(self, instance: NewInstance, at: datetime) -> None:
        """Start an orchestration and replace an ended one of its id; raise InstanceExists when it has not ended."""
        with self._transaction():
            self._create(instance, at)

    def _create(self, new: NewInstance, at: datetime) -> None:
        known = self.find(new.instance_id)
        if known is not None and not known.status.is_final:
            raise InstanceExists(known.status)
        self._remove(new.instance_id)
        parent = new.parent
        ancestry = (parent.instance_id, parent.execution_id, parent.task_id) if parent else (None, None, None)
        stamps = (_to_text(at), _to_text(at))
        row = (new.instance_id, new.execution_id, new.name, Status.PENDING, *stamps, new.input, None, None, *ancestry)
        self._database.execute(sql.ADD_INSTANCE, row)
        self._send([_beginning(new, at)])

    def send(self, outgoing: Outgoing) -> None:
        """Add one event to an inbox."""
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
        self._database.executemany(sql.ADD_ENTRY, rows)

    def discard(self, entries: Iterable[Entry]) -> None:
        """Drop entries that no instance will take."""
        with self._transaction():
            self._database.executemany(sql.REMOVE_ENTRY, [(each.number,) for each in entries])

    def _entries(self, instance_id: str, now: datetime, limit: int) -> list[Entry]:
        rows = self._database.execute(sql.READ_ENTRIES, (instance_id, _to_text(now), limit))
        return [Entry(number, execution_id, json.loads(text)) for number, execution_id, text in rows]

    def activities_after(self, number: int, top: int) -> Sequence[ActivityDue]:
        """Return the ordered activities after a number, in their order."""
        rows = self._database.execute(sql.READ_ACTIVITIES, (number, top))
        return [ActivityDue(row[0], ActivityOrder(*row[1:])) for row in rows]

    def complete_activity(self, number: int, result: Outgoing) -> bool:
        """Deliver an activity's result once; return False when it was delivered or purged before."""
        with self._transaction():
            if self._database.execute(sql.REMOVE_ACTIVITY, (number,)).rowcount != 1:
                return False
            self._send([result])
        return True

    def read_entity(self, entity_id: str, now: datetime, top: int) -> EntityBatch:
        """Return an entity with up to `top` of the operations that wait for it."""
        return EntityBatch(entity_id, self.entity_state(entity_id), self._entries(entity_id, now, top))

    def commit_entity(self, commit: EntityCommit) -> None:
        """Write the changes of a batch of operations."""
        with self._transaction():
            self._database.executemany(sql.REMOVE_ENTRY, [(number,) for number in commit.consumed])
            if commit.state is None:
                self._database.execute(sql.REMOVE_ENTITY, (commit.entity_id,))
            else:
                self._database.execute(sql.WRITE_ENTITY, (commit.entity_id, commit.state))
            self._send(commit.outgoing)

    def entity_state(self, entity_id: str) -> str | None:
        """Return an entity's state as JSON, or None when there is no such entity."""
        row = self._database.execute(sql.READ_ENTITY, (entity_id,)).fetchone()
        return None if row is None else str(row[0])

    def find(self, instance_id: str) -> Instance | None:
        """Return an instance, or None when there is none of that id."""
        row = self._database.execute(sql.READ_INSTANCE, (instance_id,)).fetchone()
        return None if row is None else _instance(row)

    def select(self, wanted: InstanceFilter) -> Sequence[Instance]:
        """Return the selected instances, by id."""
        values = {
            "after": wanted.after,
            "prefix": wanted.prefix,
            "created_from": _to_text(wanted.created_from) if wanted.created_from else "",
            "created_to": _to_text(wanted.created_to) if wanted.created_to else "9999",
            "statuses": f",{','.join(wanted.statuses)}," if wanted.statuses else "",
            "top": wanted.top,
        }
        return [_instance(row) for row in self._database.execute(sql.READ_INSTANCES, values)]

    def history(self, instance_id: str) -> Sequence[Event]:
        """Return the history of an instance."""
        return [json.loads(text) for (text,) in self._database.execute(sql.READ_HISTORY, (instance_id,))]

    def purge(self, instance_ids: Iterable[str]) -> None:
        """Delete instances, or entities, with all their rows."""
        with self._transaction():
            for instance_id in instance_ids:
                self._remove(instance_id)
                self._database.execute(sql.REMOVE_ENTITY, (instance_id,))

    def _remove(self, instance_id: str) -> None:
        for statement in sql.REMOVE_INSTANCE:
            self._database.execute(statement, (instance_id,))


def _beginning(new: NewInstance, at: datetime) -> Outgoing:
    ids = (new.instance_id, new.execution_id)
    started = execution_started(new.name, ids, new.input, new.parent.instance_id if new.parent else None)
    return Outgoing(*ids, stamped(started, at), at)


def _activity_row(order: ActivityOrder) -> tuple[str, str, int, str, str | None]:
    return (order.instance_id, order.execution_id, order.task_id, order.name, order.input)


def _instance(row: Sequence[Any]) -> Instance:
    instance_id, execution_id, name, status, created_at, updated_at = row[:6]
    parent = Parent(*row[9:12]) if row[9] is not None else None
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
        parent=parent,
    )


def _to_text(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat(timespec="microseconds")
