"""Explain the outcome of one sequence number from everything that the store knows about it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from core.ledger.store.ledger import Explanations
from core.ledger.whereabouts import LedgerRange, Purged, Whereabouts
from core.model.events import PartitionId
from core.model.spans import SequenceNumber

ERASED_LETTER = "erased"  # in place of the type of the error
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
    "purged",
    "erased",
]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The outcome of a number, in one word and in one sentence, and the evidence."""

    partition_id: PartitionId
    sequence_number: SequenceNumber
    outcome: Outcome
    sentence: str
    found: Whereabouts


def explain(partition_id: PartitionId, number: SequenceNumber, store: Explanations) -> Explanation | None:
    """READ everything that is known about a number and DECIDE its outcome; None for a partition without a commit."""
    found = store.find_whereabouts(partition_id, number)
    if found is None:
        return None
    outcome, sentence = _outcome(number, found)
    return Explanation(partition_id, number, outcome, sentence, found)


def _outcome(number: SequenceNumber, found: Whereabouts) -> tuple[Outcome, str]:
    if number > found.checkpoint:
        after = f"It is {number - found.checkpoint} after the checkpoint at {found.checkpoint}"
        return "not_yet", f"{after}, so it is not committed yet{_open(found)}."
    if number < found.purged.first:
        return "before_first", "It is before the first number of the ledger: the stream was anchored later."
    if number <= found.purged.last:
        outcome, sentence = _outcome_of_purged(found)
        return outcome, f"{sentence} {_purged(found.purged)}"
    if found.range is None or number > found.range.last:
        return "missing", "No range of the ledger covers it: the books are not balanced."
    evident = _evident(found)
    if evident is not None:
        return evident
    deciding = _deciding(found.changes)
    if found.gap is not None and found.gap.status == "absent" and not _is_decided(deciding):
        lost = f"The hub no longer had it: numbers {found.gap.first} to {found.gap.last} are absent"
        return "absent", f"{lost}{_perhaps_since(deciding, found.states_declared)}."
    return _without_trace(found)


def _evident(found: Whereabouts) -> tuple[Outcome, str] | None:
    """Return the outcome that a letter, a row or the place of an erased row shows."""
    if found.letter is not None and found.letter.letter.error_type == ERASED_LETTER:
        return "erased", "An erasure blanked its letter, and keeps it forgotten."
    if found.letter is not None and found.letter.letter.status != "resolved":
        letter = found.letter.letter
        if letter.status == "held":
            return (
                "held",
                f"It was not tried yet: it waits for letter {letter.held_behind} of its partition key.",
            )
        stands = " that nothing retries any more" if letter.status == "exhausted" else f", {letter.status}"
        return "dead_lettered", f"It is a dead letter{stands}, after {_count(letter.attempts, 'attempt')}."
    if found.rows:
        return "written", f"{_writing(found)} wrote {_count(len(found.rows), 'row')} of it."
    if found.erased:
        return "erased", f"An erasure took away {_count(found.erased, 'row')} of it, and keeps it forgotten."
    return None


def _outcome_of_purged(found: Whereabouts) -> tuple[Outcome, str]:
    """Explain a number whose range was purged by the letter, the rows or the gap that still exist."""
    evident = _evident(found)
    if evident is not None:
        return evident
    if found.gap is not None and found.gap.status == "absent":
        return "absent", f"The hub no longer had it: numbers {found.gap.first} to {found.gap.last} are absent."
    text = "It has neither a row nor a letter: it was filtered, it wrote a state that a newer event has replaced, or"
    return "purged", f"{text} its letter was purged too."


def _purged(purged: Purged) -> str:
    gone = f"Its ledger row was purged: those up to number {purged.last} are gone"
    return f"{gone}, the last on {purged.at:%Y-%m-%d %H:%M} UTC."


def _open(found: Whereabouts) -> str:
    is_open = found.gap is not None and found.gap.status == "open"
    return "; the gap that it is part of is being fetched from the hub" if is_open else ""


def _perhaps_since(deciding: Sequence[LedgerRange], states_declared: bool) -> str:
    """Name the newest replay that may have included this event: it replayed only the staged events of its range."""
    able = [one.commit_number for one in deciding if set(_possible(one, states_declared)) & {"written", "filtered"}]
    some = "had only some events of its range, and may have left no row for this event"
    return f"; commit {able[0]}, a replay, {some}" if able else ""


def _writing(found: Whereabouts) -> str:
    number = found.rows[0].commit_number
    kinds = {change.commit_number: change.kind for change in found.changes}
    writing = f"ommit {number}{_KINDS[kinds.get(number, 'batch')]}"
    return f"C{writing}" if found.letter is None else f"It was a dead letter; c{writing}"


def _deciding(changes: Sequence[LedgerRange]) -> list[LedgerRange]:
    """Return the newest changes, down to the first that covered every event of its range: it replaced all older
    outcomes."""
    deciding = []
    for change in changes:
        if change.absent < change.last - change.first + 1:  # else it covered no event of its range
            deciding.append(change)
        if change.absent == 0:
            break
    return deciding


def _is_decided(changes: Sequence[LedgerRange]) -> bool:
    return bool(changes) and changes[-1].absent == 0


def _without_trace(found: Whereabouts) -> tuple[Outcome, str]:
    """Explain a number without an open letter or a row: filtered, absent, held, or written as a replaced state."""
    asked = _deciding(found.changes)
    if found.range is not None and found.letter is None and not _is_decided(asked):
        asked.append(found.range)
    by_outcome = {outcome: one for one in reversed(asked) for outcome in _possible(one, found.states_declared)}
    if len(by_outcome) == 1:
        ((outcome, of),) = by_outcome.items()
        return outcome, _SENTENCES[outcome].format(commit=of.commit_number, kind=_KINDS[of.kind])
    if by_outcome and set(by_outcome) <= {"written", "filtered"}:
        text = "It was filtered, or wrote a state that a newer event has replaced; a dry run of a replay shows which."
        return "written_or_filtered", text
    named = ", ".join(f"{one.commit_number}" for one in asked)
    having = f"The ledger has it in commit {named}" if named else "The ledger has it"
    return "missing", f"{having}, but neither a row nor a letter shows its outcome."


def _possible(of: LedgerRange, states_declared: bool) -> Iterator[Outcome]:
    """Yield the outcomes that a range allows for an event without a row or a letter."""
    if of.written and states_declared:
        yield "written"
    if of.filtered:
        yield "filtered"
    if of.held:
        yield "held"
    if of.absent == of.last - of.first + 1 and of.kind == "batch":  # any other absent number is in a gap that says so
        yield "absent"


_KINDS = {"batch": "", "retry": ", a retry,", "replay": ", a replay,"}
_SENTENCES: Mapping[Outcome, str] = {
    "written": "Commit {commit}{kind} wrote it as a state, which a newer event has replaced since.",
    "filtered": "Commit {commit}{kind} filtered it: the transform returned no row for it.",
    "held": "Commit {commit} holds it until an earlier letter of its key is settled.",
    "absent": "Commit {commit} found that the hub no longer has it.",
}


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
