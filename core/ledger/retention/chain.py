"""The chain of a partition: what was purged from it, in sums and in two hashes; docs/retention.md defines the bytes."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import orjson

from core.model.events import PartitionId, Stream
from core.model.spans import SequenceNumber

BEFORE_FIRST = SequenceNumber(-1)


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One row of the ledger, whole, with its columns in the order of its canonical bytes."""

    commit_number: int
    kind: str
    first: SequenceNumber
    last: SequenceNumber
    written: int
    filtered: int
    dead_lettered: int
    held: int
    absent: int
    rows_written: int
    rows_appended: int
    transform_version: str
    invocation_id: str
    committed_at: datetime
    rows_checksum: int
    ledger_checksum: int


@dataclass(frozen=True, slots=True)
class SettledLetter:
    """A settled letter without its event, with its columns in the order of its canonical bytes. `attempts` counts its
    rows in dead_letter_attempt; the body has `body_bytes`."""

    sequence_number: SequenceNumber
    status: str
    error_class: str
    error_type: str
    fingerprint: str
    transform_version: str
    tries: int
    failed_at: datetime
    settled_at: datetime
    settled_why: str | None
    replay_commit_number: int | None
    attempts: int
    body_bytes: int


@dataclass(frozen=True, slots=True)
class PurgeLink:
    """A link: the sums of all that was purged from a partition so far. The ledger rows up to `commit_number` are gone;
    `letters` were made by batches, `replay_letters` by replays. `rows_hash` runs over the purged rows; `link_hash` is
    of this link and of the one before it."""

    number: int
    purge_id: str
    purged_by: str
    purged_at: datetime
    commit_number: int
    first: SequenceNumber
    last: SequenceNumber
    batches: int
    retries: int
    replays: int
    written: int
    filtered: int
    dead_lettered: int
    held: int
    absent: int
    rows_written: int
    letters: int
    replay_letters: int
    attempts: int
    rows_hash: str
    link_hash: str


OUTCOMES = ("written", "filtered", "dead_lettered", "held", "absent")
KINDS = {"batch": "batches", "retry": "retries", "replay": "replays"}
GROWING = ("commit_number", "last", *KINDS.values(), *OUTCOMES, "rows_written", "letters", "replay_letters", "attempts")
_LINKED = tuple(name for name in PurgeLink.__dataclass_fields__ if name != "link_hash")


def beginning(stream: Stream, incarnation: int, partition_id: PartitionId) -> str:
    """Return the hash before the first link and the first row of a partition."""
    return _sha256(b"", [stream.event_hub, stream.consumer_group, incarnation, partition_id])


_NOTHING = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)  # between the last number and the hashes of a link


def before_first(stream: Stream, incarnation: int, partition_id: PartitionId) -> PurgeLink:
    """Return the link of number 0, which is stored nowhere: nothing is purged."""
    begun = beginning(stream, incarnation, partition_id)
    never, none = datetime(1970, 1, 1, tzinfo=UTC), SequenceNumber(0)
    return PurgeLink(0, "", "", never, 0, none, BEFORE_FIRST, *_NOTHING, begun, begun)


def with_ledger_rows(link: PurgeLink, rows: Sequence[LedgerRow]) -> PurgeLink:
    """Return the sums of a link and of the next rows of the ledger; the caller numbers and signs it."""
    batches = [row for row in rows if row.kind == "batch"]
    counted = {name: getattr(link, name) + sum(getattr(row, name) for row in batches) for name in OUTCOMES}
    counted |= {name: getattr(link, name) + sum(row.kind == kind for row in rows) for kind, name in KINDS.items()}
    return replace(
        link,
        commit_number=rows[-1].commit_number,
        first=link.first if link.batches or not batches else batches[0].first,
        last=batches[-1].last if batches else link.last,
        rows_written=link.rows_written + sum(row.rows_written for row in rows),
        rows_hash=_running(link.rows_hash, "batch_ledger", rows),
        **counted,
    )


def with_letters(link: PurgeLink, letters: Sequence[SettledLetter]) -> PurgeLink:
    """Return the sums of a link and of letters; the caller numbers and signs it."""
    replayed = sum(one.replay_commit_number is not None for one in letters)
    return replace(
        link,
        letters=link.letters + len(letters) - replayed,
        replay_letters=link.replay_letters + replayed,
        attempts=link.attempts + sum(one.attempts for one in letters),
        rows_hash=_running(link.rows_hash, "event_hub_dead_letter", letters),
    )


def linked(before: PurgeLink, sums: PurgeLink, purge_id: str, purged_by: str, at: datetime) -> PurgeLink:
    """Return the link after another one, with its number and its hash."""
    made = replace(sums, number=before.number + 1, purge_id=purge_id, purged_by=purged_by, purged_at=at)
    return replace(made, link_hash=link_hash(before.link_hash, made))


def link_hash(before: str, link: PurgeLink) -> str:
    """Return the hash of a link after the hash of the link before it."""
    return _sha256(bytes.fromhex(before), [_plain(getattr(link, name)) for name in _LINKED])


def row_hash(before: str, table: str, row: LedgerRow | SettledLetter) -> str:
    """Return the running hash after a row of a table."""
    values = [_plain(getattr(row, name)) for name in row.__dataclass_fields__]
    return _sha256(bytes.fromhex(before), [table, *values])


def chain_faults(before: PurgeLink, links: Sequence[PurgeLink]) -> Iterator[tuple[PurgeLink, str]]:
    """Yield each link that does not follow from the one before it, and why."""
    for link in links:
        why = _fault(before, link)
        if why is not None:
            yield link, f"chain link {link.number} {why}"
        before = link


def _fault(before: PurgeLink, link: PurgeLink) -> str | None:
    if link.number != before.number + 1:
        return f"follows link {before.number}"
    if link.link_hash != link_hash(before.link_hash, link):
        return "does not have the hash that its values and the link before it give: it was changed"
    if any(getattr(link, name) < getattr(before, name) for name in GROWING):
        return f"counts less than link {before.number}"
    if link.batches + link.retries + link.replays != link.commit_number:
        return f"counts {link.batches + link.retries + link.replays} ledger rows for {link.commit_number} commits"
    if sum(getattr(link, name) for name in OUTCOMES) != link.last - link.first + 1:
        return f"does not count {link.last - link.first + 1} outcomes for the numbers from {link.first} to {link.last}"
    return None


def _running(before: str, table: str, rows: Sequence[LedgerRow | SettledLetter]) -> str:
    for row in rows:
        before = row_hash(before, table, row)
    return before


def _sha256(before: bytes, values: Sequence[Any]) -> str:
    return hashlib.sha256(before + orjson.dumps(values)).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return value
