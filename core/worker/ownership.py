"""SqlCheckpointStore: the SDK's checkpoint store on our own tables, so that consumers share partitions without blobs.

Contract: azure.eventhub.aio.CheckpointStore of azure-eventhub 5.15. Beyond its documentation, the SDK compares
`last_modified_time` as float seconds since the epoch. It iterates returned lists repeatedly and mutates their dicts, so
each call makes fresh ones. An offset must come back as text, because the SDK takes a number for a sequence number.

The SDK stops balancing once every owner has the rounded-down share: 8 partitions may stay at 4, 2, 2. So an owner with
more than the rounded-up share gives one partition away each time it renews. The SDK of an owner with too few takes it.
"""

import asyncio
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from azure.eventhub.aio import CheckpointStore

from core.model.events import Partition, PartitionId, SequenceNumber, Stream, stream_of
from core.settle.partition_store import Partitions
from core.store.columns import instant_of, instant_text
from core.store.database import Database, read_time, write

Claim = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ownership:
    """The owner of a partition. An empty `owner_id` means that it was released. `etag` changes with every claim."""

    partition: Partition
    owner_id: str
    etag: str
    last_modified_at: datetime


def surplus(standing: Sequence[Ownership], owner_id: str) -> int:
    """Count the partitions of an owner above an even share. A dead owner counts until its partitions are taken."""
    owners = {one.owner_id for one in standing if one.owner_id} | {owner_id}
    share = -(-len(standing) // len(owners))
    return max(0, sum(one.owner_id == owner_id for one in standing) - share)


class Ownerships:
    """The ownerships of partitions, which consumers share outside the Functions host."""

    def __init__(self, database: Database, partitions: Partitions) -> None:
        self._database = database
        self.partitions = partitions

    def read_time(self) -> datetime:
        """Return the time by the clock of the database."""
        return read_time(self._database)

    def read_ownerships(self, stream: Stream) -> tuple[Ownership, ...]:
        """Return every ownership of a stream."""
        found = self._database.ask("read_ownerships", stream_id=self.partitions.open_stream(stream))
        return tuple(
            Ownership(stream.partition(PartitionId(id)), owner_id, etag, instant_of(at))
            for id, owner_id, etag, at in found
        )

    def claim_ownership(self, ownership: Ownership, expected_etag: str | None) -> bool:
        """Write an ownership if the expected etag is still right, or else return False and change nothing.

        The etag of a partition that was never owned is None.
        """
        values = {
            "stream_id": self.partitions.open_stream(ownership.partition.stream),
            "partition_id": ownership.partition.partition_id,
            "owner_id": ownership.owner_id,
            "etag": ownership.etag,
            "last_modified_at": instant_text(ownership.last_modified_at),
        }
        place = str(ownership.partition)
        if expected_etag is None:
            return bool(write(self._database, place, "take_ownership", **values))
        return bool(write(self._database, place, "renew_ownership", **values, expected_etag=expected_etag))

    def read_checkpoints(self, stream: Stream) -> Mapping[PartitionId, tuple[SequenceNumber, str]]:
        """Return the sequence number and the offset of every partition's checkpoint in a stream."""
        found = self._database.ask("read_checkpoints", stream_id=self.partitions.open_stream(stream))
        return {PartitionId(id): (number, offset) for id, number, offset in found}


class SqlCheckpointStore(CheckpointStore):
    """Claims ownership by compare and set on etags. Returns the checkpoints of our transactions, and writes none."""

    def __init__(
        self,
        store: Ownerships,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        """`now` is the clock of this process, with which the SDK compares. Stored times are of the database's clock.

        `beat` is called at the beginning of each balancing.
        """
        self._store = store
        self._now = now
        self._beat = beat
        self._ahead = timedelta()  # of the clock of this process, at the last list
        self._stream_id: int | None = None
        self._begins_anew = False  # the stream has a new incarnation: every partition is read from its beginning
        self._standing: tuple[Ownership, ...] = ()  # the last list: the SDK lists right before it claims
        self._claiming = threading.Lock()
        self._owner: tuple[Stream, str] | None = None
        self._is_released = False

    async def list_ownership(
        self, fully_qualified_namespace: str, eventhub_name: str, consumer_group: str, **kwargs: Any
    ) -> Iterable[Claim]:
        """Return every ownership of the hub and group, including expired and released ones."""
        self._beat()
        names = (fully_qualified_namespace, eventhub_name, consumer_group)
        stream_id = await asyncio.to_thread(self._store.partitions.open_stream, stream_of(*names))
        self._begins_anew = self._begins_anew or self._stream_id not in (None, stream_id)
        self._stream_id = stream_id
        self._standing = await asyncio.to_thread(self._store.read_ownerships, stream_of(*names))
        self._ahead = self._now() - await asyncio.to_thread(self._store.read_time)
        return [self._claim_of(ownership, names) for ownership in self._standing]

    async def claim_ownership(self, ownership_list: Iterable[Claim], **kwargs: Any) -> Iterable[Claim]:
        """Claim, renew or release (an empty owner_id) each partition, and return only those that this owner now has.

        The first call in a new incarnation claims nothing: the SDK then closes its links, and opens them in the next
        round at the checkpoints of the new stream.
        """
        won: list[Claim] = []
        given_away = self._given_away(ownership_list := list(ownership_list))
        if self._begins_anew and any(wanted["owner_id"] for wanted in ownership_list):
            self._begins_anew = False
            return won
        for wanted in ownership_list:
            names = (wanted["fully_qualified_namespace"], wanted["eventhub_name"], wanted["consumer_group"])
            partition = stream_of(*names).partition(PartitionId(wanted["partition_id"]))
            owner_id = "" if wanted is given_away else wanted["owner_id"]
            ownership = self._ownership(partition, owner_id)
            if await asyncio.to_thread(self._write, ownership, wanted.get("etag")) and wanted is not given_away:
                won.append(self._claim_of(ownership, names))
        return won

    async def release_all(self) -> None:
        """Release the partitions that this owner still has, and let no further claim succeed.

        The SDK releases only those that it knows: a claim that it cancelled may have won.
        """

        def release() -> None:
            with self._claiming:
                self._is_released = True
                stream, owner_id = self._owner or (None, "")
                for one in () if stream is None else self._store.read_ownerships(stream):
                    if one.owner_id == owner_id:
                        self._store.claim_ownership(self._ownership(one.partition, ""), one.etag)

        await asyncio.to_thread(release)

    async def update_checkpoint(self, checkpoint: dict[str, Any], **kwargs: Any) -> None:
        """Do nothing: our checkpoint moves only in the transaction that writes the rows."""

    async def list_checkpoints(
        self, fully_qualified_namespace: str, eventhub_name: str, consumer_group: str, **kwargs: Any
    ) -> Iterable[dict[str, Any]]:
        """Return the checkpoint of each partition. A consumer continues right after it."""
        names = (fully_qualified_namespace, eventhub_name, consumer_group)
        found = await asyncio.to_thread(self._store.read_checkpoints, stream_of(*names))
        return [
            {**_names(names), "partition_id": partition_id, "offset": offset, "sequence_number": sequence_number}
            for partition_id, (sequence_number, offset) in found.items()
        ]

    def _write(self, ownership: Ownership, expected_etag: str | None) -> bool:
        with self._claiming:
            if ownership.owner_id:
                if self._is_released:
                    return False
                self._owner = (ownership.partition.stream, ownership.owner_id)
            return self._store.claim_ownership(ownership, expected_etag)

    def _given_away(self, ownership_list: list[Claim]) -> Claim | None:
        """Return a renewed claim to give away if this owner has more than its share. An owner with less claims it."""
        etags = {one.etag for one in self._standing if one.owner_id}
        renewed = [wanted for wanted in ownership_list if wanted["owner_id"] and wanted.get("etag") in etags]
        return renewed[-1] if renewed and surplus(self._standing, renewed[-1]["owner_id"]) else None

    def _ownership(self, partition: Partition, owner_id: str) -> Ownership:
        return Ownership(partition, owner_id, str(uuid.uuid4()), self._now() - self._ahead)

    def _claim_of(self, ownership: Ownership, names: tuple[str, str, str]) -> Claim:
        return {
            **_names(names),
            "partition_id": ownership.partition.partition_id,
            "owner_id": ownership.owner_id,
            "etag": ownership.etag,
            "last_modified_time": (ownership.last_modified_at + self._ahead).timestamp(),
        }


def _names(names: tuple[str, str, str]) -> dict[str, Any]:
    return dict(zip(("fully_qualified_namespace", "eventhub_name", "consumer_group"), names, strict=True))
