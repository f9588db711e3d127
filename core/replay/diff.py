"""The diff of a dry run: for each event, the rows that would be added, removed and changed, by column.

The diff of an event is JSON: `outcome` (written, filtered, dead_lettered, held), `error` of a letter, and the lists
`added` and `removed` (table, row) and `changed` (table, row, columns: name to [before, after]). The rows of an event in
one appended table are compared in order. A state is compared with the current state of its key. Where a column orders
the states, it is compared with the state that the earlier pieces of the dry run would leave.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from itertools import zip_longest
from typing import Any

from core.model.events import SequenceNumber
from core.model.property_values import readable
from core.model.rows import ReferenceKey, Row, row_table
from core.replay.pieces import EventDiff, Rehearsal, RehearsedPiece, ReplayCommit, StandingState

SHOWN = 1_000  # events of a partition whose diff is stored; the counts cover all events

States = Mapping[ReferenceKey, StandingState]
Document = dict[str, Any]
RowsByTable = dict[type, list[Row]]


@dataclass(slots=True)
class _RowChange:
    """The changes to the rows of one event."""

    added: list[Document] = field(default_factory=list)
    removed: list[Document] = field(default_factory=list)
    changed: list[Document] = field(default_factory=list)

    def compare(self, before: Row | None, after: Row | None) -> None:
        if before is None and after is not None:
            self.added.append(_named(after))
        elif after is None and before is not None:
            self.removed.append(_named(before))
        elif before is not None and after is not None:
            old, new = _readable(before), _readable(after)
            columns = {name: [old[name], new[name]] for name in new if getattr(before, name) != getattr(after, name)}
            if columns:
                self.changed.append({**_named(after), "columns": columns})

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


def rehearsed_piece(commit: ReplayCommit, rehearsal: Rehearsal, standing: States) -> RehearsedPiece:
    """Return the counts of a rehearsed commit, and the diffs of its first events that would change.

    `standing` has the states of the keys that the commit writes, as they were before the commit.
    """
    changes = _changes(commit, rehearsal, standing)
    plain = [one for one in rehearsal.retracted if not row_table(type(one.row)).newest_by]
    ordered = commit.new_states(ordered=True)
    states = {key: new for key, new in ordered.items() if key not in standing or standing[key].gives_way_to(new)}
    taken = [stands for key in states if (stands := standing.get(key)) is not None and stands.written_by is not None]
    numbers = set(commit.numbers)
    rewritten = [one for one in plain if row_table(type(one.row)).key and one.sequence_number in numbers]
    first = commit.progress.range.span.first  # the count of the states of the range has these states
    left = [one for one in taken if one.written_by is not None and one.written_by >= first and not one.is_rehearsed]
    room = max(0, SHOWN - commit.progress.report.events_changed)
    counts = replace(
        commit.counts,
        letters_added=rehearsal.letters_added,
        letters_resolved=rehearsal.letters_resolved,
        rows_retracted=len(plain) + len(taken),
        events_changed=len(changes),
        rows_added=sum(len(change.added) for change in changes.values()),
        rows_removed=sum(len(change.removed) for change in changes.values()),
        rows_changed=sum(len(change.changed) for change in changes.values()),
        states_rewritten=len(rewritten) + len(left),
    )
    return RehearsedPiece(commit, counts, tuple(_shown(commit, dict(list(changes.items())[:room]))), states)


def document(row: Row) -> Document:
    """Return the columns of a row in the form that JSON holds: instants are RFC 3339 in UTC."""
    return {name: _plain(getattr(row, name)) for name in row_table(type(row)).columns}


def _changes(commit: ReplayCommit, rehearsal: Rehearsal, standing: States) -> dict[SequenceNumber, _RowChange]:
    """Return the changes of each event that would change, by its sequence number."""
    before: dict[SequenceNumber, RowsByTable] = {}
    for one in sorted(rehearsal.retracted, key=lambda one: one.ordinal):
        if not row_table(type(one.row)).key:
            before.setdefault(one.sequence_number, {}).setdefault(type(one.row), []).append(one.row)
    after: dict[SequenceNumber, RowsByTable] = {}
    for row_class, placed in commit.settled.rows.items():
        if not row_table(row_class).key:
            for written_by, _, row in placed:
                after.setdefault(SequenceNumber(written_by), {}).setdefault(row_class, []).append(row)
    changes = {number: _RowChange() for number in commit.numbers}
    for number, change in changes.items():
        old, new = before.get(number, {}), after.get(number, {})
        for row_class in dict.fromkeys((*old, *new)):
            for pair in zip_longest(old.get(row_class, ()), new.get(row_class, ())):
                change.compare(*pair)
    for key, state in commit.new_states().items():
        stands = standing.get(key)
        if stands is None or stands.gives_way_to(state):
            changes[state.number].compare(None if stands is None else stands.row, state.row)
    return {number: change for number, change in changes.items() if change}


def _shown(commit: ReplayCommit, changes: Mapping[SequenceNumber, _RowChange]) -> Iterator[EventDiff]:
    errors = {letter.event.sequence_number: letter.error for letter in commit.settled.letters}
    held = {letter.event.sequence_number for letter in commit.settled.letters if letter.status == "held"}
    written = {number for placed in commit.settled.rows.values() for number, _, _ in placed}
    for number, change in changes.items():
        failed = "held" if number in held else "dead_lettered"
        outcome = failed if number in errors else "written" if number in written else "filtered"
        shown: Document = {"outcome": outcome}
        if number in errors:
            shown["error"] = errors[number]
        shown.update(added=change.added, removed=change.removed, changed=change.changed)
        yield EventDiff(commit.partition.partition_id, number, json.dumps(shown, ensure_ascii=True))


def _named(row: Row) -> Document:
    return {"table": row_table(type(row)).name, "row": _readable(row)}


def _readable(row: Row) -> Document:
    return {name: readable(value) for name, value in document(row).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        with suppress(OverflowError):  # SQL refuses a time outside of the years 1 to 9999 in UTC
            value = value.astimezone(UTC)
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
