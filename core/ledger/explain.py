"""Explain: where one sequence number went, from everything that the store knows of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from core.letters.listing import WholeLetter
from core.model.commits import GapStatus
from core.model.events import PartitionId
from core.model.spans import SequenceNumber

MOST_ROWS, MOST_CHANGES = 100, 100

Outcome = Literal[
    "not_yet",
    "before_first",
    "missing",
    "written",
    "filtered",
    "dead_lettered",
    "held",
    "absent",
    "written_or_filtered",
]


@dataclass(frozen=True, slots=True)
class LedgerRange:
    """One row of the ledger."""

    commit_number: int
    kind: Literal["batch", "retry", "replay"]
    first: SequenceNumber
    last: SequenceNumber
    written: int
    filtered: int
    dead_lettered: int
    held: int
    absent: int
    rows_written: int
    transform_version: str
    invocation_id: str
    committed_at: datetime


@dataclass(frozen=True, slots=True)
class NotedGap:
    """A gap that a number lies in."""

    first: SequenceNumber
    last: SequenceNumber
    status: GapStatus
    found_at: datetime
    attempts: int


@dataclass(frozen=True, slots=True)
class WrittenRow:
    """A row that carries the number; `ordinal` counts an event's appended rows, None is a state."""

    table: str
    ordinal: int | None
    commit_number: int
    columns: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """What the store knows of a number. `range` is the last one that begins at or before it: it may end before it.
    `changes` are the replays and retries that touched it since, the newest first."""

    checkpoint: SequenceNumber
    first: SequenceNumber | None
    range: LedgerRange | None
    changes: tuple[LedgerRange, ...]
    letter: WholeLetter | None
    gap: NotedGap | None
    rows: tuple[WrittenRow, ...]
    states_declared: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where a number went, in one word, in one sentence, and with all that shows it."""

    partition_id: PartitionId
    sequence_number: SequenceNumber
    outcome: Outcome
    sentence: str
    found: Whereabouts


class ExplanationStore(Protocol):
    """What a store knows of one number."""

    def find_whereabouts(self, partition_id: PartitionId, number: SequenceNumber) -> Whereabouts | None:
        """All of it; None for a partition without a commit. States have no index by number: their tables are read."""
        ...


def explain(partition_id: PartitionId, number: SequenceNumber, store: ExplanationStore) -> Explanation | None:
    """READ what is known of a number and DECIDE what that means; None for a partition without a commit."""
    found = store.find_whereabouts(partition_id, number)
    if found is None:
        return None
    outcome, sentence = _outcome(number, found)
    return Explanation(partition_id, number, outcome, sentence, found)


def _outcome(number: SequenceNumber, found: Whereabouts) -> tuple[Outcome, str]:
    if number > found.checkpoint:
        return (
            "not_yet",
            f"It lies {number - found.checkpoint} behind the checkpoint at {found.checkpoint}{_open(found)}.",
        )
    if found.first is None or number < found.first:
        return "before_first", "The ledger begins behind it: the stream was anchored later."
    if found.range is None or number > found.range.last:
        return "missing", "No range of the ledger has it: the books are not balanced."
    if found.letter is not None and found.letter.letter.status != "resolved":
        letter = found.letter.letter
        return "dead_lettered", f"It is a dead letter, {letter.status}, after {_count(letter.attempts, 'attempt')}."
    if found.rows:
        return "written", f"{_before(found)}ommit {found.rows[0].commit_number} wrote {_what(found)} of it."
    deciding = _deciding(found.changes)
    if found.gap is not None and found.gap.status == "absent" and not _is_decided(deciding):
        lost = f"The hub no longer had it: numbers {found.gap.first} to {found.gap.last} are absent"
        return "absent", f"{lost}{_perhaps_since(deciding, found.states_declared)}."
    return _without_trace(found)


def _open(found: Whereabouts) -> str:
    is_open = found.gap is not None and found.gap.status == "open"
    return ", in a gap that is being fetched" if is_open else ""


def _perhaps_since(deciding: Sequence[LedgerRange], states_declared: bool) -> str:
    """Replays had a part of their range out of staged events, and which part is not known here."""
    able = [one.commit_number for one in deciding if set(_possible(one, states_declared)) & {"written", "filtered"}]
    return f"; commit {able[0]} had a part of its range again, and may have left no row of it" if able else ""


def _before(found: Whereabouts) -> str:
    return "C" if found.letter is None else "It was a dead letter; c"


def _what(found: Whereabouts) -> str:
    kinds = {change.commit_number: change.kind for change in found.changes}
    kind = kinds.get(found.rows[0].commit_number, "batch")
    return f"{_count(len(found.rows), 'row')}{'' if kind == 'batch' else f', in a {kind},'}"


def _deciding(changes: Sequence[LedgerRange]) -> list[LedgerRange]:
    """The newest changes, down to one that had every event of its range: what it made of a number stands since."""
    deciding = []
    for change in changes:
        if change.absent < change.last - change.first + 1:  # else it came too late for all of them
            deciding.append(change)
        if change.absent == 0:
            break
    return deciding


def _is_decided(changes: Sequence[LedgerRange]) -> bool:
    return bool(changes) and changes[-1].absent == 0


def _without_trace(found: Whereabouts) -> tuple[Outcome, str]:
    """Neither open letter nor row: filtered, absent, held, or written as states that newer ones have replaced."""
    asked = _deciding(found.changes)
    if found.range is not None and found.letter is None and not _is_decided(asked):
        asked.append(found.range)
    by_outcome = {outcome: one for one in reversed(asked) for outcome in _possible(one, found.states_declared)}
    if len(by_outcome) == 1:
        ((outcome, of),) = by_outcome.items()
        return outcome, _SENTENCES[outcome].format(commit=of.commit_number, kind=_KINDS[of.kind])
    if by_outcome and set(by_outcome) <= {"written", "filtered"}:
        text = "Either it became no row, or a state that a newer event's has replaced; a dry run of a replay tells."
        return "written_or_filtered", text
    named = ", ".join(f"{one.commit_number}" for one in asked) or "of no number"
    return "missing", f"Commit {named} has its number, and neither a row nor a letter shows what became of it."


def _possible(of: LedgerRange, states_declared: bool) -> Iterator[Outcome]:
    """What a range says that an event without row and letter may have become."""
    if of.written and states_declared:
        yield "written"
    if of.filtered:
        yield "filtered"
    if of.held:
        yield "held"
    if of.absent == of.last - of.first + 1 and of.kind == "batch":  # others lie in a gap that says so
        yield "absent"


_KINDS = {"batch": "", "retry": ", a retry,", "replay": ", a replay,"}
_SENTENCES: Mapping[Outcome, str] = {
    "written": "Commit {commit}{kind} wrote it as a state; a newer event's has replaced that since.",
    "filtered": "Commit {commit}{kind} filtered it: the transform rightly made no row of it.",
    "held": "Commit {commit} holds it behind an earlier letter of its key.",
    "absent": "Commit {commit} found that the hub no longer has it.",
}


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
