"""The books and the audit of a stream, from named statements of either engine."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from core.ledger.at_key import KeyPlace
from core.ledger.books import CountedLetters, PartitionBooks
from core.ledger.faults import CommitRows, LetteredRow, RowCount
from core.ledger.store.comparison import Comparison
from core.ledger.store.erasure_scripts import subjects_json
from core.ledger.store.minutes import Minutes
from core.ledger.store.purged import read_purged
from core.ledger.store.sums import RangeSums
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


class Ledger(Comparison, RangeSums, Minutes):
    """The books, the ranges, the rows and the minutes of one stream, whose rows are of these classes."""

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
        """Write a row of no task and roll it back. Raises StoreUnavailable where the database can only be read."""
        values = {"task_id": str(by), "partition_id": "", "diffs": json.dumps([(0, "{}")])}
        self._stream.database.run(Script("health", (Step("add_replay_diffs", values),), may_repeat=True), rehearse=True)

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

    def count_replay_letters(self, partition_id: PartitionId) -> tuple[int, int, int | None]:
        """Count the letters that replays recorded as made from events that were no letters before, how many of them
        exist, and how many the checkpoint counts."""
        found = self._stream.ask("count_replay_letters", partition_id=partition_id)
        made, exist, counted = found[0] if found else (0, 0, None)
        return made, exist, counted

    def find_row_faults(self, partition_id: PartitionId, span: Span, most: int) -> tuple[CommitRows, ...]:
        """Return the first commits that lie wholly in a range and appended more or fewer rows than the tables hold."""
        place = {"partition_id": partition_id, **span_values(span), "most": most}
        found = self._stream.ask(of_rows("find_row_faults", *self._row_classes), **place)
        return tuple(CommitRows(*row) for row in found)

    def find_lettered_rows(self, partition_id: PartitionId, span: Span, most: int) -> tuple[LetteredRow, ...]:
        """Return the first letters of a range that are not resolved, although rows of their number were appended."""
        place = {"partition_id": partition_id, **span_values(span), "most": most}
        appended = [row_class for row_class in self._row_classes if not row_table(row_class).key]
        return tuple(
            LetteredRow(number, status, row_table(row_class).name)
            for row_class in appended
            for number, status in self._stream.ask(of_rows("find_lettered", row_class), **place)
        )

    def count_rows(self, partition_id: PartitionId, span: Span) -> tuple[RowCount, ...]:
        """Count the rows of each table in a range, and those that no commit of theirs accounts for."""
        counted = []
        for row_class in self._row_classes:
            table = row_table(row_class)
            found = self._stream.ask(of_rows("count_rows", row_class), partition_id=partition_id, **span_values(span))
            counted += [RowCount(table.name, *counts) for counts in found]
        return tuple(counted)


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
