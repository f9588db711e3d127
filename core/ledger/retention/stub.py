"""The stub of a partition: sums and hashes of the rows purged from it. docs/retention.md compares an archive with it.

A hash is SHA-256 of canonical bytes, the same on both engines: the values of a row in the order of its class below, as
a JSON array in UTF-8 without white space. Only `"`, the backslash and control characters are escaped, a time is
`YYYY-MM-DDTHH:MM:SS.ffffffZ` in UTC, and a missing value is null. The hash before the first row of a ledger is that of
`[event_hub, consumer_group, incarnation, partition_id]`; each later one is of the 32 bytes before it and the row.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import reduce
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
class PurgeStub:
    """Sums over all rows that were purged from a partition. `pieces` transactions deleted them, the last of `purge_id`.

    The ledger rows up to `commit_number` are gone; `letters` were made by batches, `replay_letters` by replays.
    `ledger_hash` runs over these ledger rows, `letters_hash` is the sum of the letters' hashes, and `stub_hash` is of
    the stub itself.
    """

    pieces: int
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
    ledger_hash: str
    letters_hash: str
    stub_hash: str


OUTCOMES = ("written", "filtered", "dead_lettered", "held", "absent")
KINDS = {"batch": "batches", "retry": "retries", "replay": "replays"}
_HASHED = tuple(name for name in PurgeStub.__dataclass_fields__ if name != "stub_hash")
_NEVER, _NONE = datetime(1970, 1, 1, tzinfo=UTC), SequenceNumber(0)
_NO_SUMS = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)  # between the last number and the hashes of a stub


def nothing_purged(stream: Stream, incarnation: int, partition_id: PartitionId) -> PurgeStub:
    """Return the stub of a partition before its first purge, which is stored nowhere."""
    begun = _sha256(b"", [stream.event_hub, stream.consumer_group, incarnation, partition_id])
    return PurgeStub(0, "", "", _NEVER, 0, _NONE, BEFORE_FIRST, *_NO_SUMS, begun, f"{0:064x}", "")


def with_ledger_rows(stub: PurgeStub, rows: Sequence[LedgerRow]) -> PurgeStub:
    """Add the next rows of the ledger to the sums of a stub. `signed` completes it."""
    batches = [row for row in rows if row.kind == "batch"]
    counted = {name: getattr(stub, name) + sum(getattr(row, name) for row in batches) for name in OUTCOMES}
    counted |= {name: getattr(stub, name) + sum(row.kind == kind for row in rows) for kind, name in KINDS.items()}
    return replace(
        stub,
        commit_number=rows[-1].commit_number,
        first=stub.first if stub.batches or not batches else batches[0].first,
        last=batches[-1].last if batches else stub.last,
        rows_written=stub.rows_written + sum(row.rows_written for row in rows),
        ledger_hash=reduce(row_hash, rows, stub.ledger_hash),
        **counted,
    )


def with_letters(stub: PurgeStub, letters: Sequence[SettledLetter]) -> PurgeStub:
    """Add letters to the sums of a stub. `signed` completes it."""
    replayed = sum(one.replay_commit_number is not None for one in letters)
    return replace(
        stub,
        letters=stub.letters + len(letters) - replayed,
        replay_letters=stub.replay_letters + replayed,
        attempts=stub.attempts + sum(one.attempts for one in letters),
        letters_hash=reduce(letters_hash, letters, stub.letters_hash),
    )


def signed(sums: PurgeStub, purge_id: str, purged_by: str, at: datetime) -> PurgeStub:
    """Return the stub with these sums after one more piece: it names the purge, and has its hash."""
    made = replace(sums, pieces=sums.pieces + 1, purge_id=purge_id, purged_by=purged_by, purged_at=at)
    return replace(made, stub_hash=stub_hash(made))


def stub_hash(stub: PurgeStub) -> str:
    """Return the hash of a stub."""
    return _sha256(b"", [_plain(getattr(stub, name)) for name in _HASHED])


def row_hash(before: str, row: LedgerRow) -> str:
    """Return the running hash after the next row of the ledger."""
    return _sha256(bytes.fromhex(before), _values_of(row))


def letters_hash(before: str, letter: SettledLetter) -> str:
    """Return the sum of the letters' hashes with one more letter; their order does not count."""
    return f"{(int(before, 16) + int(_sha256(b'', _values_of(letter)), 16)) % 2**256:064x}"


def stub_fault(stub: PurgeStub) -> str | None:
    """Return why a stub does not agree with itself, or None."""
    if stub.stub_hash != stub_hash(stub):
        return "does not have the hash that its values give: it was changed"
    rows, numbers = stub.batches + stub.retries + stub.replays, stub.last - stub.first + 1
    if rows != stub.commit_number:
        return f"counts {rows} ledger rows for {stub.commit_number} commits"
    if sum(getattr(stub, name) for name in OUTCOMES) != numbers:
        return f"does not count {numbers} outcomes for the numbers from {stub.first} to {stub.last}"
    return None


def _values_of(row: LedgerRow | SettledLetter) -> list[Any]:
    return [_plain(getattr(row, name)) for name in row.__dataclass_fields__]


def _sha256(before: bytes, values: Sequence[Any]) -> str:
    return hashlib.sha256(before + orjson.dumps(values)).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return value
