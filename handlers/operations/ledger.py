"""The ledger: where one sequence number went."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from core.ledger.explain import Explanation, LedgerRange, NotedGap, Outcome, WrittenRow, explain
from handlers.desk import desk
from handlers.operation import (
    Answered,
    Call,
    Nothing,
    NumberText,
    Operation,
    PartitionText,
    Shape,
    number_of,
    partition_of,
)
from handlers.operations.letters import AttemptAnswer, LetterAnswer, history_of, letter_answer
from handlers.problems import NOT_FOUND, not_found

MOST_TEXT = 2_000  # characters of a value of a row that are shown


class NumberPath(Shape):
    """One sequence number of one partition."""

    partition_id: PartitionText
    sequence_number: NumberText


class RangeAnswer(Answered):
    """One row of the ledger; `invocation_id` of a replay is its `job_id`."""

    commit_number: int
    kind: str
    first: str
    last: str
    written: int
    filtered: int
    dead_lettered: int
    held: int
    absent: int
    rows_written: int
    transform_version: str
    invocation_id: str
    committed_at: datetime


class GapAnswer(Answered):
    """A gap that the number lies in."""

    first: str
    last: str
    status: str
    found_at: datetime
    attempts: int


class WrittenRowAnswer(Answered):
    """A row that carries the number."""

    table: str
    ordinal: int | None
    commit_number: int
    columns: dict[str, Any]


class ExplanationAnswer(Answered):
    """Where a number went: in one word, in one sentence, and with all that shows it. `changes` are
    the replays and retries that touched it since, the newest first. New words may be added."""

    partition_id: str
    sequence_number: str
    outcome: Outcome
    sentence: str
    checkpoint: str
    first: str | None
    range: RangeAnswer | None
    rows: list[WrittenRowAnswer]
    letter: LetterAnswer | None
    history: list[AttemptAnswer]
    gap: GapAnswer | None
    changes: list[RangeAnswer]


def explain_number(call: Call[NumberPath, Nothing, Nothing]) -> ExplanationAnswer:
    """Where did it go?"""
    partition_id = partition_of(call.path.partition_id)
    number = number_of(call.path.sequence_number, "sequence_number")
    found = explain(partition_id, number, desk().store.explaining)
    if found is None:
        raise not_found("partition_id", f"partition {partition_id} has no commit: nothing is known of its numbers")
    return _explanation(found)


def _explanation(given: Explanation) -> ExplanationAnswer:
    found = given.found
    return ExplanationAnswer(
        partition_id=given.partition_id,
        sequence_number=str(given.sequence_number),
        outcome=given.outcome,
        sentence=given.sentence,
        checkpoint=str(found.checkpoint),
        first=None if found.first is None else str(found.first),
        range=_range(found.range) if found.range and given.sequence_number <= found.range.last else None,
        rows=[_row(row) for row in found.rows],
        letter=None if found.letter is None else letter_answer(found.letter.letter),
        history=[] if found.letter is None else history_of(found.letter),
        gap=None if found.gap is None else GapAnswer(**_with_texts(found.gap)),
        changes=[_range(change) for change in found.changes],
    )


def _range(given: LedgerRange) -> RangeAnswer:
    return RangeAnswer(**_with_texts(given))


def _with_texts(given: LedgerRange | NotedGap) -> dict[str, Any]:
    return {**asdict(given), "first": str(given.first), "last": str(given.last)}


def _row(row: WrittenRow) -> WrittenRowAnswer:
    columns = {name: _shown(value) for name, value in row.columns.items()}
    return WrittenRowAnswer(table=row.table, ordinal=row.ordinal, commit_number=row.commit_number, columns=columns)


def _shown(value: object) -> object:
    """Whole numbers as strings when JavaScript would round them; long texts cut."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**53:
        return str(value)
    return value[:MOST_TEXT] if isinstance(value, str) else value


OPERATIONS = (
    Operation(
        "explain_number",
        "Where one sequence number went",
        explain_number,
        {200: ExplanationAnswer},
        path=NumberPath,
        problems=(NOT_FOUND,),
        tag="ledger",
    ),
)
