"""The transactions of erasures: the steps of each, in lock order."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from core.ledger.erasure.found import FoundPiece
from core.letters.store.letters import move_steps
from core.model.events import Partition
from core.model.letters import LetterMove
from core.model.rows import row_table
from core.model.spans import SequenceNumber
from core.settle.erased import SubjectKey
from core.store.columns import instant_text, numbers_json, span_values, whole_number
from core.store.rows import in_table_order
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


def piece_script(stream_id: int, erase: Erase, ending: Ending, ahead: Advance) -> Script:
    """Return the transaction of a piece: partition, rows, retracted rows, letters, and its task."""
    place = {"stream_id": stream_id, "partition_id": erase.partition.partition_id}
    piece, conflict = erase.piece, ending.conflict
    numbers = {**place, "sequence_numbers": numbers_json(piece.letters)}
    steps = [Step("lock_partition", place), *_row_steps(place, erase, conflict)]
    if piece.letters:
        steps.append(Step("blank_letters", numbers, expect=len(piece.letters), otherwise=conflict))
        steps += move_steps(_discard(erase, ending), stream_id)[1:]
        steps.append(Step("blank_attempts", numbers))
    if piece.staged:
        steps.append(Step("delete_staged_of", {**place, "staged": numbers_json(piece.staged)}))
    if erase.is_first:
        steps.append(_note_step(place, erase, ending))
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


def _row_steps(place: dict[str, Any], erase: Erase, conflict: Callable[[], Exception]) -> list[Step]:
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


def _discard(erase: Erase, ending: Ending) -> LetterMove:
    at, letters = ending.at, erase.piece.letters
    return LetterMove("discard", erase.partition, letters, str(ending.task_id), at, at, erase.by, WHY_ERASED)


def _note_step(place: dict[str, Any], erase: Erase, ending: Ending) -> Step:
    values = {
        **place,
        "hashes": json.dumps([[erase.key.hash_of(one)] for one in erase.subjects]),
        "key_hash": erase.key.name,
        "until_sequence_number": erase.until,
        "erased_by": str(ending.task_id),
        "erased_at": instant_text(ending.at),
    }
    return Step("add_erased_subjects", values)


def subjects_json(subjects: Sequence[str]) -> str:
    """Return subjects as JSON: each as a text, and as a number if it is one."""
    return json.dumps([(one, whole_number(one)) for one in subjects])
