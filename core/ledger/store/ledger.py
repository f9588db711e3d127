"""The books and the minutes of a stream, and all that is known about one number, from named statements."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from core.ledger.at_key import KeyPlace
from core.ledger.books import CountedLetters, PartitionBooks
from core.ledger.minutes import KEPT, Minute
from core.ledger.store.erasure_scripts import subjects_json
from core.ledger.store.purged import read_purged
from core.ledger.whereabouts import MOST_CHANGES, LedgerRange, NotedGap, Whereabouts, WrittenRow
from core.letters.listing import OPEN, SETTLED, LetterFilter, LetterKey
from core.letters.store.listing import LetterListing, filter_values
from core.model.commits import LetterStatus, PartitionStop
from core.model.events import Incarnation, PartitionId
from core.model.rows import row_table
from core.model.spans import SequenceNumber, Span, span
from core.store.columns import instant_of, instant_text, names_of, span_values
from core.store.decoding import decoded, decoder, row_reader
from core.store.script import Script, Step, of_rows
from core.store.stream import OneStream

LOOKED_AT = 10_000  # numbers that one piece of a search reads
LETTERS_LOOKED_AT = 1_000
STATUSES = (*OPEN, *SETTLED)


class Ledger:
    """The books and the minutes of one stream."""

    def __init__(self, stream: OneStream) -> None:
        self._stream = stream

    def read_books(self) -> tuple[PartitionBooks, ...]:
        """Return the books of every partition."""
        return decoded(PartitionBooks, self._stream.ask("read_books"))

    def read_incarnation(self) -> Incarnation | None:
        """Return the newest incarnation of a stream; a stream that the store does not know yet is opened."""
        found = self._stream.database.ask("read_incarnation", **names_of(self._stream.stream))
        return decoder(Incarnation)(found[0]) if found else None

    def read_stops(self) -> Mapping[PartitionId, tuple[PartitionStop, ...]]:
        """Return the stops of each partition that is stopped, on purpose or by the database."""
        stops: dict[PartitionId, tuple[PartitionStop, ...]] = {}
        for id, *stop in self._stream.ask("read_stream_stops"):
            stops[PartitionId(id)] = (*stops.get(PartitionId(id), ()), decoder(PartitionStop)(stop))
        return stops

    def try_write(self, by: UUID) -> None:
        """Write a row of no task and delete it. Raises StoreUnavailable where the database or its disk takes no write.

        The transaction commits, because SQLite writes only then to the disk.
        """
        values = {"task_id": str(by), "partition_id": "", "diffs": json.dumps([(0, "{}")])}
        steps = (Step("add_replay_diffs", values), Step("delete_diffs", {"of_task": str(by), "most": 1}))
        self._stream.database.run(Script("health", steps, may_repeat=True))

    def count_letters(self) -> CountedLetters:
        """Count the letters by status. This reads as many entries of an index as there are letters."""
        return self._counted("count_letters", STATUSES)

    def count_open(self) -> CountedLetters:
        """Count the open letters by status. The settled ones cost nothing."""
        return self._counted("count_open", OPEN)

    def _counted(self, statement: str, statuses: Sequence[LetterStatus]) -> CountedLetters:
        found = self._stream.ask(statement)
        if not found:
            return CountedLetters({})
        *counts, purged = found[0]
        return CountedLetters(dict(zip(statuses, counts, strict=True)), purged)

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
        """Return the first number of a partition that counts; None for a partition without an anchor."""
        found = self._stream.ask("read_anchor", partition_id=partition_id)
        return found[0][0] if found else None

    def store_minute(self, minute: Minute) -> None:
        """Store a minute, unless there is one for the same minute of the clock; remove the minutes older than KEPT."""
        stream_id = self._stream.find()
        if stream_id is not None:
            self._stream.database.run(minute_script(stream_id, minute))

    def read_minutes(self, since: datetime) -> tuple[Minute, ...]:
        """Return the minutes since a time, in order."""
        return decoded(Minute, self._stream.ask("read_minutes", since_at=instant_text(since)))


class Explanations:
    """Reads everything that is known about one sequence number of a stream."""

    def __init__(self, stream: OneStream, row_classes: tuple[type, ...]) -> None:
        self._stream = stream
        self._row_classes = row_classes
        self._letters = LetterListing(stream)

    def find_whereabouts(self, partition_id: PartitionId, number: SequenceNumber) -> Whereabouts | None:
        """Return the facts about a number; None for a partition without a commit.

        States have no index by number, so whole tables are read.
        """
        checkpoint = self._stream.ask("read_checkpoint", partition_id=partition_id)
        if not checkpoint:
            return None
        position = {"partition_id": partition_id, "sequence_number": number}
        found = decoded(LedgerRange, self._stream.ask("find_range", **position))
        return Whereabouts(
            checkpoint=checkpoint[0][0],
            range=found[0] if found else None,
            changes=decoded(LedgerRange, self._stream.ask("find_changes", **position, most=MOST_CHANGES)),
            gap=self._gap(position),
            letter=self._letters.read_letter(partition_id, number),
            rows=self._rows(partition_id, number),
            states_declared=any(row_table(row_class).key for row_class in self._row_classes),
            purged=read_purged(self._stream, partition_id),
            erased=self._stream.ask("count_erased", **position)[0][0],
        )

    def find_places(self, key: str, partition_id: PartitionId, reach: Span) -> tuple[tuple[KeyPlace, ...], int]:
        """Return the places of a key among the last numbers of a range, newest first, and where these numbers begin.

        It reads what an erasure of this subject reads, by the same index, and not the bodies of letters.
        """
        place, begins = {"partition_id": partition_id}, max(reach.first, reach.last - LOOKED_AT + 1)
        wanted = filter_values(LetterFilter(partition_id=partition_id, partition_key=key))
        walk = {"walked_to": reach.last + 1, "first_sequence_number": begins, "most": LETTERS_LOOKED_AT}
        walked = self._stream.ask("walk_down", **wanted, **walk, sources=f",{','.join(STATUSES)},")
        if len(walked) == LETTERS_LOOKED_AT:
            begins = walked[-1][0]
        letters = {SequenceNumber(number) for number, is_chosen in walked if is_chosen}
        tables: dict[SequenceNumber, dict[str, None]] = {}
        asked = {**place, **span_values(span(begins, reach.last)), "subjects": subjects_json([key])}
        for row_class in self._row_classes:
            if row_table(row_class).subject:
                for _, number, *_ in self._stream.ask(of_rows("select_subject", row_class), **asked):
                    tables.setdefault(number, {})[row_table(row_class).name] = None
        numbers = sorted(letters | tables.keys(), reverse=True)
        return tuple(KeyPlace(partition_id, one, one in letters, tuple(tables.get(one, ()))) for one in numbers), begins

    def _gap(self, position: dict[str, Any]) -> NotedGap | None:
        """Return the gap that includes the number, or None."""
        gaps = decoded(NotedGap, self._stream.ask("find_gap", **position))
        return next((gap for gap in gaps if gap.last >= position["sequence_number"]), None)

    def _rows(self, partition_id: PartitionId, number: SequenceNumber) -> tuple[WrittenRow, ...]:
        written = []
        for row_class in self._row_classes:
            position = {"partition_id": partition_id, "sequence_number": number}
            for ordinal, commit_number, *columns in self._stream.ask(of_rows("select_placed", row_class), **position):
                row = asdict(cast(Any, row_reader(row_class)(tuple(columns))))
                written.append(WrittenRow(row_table(row_class).name, ordinal, commit_number, row))
        return tuple(written)


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
