"""Erasures in SQL: what a range of a partition has of some subjects, and the transaction that removes it."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from core.erasure.erasure import FoundPiece, RetractedPlace
from core.letters.store import move_steps
from core.model.aggregates import Aggregate
from core.model.commits import ROWS_AT_ONCE
from core.model.events import Partition, PartitionId, SequenceNumber, Span, span
from core.model.letters import LetterMove
from core.model.policies import SubjectKey
from core.model.rows import row_table
from core.settle.erased_subjects import words_of
from core.store.columns import (
    day_of,
    fields_of,
    instant_of,
    instant_text,
    numbers_json,
    span_values,
    subjects_json,
    types_of,
)
from core.store.database import OneStream
from core.store.row_statements import in_table_order
from core.store.script import Script, Step, of_rows
from core.tasks.store import Ending, advance_steps
from core.tasks.task import Advance

WHY_ERASED = "erased"


@dataclass(frozen=True, slots=True)
class Erase:
    """A piece to erase: the subjects, the number up to which they stay forgotten, and who ordered it. The first piece
    of a partition also notes the subjects."""

    partition: Partition
    piece: FoundPiece
    subjects: Sequence[str]
    key: SubjectKey
    until: int
    by: str
    is_first: bool


def erasure_script(stream_id: int, erase: Erase, ending: Ending, ahead: Advance) -> Script:
    """Return the transaction of a piece: partition, rows, retracted rows, letters, and its task."""
    place = {"stream_id": stream_id, "partition_id": erase.partition.partition_id}
    piece, conflict = erase.piece, ending.conflict
    numbers = {**place, "sequence_numbers": numbers_json(piece.letters)}
    steps = [Step("lock_partition", place), *_erase_steps(place, erase, conflict)]
    if piece.letters:
        steps.append(Step("blank_letters", numbers, expect=len(piece.letters), otherwise=conflict))
        at, by = ending.at, str(ending.task_id)
        discard = LetterMove("discard", erase.partition, piece.letters, by, at, at, erase.by, WHY_ERASED)
        steps += move_steps(discard, stream_id)[1:]
        steps.append(Step("blank_attempts", numbers))
    if piece.staged:
        steps.append(Step("delete_staged_of", {**place, "staged": numbers_json(piece.staged)}))
    if erase.is_first:
        noted = {
            **place,
            "hashes": json.dumps([[erase.key.hash_of(one)] for one in erase.subjects]),
            "key_hash": erase.key.name,
            "until_sequence_number": erase.until,
            "erased_by": str(ending.task_id),
            "erased_at": instant_text(ending.at),
        }
        steps.append(Step("add_erased_subjects", noted))
    steps += advance_steps(ending, ahead)
    if piece.diffs:
        dry_runs = json.dumps(sorted({(task_id,) for task_id, _ in piece.diffs}))
        diffed = numbers_json(sorted({SequenceNumber(number) for _, number in piece.diffs}))
        steps.append(Step("delete_diffs_of", {**place, "dry_runs": dry_runs, "diffed": diffed}))
    return Script(f"erasure {ending.task_id}", tuple(steps), gives_way=True)


def closing_script(reworded: Sequence[tuple[Any, ...]], ending: Ending | None, ahead: Advance | None) -> Script:
    """Return the transaction that ends an erasure and replaces the texts of tasks."""
    steps = [Step("reword_tasks", {"reworded": json.dumps(reworded)})] if reworded else []
    if ending is None or ahead is None:
        return Script("texts of tasks", tuple(steps), may_repeat=True)
    hold, *advance = advance_steps(ending, ahead)
    return Script(f"erasure {ending.task_id}", (hold, *steps, *advance))


def _erase_steps(place: dict[str, Any], erase: Erase, conflict: Callable[[], Exception]) -> list[Step]:
    """Return the steps that leave a stub of each appended row, blank the rows that replays took away, and delete."""
    stubs, deleted, reach = [], [], {**place, **span_values(erase.piece.span)}
    of = {**reach, "subjects": subjects_json(erase.subjects)}
    for row_class in in_table_order(one for one in erase.piece.rows if row_table(one).subject):
        count = erase.piece.rows[row_class]
        if not row_table(row_class).key:
            stubs.append(Step(of_rows("stub_subject", row_class), of, expect=count, otherwise=conflict))
        deleted.append(Step(of_rows("delete_subject", row_class), of, expect=count, otherwise=conflict))
    if erase.piece.retracted:
        blank = {**reach, "retracted": json.dumps(erase.piece.retracted)}
        stubs.append(Step("blank_retracted", blank, expect=len(erase.piece.retracted), otherwise=conflict))
    return [*stubs, *deleted]


AT_ONCE = 200  # letters or staged events whose bodies are in memory
NEVER = 2**63 - 1

Concerns = Callable[[Iterable[str]], bool]  # whether one of these texts is a subject


class Erasures:
    """Reads and erases the subjects of one stream. Its room has the `row_classes`."""

    def __init__(
        self, stream: OneStream, row_classes: tuple[type, ...], aggregates: tuple[Aggregate, ...] = ()
    ) -> None:
        self.stream = stream
        self.row_classes = tuple(in_table_order(row_classes))
        self._aggregates = aggregates

    def read_partitions(self) -> tuple[PartitionId, ...]:
        """Return the partitions that have a checkpoint."""
        return tuple(PartitionId(id) for id, _ in self.stream.ask("read_last_batches"))

    def find_last(self, partition_id: PartitionId) -> SequenceNumber:
        """Return the checkpoint of a partition, or -1 without one."""
        found = self.stream.ask("read_checkpoint", partition_id=partition_id)
        return SequenceNumber(found[0][0] if found else -1)

    def find_next(self, partition_id: PartitionId, first: int) -> int:
        """Return the next number at which any table may have something of a subject."""
        place = {"partition_id": partition_id, "first_sequence_number": first}
        found = self.stream.ask("find_next_erasable", **place)
        for row_class in self.row_classes:
            found += self.stream.ask(of_rows("next_number", row_class), **place)
        return min((number for row in found for number in row if number is not None), default=NEVER)

    def find_piece(
        self, partition_id: PartitionId, reach: Span, subjects: Sequence[str], concerns: Concerns
    ) -> FoundPiece:
        """Return the finds of some subjects in a range. With many rows or letters, the piece ends before the range."""
        place, last = {"partition_id": partition_id}, int(reach.last)
        asked = {**place, **span_values(reach), "subjects": subjects_json(subjects)}
        declared = [one for one in self.row_classes if row_table(one).subject]
        rows = {one: self.stream.ask(of_rows("select_subject", one), **asked) for one in declared}
        numbers = sorted(row[1] for found in rows.values() for row in found)
        if len(numbers) > ROWS_AT_ONCE:
            last = max(reach.first, numbers[ROWS_AT_ONCE] - 1)
        letters, last = self._search("read_letters_to_search", span(reach.first, last), concerns, place)
        staged, last = self._search("read_staged_to_search", span(reach.first, last), concerns, place)
        part = span(reach.first, last)
        diffs = self.stream.ask("read_diffs_to_search", **place, **span_values(part))
        rows = {one: [row for row in found if row[1] <= last] for one, found in rows.items()}
        return FoundPiece(
            span=part,
            rows={one: len(found) for one, found in rows.items() if found},
            letters=tuple(number for number in letters if number <= last),
            staged=tuple(number for number in staged if number <= last),
            retracted=self._retracted(part, {str(one) for one in subjects}, place),
            diffs=tuple((task_id, number) for task_id, number, diff in diffs if concerns(words_of(diff.encode()))),
            days=self._days(rows),
        )

    def erase(self, erase: Erase, ending: Ending, ahead: Advance) -> None:
        """Erase a piece and advance its part, in one transaction. Raises TaskConflict, with nothing written, when
        anything of the piece has changed since it was found."""
        stream_id = self.stream.find()
        self.stream.database.run(erasure_script(-1 if stream_id is None else stream_id, erase, ending, ahead))

    def close(self, reworded: Sequence[tuple[Any, ...]], ending: Ending, ahead: Advance) -> None:
        """Advance the last part, and replace the texts of tasks that name a subject."""
        self.stream.database.run(closing_script(reworded, ending, ahead))

    def read_tasks(self) -> list[tuple[Any, ...]]:
        """Return id, request, reason, fault and history of every task of the stream."""
        return self.stream.ask("read_tasks_to_search")

    def reword(self, reworded: Sequence[tuple[Any, ...]]) -> None:
        """Replace the texts of tasks."""
        self.stream.database.run(closing_script(reworded, None, None))

    def _search(self, statement: str, reach: Span, concerns: Concerns, place: Any) -> tuple[list[SequenceNumber], int]:
        """Return the numbers of a range whose texts name a subject, and the last number that was read.

        No more bodies than AT_ONCE are in memory.
        """
        found = self.stream.ask(statement, **place, **span_values(reach), most=AT_ONCE)
        named = [
            SequenceNumber(number)
            for number, partition_key, properties, body, *texts in found
            if concerns(words_of(bytes(body), partition_key, properties, *texts))
        ]
        return named, found[-1][0] if len(found) == AT_ONCE else reach.last

    def _retracted(self, part: Span, subjects: set[str], place: Any) -> tuple[RetractedPlace, ...]:
        """Return the places of the rows of the subjects that replays took away."""
        of_table = {row_table(one).name: one for one in self.row_classes}
        found = []
        for *at, row in self.stream.ask("read_retracted_to_search", **place, **span_values(part)):
            row_class = of_table.get(at[1])
            subject = row_table(row_class).subject if row_class else ""
            if subject and str(json.loads(row).get(subject)) in subjects:
                found.append(tuple(at))
        return tuple(found)

    def _days(self, rows: Any) -> dict[str, tuple[date, date]]:
        """Return the first and the last day of rows that aggregates add up."""
        days = {}
        for of in self._aggregates:
            found = rows.get(of.source, ())
            at = 3 + row_table(of.source).columns.index(of.at) if found else 0
            has_instants = datetime in types_of(dict(fields_of(of.source))[of.at])
            values = [row[at] for row in found if row[at] is not None]
            dated = [instant_of(value).date() if has_instants else day_of(value) for value in values]
            if dated:
                days[of.name] = (min(dated), max(dated))
        return days
