"""The ledger in SQL: the totals, letters, open gaps and stops of one moment, and the minutes of the charts."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from core.ledger.totals import KEPT, NOT_PURGED, Books, LetterBooks, Minute, PartitionBooks, Purged
from core.model.commits import LetterStatus, PartitionStop
from core.model.events import Incarnation, PartitionId, SequenceNumber
from core.model.letters import OPEN, SETTLED, LetterKey
from core.store.columns import decoded, decoder, instant_of, instant_or_none, instant_text, names_of
from core.store.database import OneStream
from core.store.script import Script, Step


def read_purged(stream: OneStream, partition_id: PartitionId) -> Purged:
    """Return how far a partition is purged."""
    found = stream.ask("read_purged", partition_id=partition_id)
    return decoder(Purged)(found[0]) if found else NOT_PURGED


STATUSES = (*OPEN, *SETTLED)


@dataclass(frozen=True, slots=True)
class StreamStop:
    """A stop of a partition, and the letters that batches of the partition have made since."""

    partition_id: PartitionId
    letters: int
    stop: PartitionStop


class Ledger:
    """The books and the minutes of one stream."""

    def __init__(self, stream: OneStream) -> None:
        self._stream = stream

    def read_books(self) -> tuple[PartitionBooks, ...]:
        """Return the books of every partition."""
        return decoded(PartitionBooks, self._stream.ask("read_books"))

    def read_incarnation(self) -> Incarnation | None:
        """Return the newest incarnation of the stream, or None while the store does not know the stream."""
        found = self._stream.database.ask("read_incarnation", **names_of(self._stream.stream))
        return decoder(Incarnation)(found[0]) if found else None

    def read_stops(self) -> tuple[StreamStop, ...]:
        """Return the stops of the partitions that are stopped, on purpose or by the database."""
        return decoded(StreamStop, self._stream.ask("read_stream_stops"))

    def try_write(self, by: UUID) -> None:
        """Write a row of no task and delete it. Raises StoreUnavailable where the database or its disk takes no write.

        The transaction commits, because SQLite writes only then to the disk.
        """
        values = {"task_id": str(by), "partition_id": "", "diffs": json.dumps([(0, "{}")])}
        steps = (Step("add_replay_diffs", values), Step("delete_diffs", {"of_task": str(by), "most": 1}))
        self._stream.database.run(Script("health", steps, may_repeat=True))

    def count_letters(self) -> LetterBooks:
        """Return the letters of one moment, each counted: one entry of an index is read for each."""
        return self._counted("count_letters", STATUSES)

    def count_open(self) -> LetterBooks:
        """Return the letters of one moment. The settled ones are those that were made and are neither open nor purged:
        a lost letter counts as settled."""
        return self._counted("count_open", OPEN)

    def _counted(self, statement: str, statuses: Sequence[LetterStatus]) -> LetterBooks:
        if not (found := self._stream.ask(statement)):
            return LetterBooks({}, 0)
        *counts, purged, dead_lettered, replayed = found[0]
        count_of = dict(zip(statuses, counts, strict=True))
        opened = sum(count_of[status] for status in OPEN)
        settled = max(0, dead_lettered + replayed - opened - purged)
        if statuses is STATUSES:
            settled = sum(count_of[status] for status in SETTLED)
        oldest = self.find_oldest_letter(OPEN) if opened else None
        return LetterBooks(count_of, dead_lettered, replayed, oldest, purged, settled)

    def find_oldest_letter(self, statuses: Sequence[LetterStatus]) -> LetterKey | None:
        """Return the letter in one of these statuses that failed first."""
        found = [row for status in statuses for row in self._stream.ask("find_oldest_letter", status=status)]
        keys = [LetterKey(instant_of(at), PartitionId(id), SequenceNumber(number)) for at, id, number in found]
        return min(keys, key=lambda key: key.failed_at, default=None)

    def read_last_batches(self) -> Mapping[PartitionId, datetime]:
        """Return the time of the newest batch of each partition."""
        found = self._stream.ask("read_last_batches")
        return {PartitionId(id): instant_of(at) for id, at in found if at is not None}  # None: no range is left

    def count_absent(self, since: datetime) -> int:
        """Count the numbers that commits since a time found absent."""
        found = self._stream.ask("count_absent", since_at=instant_text(since))
        return int(found[0][0]) if found else 0

    def count_tasks_held_up(self) -> int:
        """Count the open tasks that a fault holds up, or that the app has paused for one."""
        found = self._stream.ask("count_tasks_held_up")
        return int(found[0][0]) if found else 0

    def find_anchor(self, partition_id: PartitionId) -> SequenceNumber | None:
        """Return the first number of a partition that counts, or None without an anchor."""
        found = self._stream.ask("read_anchor", partition_id=partition_id)
        return found[0][0] if found else None

    def store_minute(self, minute: Minute) -> None:
        """Store a minute, unless there is one for the same minute of the clock. Remove the minutes older than KEPT."""
        stream_id = self._stream.find()
        if stream_id is not None:
            self._stream.database.run(minute_script(stream_id, minute))

    def read_minutes(self, since: datetime) -> tuple[Minute, ...]:
        """Return the minutes since a time, in order."""
        return decoded(Minute, self._stream.ask("read_minutes", since_at=instant_text(since)))


def minute_script(stream_id: int, minute: Minute) -> Script:
    """Return the transaction that stores a minute, unless a watch has stored it, and removes those of a day ago."""
    started_at = minute.at.replace(second=0, microsecond=0)
    values = {
        "minute_at": instant_text(started_at),
        "stream_id": stream_id,
        "read_at": instant_text(minute.at),
        "lag": minute.lag,
        "accounted": minute.accounted,
    }
    steps = (
        Step("remove_minutes", {"before_at": instant_text(started_at - KEPT)}),
        Step("add_minute", values, races=("pk_stream_minute",)),
    )
    return Script(f"minute {started_at:%H:%M}", steps, may_repeat=True)


def read_books(store: Ledger) -> Books:
    """Return the books now. Letters are counted one by one, which takes a while for millions of letters."""
    return Books(store.read_books(), store.count_letters())


MOST_GAPS = 1000
ForgottenKind = Literal["kept", "unkept", "gap"]  # a letter with a stored body, a letter without, a gap
LETTERS: tuple[ForgottenKind, ...] = ("kept", "unkept")


@dataclass(frozen=True, slots=True)
class OpenCount:
    """The open letters or gaps of one kind in a partition. The hub begins at the number `before`, and no longer holds
    the events of `gone`. A gap is gone with its first event. Of the others, the first was enqueued at `first_at`."""

    partition_id: PartitionId
    kind: ForgottenKind
    gone: int
    first_at: datetime | None
    before: SequenceNumber


@dataclass(frozen=True, slots=True)
class OpenGap:
    """An open gap: its first number, and a time before which the event of that number was not enqueued."""

    partition_id: PartitionId
    first: SequenceNumber
    after_at: datetime


class BurnDowns:
    """Reads the open letters and gaps of one stream, whose events the hub will forget."""

    def __init__(self, stream: OneStream) -> None:
        self._stream = stream

    def read_partition_ids(self) -> tuple[PartitionId, ...]:
        """Return the partitions that have a checkpoint: no other partition has letters."""
        return tuple(PartitionId(id) for id, _ in self._stream.ask("read_last_batches"))

    def count_open_letters(self, partition_id: PartitionId, beginning: SequenceNumber) -> tuple[OpenCount, ...]:
        """Count the open letters of a partition by kind. The letters before `beginning` are gone."""
        own = {"partition_id": partition_id, "beginning": beginning}
        return tuple(
            OpenCount(partition_id, kind, gone, instant_or_none(first_at), beginning)
            for kind in LETTERS
            for gone, first_at in self._stream.ask("count_open_letters", **own, body_kept=int(kind == "kept"))
            if gone or first_at
        )

    def read_open_gaps(self) -> tuple[OpenGap, ...]:
        """Return the open gaps by partition and number, as many as a person can look at."""
        return decoded(OpenGap, self._stream.ask("read_open_gaps", most=MOST_GAPS))
