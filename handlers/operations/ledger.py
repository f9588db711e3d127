"""Explain where one sequence number went, and find the commits of a time and the places of a key."""

from datetime import datetime, timedelta
from functools import partial
from typing import Any

from core.api.operation import Call, Number, cursor_of, key_of, operation, query_of
from core.api.problems import NOT_FOUND, not_found
from core.ledger.explain import (
    Before,
    Explanations,
    KeyPlace,
    KeySearch,
    NotedGap,
    Outcome,
    WrittenRow,
    explain,
    find_places,
    first_commit_since,
    sentence_of,
)
from core.ledger.store import Ledger
from core.ledger.totals import LedgerRange
from core.letters.listing import PartitionKeyText
from core.model.events import PartitionId, SequenceNumber, Span, span
from core.model.property_values import readable
from core.model.shapes import (
    Answered,
    Cursor,
    Instant,
    Nothing,
    NumberText,
    PartitionText,
    Shape,
    number_of,
    shape_of,
    utc,
    written,
)
from core.purge.store import Purges
from handlers.app import CLOCK, app
from handlers.operations.audits import audit_store
from handlers.operations.letters import (
    AttemptAnswer,
    LetterAnswer,
    LettersLimit,
    history_of,
    letter_answer,
)

MOST_TEXT = 2_000  # characters shown of a value of a row
SEARCH_AT_MOST = timedelta(seconds=5)  # of one request; the next page goes on


class NumberPath(Shape):
    """A sequence number of a partition."""

    partition_id: PartitionText
    sequence_number: NumberText


_Range: Any = shape_of(LedgerRange)


class RangeAnswer(_Range):
    """A row of the ledger. In the row of a replay, `invocation_id` is the `job_id`."""


_Gap: Any = shape_of(NotedGap)


class GapAnswer(_Gap):
    """The gap that holds the number."""


_WrittenRow: Any = shape_of(WrittenRow, columns=dict[str, Any])


class WrittenRowAnswer(_WrittenRow):
    """A row that the event of this number became."""


class PurgedAnswer(Answered):
    """The purged part of the partition's ledger: its first `commits`, up to the sequence number `last`. The last purge
    was at `purged_at`."""

    purged_at: datetime
    commits: int
    last: str


class ExplanationAnswer(Answered):
    """The outcome of a number: in one word, in one sentence, and with the evidence. `changes` are the later replays and
    retries of it, the newest first. Only the revealing route has the `rows` and the texts of the letter. New words may
    be added."""

    partition_id: str
    sequence_number: str
    outcome: Outcome
    sentence: str
    checkpoint: str
    first: str
    range: RangeAnswer | None
    rows: list[WrittenRowAnswer] | None
    letter: LetterAnswer | None
    history: list[AttemptAnswer]
    gap: GapAnswer | None
    changes: list[RangeAnswer]
    purged: PurgedAnswer | None

    def quoting(self) -> tuple[str, ...]:
        return ("rows",)


class TimeQuery(Shape):
    """A time, and a partition or all of them."""

    at: Instant
    partition_id: PartitionText | None = None


class CommitAnswer(Answered):
    """The first commit of a partition at or after the time, or null where there is none."""

    partition_id: str
    commit: RangeAnswer | None


class CommitsAnswer(Answered):
    """The commits of a time, by partition."""

    commits: list[CommitAnswer]


class KeyQuery(Shape):
    """A key, which is a partition key or the subject of rows, and a partition or all of them."""

    key: PartitionKeyText
    partition_id: PartitionText | None = None
    cursor: Cursor | None = None
    limit: LettersLimit = 50


_KeyPlace: Any = shape_of(KeyPlace)


class KeyPlaceAnswer(_KeyPlace):
    """A number that carries the key: in its letter, or in rows of these tables."""


class PlacesAnswer(Answered):
    """A page of places, partition by partition, the newest of each first. `next` is the cursor of the page after it,
    null at the end. A search reads for five seconds, so a page with a `next` may be short or empty. `sentence` says
    where it looked, and what it cannot find."""

    places: list[KeyPlaceAnswer]
    next: str | None
    sentence: str


@operation("The first commit of each partition since a time", "ledger")
def find_commits(call: Call[Nothing, TimeQuery, Nothing]) -> CommitsAnswer:
    """Find where the ledger was at a time. Each commit names its sequence numbers."""
    own, at = app(), utc(call.query.at, "at")
    assert at is not None  # it is required
    purges, commits = Purges(own.stream), []

    def read_next(id: PartitionId, after: int) -> LedgerRange | None:
        return next(iter(purges.read_ledger_rows(id, after, 1)), None)

    for id in purges.read_purge_partitions():
        if call.query.partition_id in (None, id):
            last = audit_store(own).read_ledger_ends(id).last_commit
            found = first_commit_since(at, last, partial(read_next, id))
            commits.append(CommitAnswer(partition_id=id, commit=None if found is None else written(RangeAnswer, found)))
    return CommitsAnswer(commits=commits)


@operation("The places of a key: its letters, and rows whose subject it is", "ledger")
def list_places(call: Call[Nothing, KeyQuery, Nothing]) -> PlacesAnswer:
    """List a page of the places of a key."""
    own, query, until = app(), call.query, CLOCK.now() + SEARCH_AT_MOST
    bound_to = query_of(query)
    after: Before | None = None
    if query.cursor is not None:
        partition_id, before = key_of(bound_to, query.cursor, tuple[PartitionText, Number])
        after = PartitionId(partition_id), before
    ids = [id for id in Purges(own.stream).read_purge_partitions() if query.partition_id in (None, id)]
    first = {id: Ledger(own.stream).find_anchor(id) or SequenceNumber(0) for id in ids}
    spans = {id: span(first[id], audit_store(own).read_ledger_ends(id).checkpoint) for id in ids}
    search = KeySearch(spans, query.limit, lambda: CLOCK.now() >= until)

    def read(id: PartitionId, reach: Span) -> tuple[tuple[KeyPlace, ...], int]:
        return Explanations(own.stream, own.transform.row_classes).find_places(query.key, id, reach)

    found, ends = find_places(search, after, read)
    following = None if ends is None else cursor_of(bound_to, ends)
    places = [written(KeyPlaceAnswer, one, tables=list(one.tables)) for one in found]
    return PlacesAnswer(places=places, next=following, sentence=sentence_of(own.transform.row_classes))


@operation("Where one sequence number went; only the revealing address shows its rows", "ledger", problems=(NOT_FOUND,))
def explain_number(call: Call[NumberPath, Nothing, Nothing]) -> ExplanationAnswer:
    """Explain where a number went."""
    partition_id, own = PartitionId(call.path.partition_id), app()
    number = number_of(call.path.sequence_number, "sequence_number")
    given = explain(partition_id, number, Explanations(own.stream, own.transform.row_classes))
    if given is None:
        raise not_found("partition_id", f"partition {partition_id} has no commit yet, so its numbers are unknown")
    found, gone = given.found, given.found.purged
    purged = PurgedAnswer(purged_at=gone.at, commits=gone.commit_number, last=str(gone.last)) if gone.at else None
    return ExplanationAnswer(
        partition_id=given.partition_id,
        sequence_number=str(given.sequence_number),
        outcome=given.outcome,
        sentence=given.sentence,
        checkpoint=str(found.checkpoint),
        first=str(gone.first),
        range=written(RangeAnswer, found.range) if found.range and given.sequence_number <= found.range.last else None,
        rows=[
            written(WrittenRowAnswer, row, columns={name: _shown_column(value) for name, value in row.columns.items()})
            for row in found.rows
        ],
        letter=None if found.letter is None else letter_answer(found.letter.letter),
        history=[] if found.letter is None else history_of(found.letter),
        gap=None if found.gap is None else written(GapAnswer, found.gap),
        changes=[written(RangeAnswer, change) for change in found.changes],
        purged=purged if given.sequence_number <= gone.last else None,
    )


def _shown_column(value: object) -> object:
    """Write whole numbers as strings where JavaScript would round them, and cut long texts."""
    return value[:MOST_TEXT] if isinstance(value, str) else readable(value)
