"""Explain where a sequence number went, and find the numbers of a time or a key.

No index has the key, so the numbers of each partition are read downwards, some at a time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal, cast

from core.ledger.store import STATUSES, read_purged
from core.ledger.totals import NOT_PURGED, LedgerRange, Purged
from core.letters.listing import LetterChoice, LetterListing, WholeLetter, filter_values
from core.model.commits import GapStatus
from core.model.events import PartitionId, SequenceNumber, Span, span
from core.model.rows import row_table
from core.store.columns import decoded, row_reader, span_values, subjects_json
from core.store.database import OneStream
from core.store.script import of_rows


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """A number that carries the key: the tables that have rows of it, and whether it has a letter."""

    partition_id: PartitionId
    sequence_number: SequenceNumber
    letter: bool
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeySearch:
    """The numbers of each partition to search. A page has at most `most` places, and ends when `is_over` is true."""

    spans: Mapping[PartitionId, Span]
    most: int
    is_over: Callable[[], bool]


Before = tuple[PartitionId, int]  # where a page ends: the next one begins before this number
ReadPlaces = Callable[[PartitionId, Span], tuple[Sequence[KeyPlace], int]]  # the last places, and where they begin


def find_places(search: KeySearch, after: Before | None, read: ReadPlaces) -> tuple[list[KeyPlace], Before | None]:
    """Return the places of a page, the newest of each partition first, and where the next page begins, if any."""
    found: list[KeyPlace] = []
    for id in sorted(search.spans):
        reach = search.spans[id]
        if after is not None and id <= after[0]:  # earlier pages have read these partitions, the last one in part
            reach = span(reach.first, min(reach.last, after[1] - 1) if id == after[0] else reach.first - 1)
        while reach.length > 0:
            places, begins = read(id, reach)
            found += places
            if len(found) >= search.most:
                return found[: search.most], (id, found[search.most - 1].sequence_number)
            if search.is_over():
                return found, (id, begins)
            reach = span(reach.first, begins - 1)
    return found, None


def sentence_of(row_classes: Sequence[type]) -> str:
    """Say in words where a search looks, and what it cannot find."""
    tables = [row_table(one) for one in row_classes]
    declared = [f"{one.name}.{one.subject}" for one in tables if one.subject]
    others = ", ".join(one.name for one in tables if not one.subject)
    looked = " and in ".join(["the partition keys of letters", *([", ".join(declared)] if declared else [])])
    hidden = ["an event that was filtered", "a letter whose event was sent with a different partition key or none"]
    if any(one.key for one in tables):
        hidden.append("an event whose state a newer event has replaced")
    if others:
        hidden.append(f"a row of {others}, because no subject is declared there")
    return f"Searched in {looked}. Such a search cannot find {', or '.join(hidden)}."


ReadNext = Callable[[int], LedgerRange | None]  # the next row of a partition's ledger after a commit


def first_commit_since(at: datetime, last_commit: int, read_next: ReadNext) -> LedgerRange | None:
    """Return the first commit at or after a time, or None: there is none. It takes a seek for each halving of the
    commits. Commits of two hosts may be out of order by the moment between their time and their end."""
    before, last = 0, last_commit
    found: LedgerRange | None = None
    while before < last:
        middle = (before + last) // 2
        row = read_next(middle)
        if row is None or row.commit_number > last:
            last = middle
        elif row.committed_at >= at:
            found, last = row, middle
        else:
            before = row.commit_number
    return found


MOST_CHANGES = 100


@dataclass(frozen=True, slots=True)
class NotedGap:
    """A gap that a number is part of."""

    first: SequenceNumber
    last: SequenceNumber
    status: GapStatus
    found_at: datetime
    attempts: int


@dataclass(frozen=True, slots=True)
class WrittenRow:
    """A row that carries the number. `ordinal` counts the appended rows of an event, and is None for a state."""

    table: str
    ordinal: int | None
    commit_number: int
    columns: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """The facts that the store has about a number. `range` is the last range that begins at or before the number, and
    may end before it. `changes` are the later replays and retries that touched the number, the newest first. `purged`
    says how far the partition is purged. `erased` counts rows that an erasure took away."""

    checkpoint: SequenceNumber
    range: LedgerRange | None
    changes: tuple[LedgerRange, ...]
    letter: WholeLetter | None
    gap: NotedGap | None
    rows: tuple[WrittenRow, ...]
    states_declared: bool
    purged: Purged = NOT_PURGED
    erased: int = 0


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


class Explanations:
    """Reads everything that is known about one sequence number of a stream."""

    def __init__(self, stream: OneStream, row_classes: tuple[type, ...]) -> None:
        self._stream = stream
        self._row_classes = row_classes
        self._letters = LetterListing(stream)

    def find_whereabouts(self, partition_id: PartitionId, number: SequenceNumber) -> Whereabouts | None:
        """Return the facts about a number, or None for a partition without a commit.

        States have no index by number, so whole tables are read.
        """
        checkpoint = self._stream.ask("read_checkpoint", partition_id=partition_id)
        if not checkpoint:
            return None
        position = {"partition_id": partition_id, "sequence_number": number}
        found = decoded(LedgerRange, self._stream.ask("find_range", **position))
        changes = decoded(LedgerRange, self._stream.ask("find_changes", **position, most=MOST_CHANGES))
        gaps = decoded(NotedGap, self._stream.ask("find_gap", **position))
        written = []
        for row_class in self._row_classes:
            for ordinal, commit_number, *columns in self._stream.ask(of_rows("select_placed", row_class), **position):
                row = asdict(cast(Any, row_reader(row_class)(tuple(columns))))
                written.append(WrittenRow(row_table(row_class).name, ordinal, commit_number, row))
        return Whereabouts(
            checkpoint=checkpoint[0][0],
            range=found[0] if found else None,
            changes=changes,
            gap=next((gap for gap in gaps if gap.last >= number), None),
            letter=self._letters.read_letter(partition_id, number),
            rows=tuple(written),
            states_declared=any(row_table(row_class).key for row_class in self._row_classes),
            purged=read_purged(self._stream, partition_id),
            erased=self._stream.ask("count_erased", **position)[0][0],
        )

    def find_places(self, key: str, partition_id: PartitionId, reach: Span) -> tuple[tuple[KeyPlace, ...], int]:
        """Return the places of a key among the last numbers of a range, newest first, and where these numbers begin.

        It reads what an erasure of this subject reads, by the same index, and not the bodies of letters.
        """
        place, begins = {"partition_id": partition_id}, max(reach.first, reach.last - LOOKED_AT + 1)
        wanted = filter_values(LetterChoice(partition_id=partition_id, partition_key=key))
        walk = {"walked_to": reach.last + 1, "first_sequence_number": begins, "most": LETTERS_LOOKED_AT}
        sources = f",{','.join(STATUSES)},"
        walked = self._stream.ask("walk_down", **wanted, **walk, sources=sources, unchanged_since=None)
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


def explain(partition_id: PartitionId, number: SequenceNumber, store: Explanations) -> Explanation | None:
    """READ everything that is known about a number and DECIDE its outcome. None: the partition has no commit."""
    found = store.find_whereabouts(partition_id, number)
    if found is None:
        return None
    outcome, sentence = _outcome(number, found)
    return Explanation(partition_id, number, outcome, sentence, found)


def _outcome(number: SequenceNumber, found: Whereabouts) -> tuple[Outcome, str]:
    if number > found.checkpoint:
        after = f"It is {number - found.checkpoint:,} after the checkpoint at {found.checkpoint:,}"
        is_open = found.gap is not None and found.gap.status == "open"
        fetched = "; the gap that it is part of is being fetched from the hub" if is_open else ""
        return "not_yet", f"{after}, so it is not committed yet{fetched}."
    if number < found.purged.first:
        return "before_first", "It is before the first number of the ledger: the stream was anchored later."
    if number <= found.purged.last:
        evident = _evident(found)
        if evident is None and found.gap is not None and found.gap.status == "absent":
            lost = f"The hub no longer had it: numbers {found.gap.first} to {found.gap.last} are absent."
            evident = "absent", lost
        filtered = "it was filtered, it wrote a state that a newer event has replaced, or its letter was purged too"
        outcome, sentence = evident or ("purged", f"It has neither a row nor a letter: {filtered}.")
        gone = f"Its ledger row was purged: those up to number {found.purged.last} are gone"
        return outcome, f"{sentence} {gone}, the last on {found.purged.at:%Y-%m-%d %H:%M} UTC."
    if found.range is None or number > found.range.last:
        return "missing", "No range of the ledger covers it: the books are not balanced."
    evident = _evident(found)
    if evident is not None:
        return evident
    deciding = _deciding(found.changes)
    if found.gap is not None and found.gap.status == "absent" and not (deciding and deciding[-1].absent == 0):
        lost = f"The hub no longer had it: numbers {found.gap.first} to {found.gap.last} are absent"
        able = [one for one in deciding if {*_possible(one, found.states_declared)} & {"written", "filtered"}]
        if able:  # the newest replay that may have included this event: it replayed only the staged events of its range
            lost = f"{lost}; commit {able[0].commit_number}, a replay, had only some events of its range, and may have"
            lost = f"{lost} left no row for this event"
        return "absent", f"{lost}."
    return _without_trace(found)


def _evident(found: Whereabouts) -> tuple[Outcome, str] | None:
    """Return the outcome that a letter, a row or the place of an erased row shows."""
    if found.letter is not None and found.letter.letter.erased_by is not None:
        return "erased", "An erasure blanked its letter, and keeps it forgotten."
    if found.letter is not None and found.letter.letter.status != "resolved":
        letter = found.letter.letter
        if letter.status == "held":
            return (
                "held",
                f"It was not tried yet: it waits for letter {letter.held_behind} of its partition key.",
            )
        last = "the app does not try it again: retry or discard its dead letter"
        then = last if letter.status == "exhausted" else f"its dead letter is {letter.status}"
        return "dead_lettered", f"It failed in {_count(letter.attempts, 'attempt')}, and {then}."
    if found.rows:
        number, kinds = found.rows[0].commit_number, {change.commit_number: change.kind for change in found.changes}
        commit = f"ommit {number}{_KINDS[kinds.get(number, 'batch')]}"
        commit = f"C{commit}" if found.letter is None else f"It was a dead letter; c{commit}"
        return "written", f"{commit} wrote {_count(len(found.rows), 'row')} of it."
    if found.erased:
        return "erased", f"An erasure took away {_count(found.erased, 'row')} of it, and keeps it forgotten."
    return None


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


def _without_trace(found: Whereabouts) -> tuple[Outcome, str]:
    """Explain a number without an open letter or a row: filtered, absent, held, or written as a replaced state."""
    asked = _deciding(found.changes)
    if found.range is not None and found.letter is None and not (asked and asked[-1].absent == 0):
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
    if of.absent == of.last - of.first + 1 and of.kind == "batch":  # any other absent number is in a gap that says so
        yield "absent"


_KINDS = {"batch": "", "retry": ", a retry,", "replay": ", a replay,"}
_SENTENCES: Mapping[Outcome, str] = {
    "written": "Commit {commit}{kind} wrote it as a state, which a newer event has replaced since.",
    "filtered": "Commit {commit}{kind} filtered it: the transform returned no row for it.",
    "absent": "Commit {commit} found that the hub no longer has it.",
}


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


LOOKED_AT = 10_000  # numbers that one piece of a search reads
LETTERS_LOOKED_AT = 1_000
