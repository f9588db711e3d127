"""The hubs: their settings, the partition of a publication, and the one step that makes events durable."""

import itertools
import logging
import re
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from local.event_hubs.errors import AmqpError, not_found
from local.event_hubs.events import partition_index, read_publication
from local.event_hubs.lead import DEFAULT_LEAD
from local.event_hubs.log import Disk, PartitionLog
from local.event_hubs.producers import Claim

DEFAULT_RETAINED_EVENTS = 100_000
_log = logging.getLogger(__name__)
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,254}[A-Za-z0-9])?")
_PARTITION_LIMIT = 1024

Clock = Callable[[], int]


@dataclass(frozen=True, slots=True)
class HubSettings:
    """A hub to emulate. `$Default` is always one of its consumer groups.

    Retention is per partition: the newest `retained_events`. None is no limit.
    The publishers of a partition wait once they are more than `lead` events ahead of its owner. None is no limit.
    Raises ValueError for a name or a number that Event Hubs would not take.
    """

    name: str
    partitions: int = 4
    consumer_groups: tuple[str, ...] = ()
    retained_events: int | None = DEFAULT_RETAINED_EVENTS
    lead: int | None = DEFAULT_LEAD

    def __post_init__(self) -> None:
        for name in (self.name, *(group for group in self.consumer_groups if group != "$Default")):
            if not _NAME.fullmatch(name):
                raise ValueError(f"'{name}' is not a name: use letters and digits, with . _ - between them")
        if not 1 <= self.partitions <= _PARTITION_LIMIT:
            raise ValueError(f"hub {self.name} has {self.partitions} partitions, not 1 to {_PARTITION_LIMIT}")
        if self.retained_events is not None and self.retained_events < 1:
            raise ValueError(f"hub {self.name} retains {self.retained_events} events: give 1 or more")
        if self.lead is not None and self.lead < 1:
            raise ValueError(f"hub {self.name} lets publishers lead by {self.lead} events: give 1 or more")


class Hub:
    """A hub and the logs of its partitions. `created_at` is in milliseconds since the Unix epoch."""

    def __init__(self, settings: HubSettings, created_at: int) -> None:
        self.name, self.created_at = settings.name, created_at
        self.consumer_groups = frozenset(group.lower() for group in ("$Default", *settings.consumer_groups))
        self.partitions: dict[str, PartitionLog] = {}
        self.grow(settings)

    def grow(self, settings: HubSettings) -> None:
        """Add the partitions that the hub does not have yet."""
        limits = settings.retained_events, settings.lead
        for id_ in map(str, range(len(self.partitions), settings.partitions)):
            self.partitions[id_] = PartitionLog(id_, *limits)
        self._round_robin = itertools.cycle(self.partitions.values())

    def partition(self, partition_id: str) -> PartitionLog:
        """Return a partition. Raises AmqpError com.microsoft:argument-out-of-range for an unknown id."""
        if partition_id not in self.partitions:
            last = len(self.partitions) - 1
            raise AmqpError(
                "com.microsoft:argument-out-of-range",
                f"the partition '{partition_id}' of hub {self.name} is not between 0 and {last}",
            )
        return self.partitions[partition_id]

    def route(self, partition_key: str | None) -> PartitionLog:
        """Return the partition of a key, or without a key the next partition in turn."""
        if partition_key is None:
            return next(self._round_robin)
        return self.partitions[str(partition_index(partition_key, len(self.partitions)))]


class Hubs:
    """All hubs of an emulator, with their copy on disk when there is one. The clock gives Unix milliseconds."""

    def __init__(self, settings: Sequence[HubSettings], clock: Clock) -> None:
        self._settings = {hub.name.lower(): hub for hub in settings}
        if len(self._settings) != len(settings):
            raise ValueError("two hubs have the same name")
        self._clock = clock
        self._disk: Disk | None = None
        self._hubs = {name: Hub(hub, clock()) for name, hub in self._settings.items()}
        self._staged: dict[PartitionLog, Hub] = {}

    def __getitem__(self, name: str) -> Hub:
        """Return the hub of this name, in any case. Raises AmqpError amqp:not-found."""
        hub = self._hubs.get(name.lower())
        if hub is None:
            raise not_found(f"sb://localhost/{name}")
        return hub

    def open(self, path: Path) -> None:
        """Continue from a file and store new events in it. Raises ValueError for a different number of partitions."""
        self._disk = Disk(path)
        try:
            self._hubs = {name: self._load(self._disk, hub) for name, hub in self._settings.items()}
        except BaseException:
            self.close()
            raise

    def _load(self, disk: Disk, settings: HubSettings) -> Hub:
        partitions, created_at = disk.hub(settings.name.lower(), settings.partitions, self._clock())
        if partitions != settings.partitions:
            raise ValueError(
                f"hub {settings.name} has {partitions} partitions in the database, not {settings.partitions}: "
                "give that number or another database"
            )
        hub = Hub(settings, created_at)
        for partition in hub.partitions.values():
            partition.load(disk.last_events(settings.name.lower(), partition.partition_id, settings.retained_events))
            partition.producers.load(disk.producers(settings.name.lower(), partition.partition_id))
            partition.expire()
        return hub

    def recreate(self, name: str) -> None:
        """Replace a hub by an empty one of the same name, as deleting and creating it does. Its time is a new one.

        Raises AmqpError amqp:not-found for an unknown hub, sqlite3.Error when the file cannot be written.
        """
        former, key = self[name], name.lower()
        created_at = max(self._clock(), former.created_at + 1)
        if self._disk is not None:
            self._disk.recreate(key, created_at)
        self._staged = {partition: hub for partition, hub in self._staged.items() if hub is not former}
        self._hubs[key] = Hub(self._settings[key], created_at)

    def grow(self, name: str, partitions: int) -> None:
        """Give a hub more partitions while it runs, as Premium does.

        Raises AmqpError amqp:not-found for an unknown hub, ValueError for a number that is not higher, sqlite3.Error
        when the file cannot be written.
        """
        hub, key = self[name], name.lower()
        settings = replace(self._settings[key], partitions=partitions)
        if partitions <= len(hub.partitions):
            raise ValueError(f"hub {hub.name} has {len(hub.partitions)} partitions: give a higher number")
        if self._disk is not None:
            self._disk.grow(key, partitions)
        self._settings[key] = settings
        hub.grow(settings)

    def close(self) -> None:
        """Close the file. The events in memory stay."""
        if self._disk is not None:
            self._disk.close()
            self._disk = None

    def publish(
        self,
        hub: Hub,
        partition: PartitionLog | None,
        message: bytes,
        message_format: int,
        producer: Claim | None = None,
    ) -> PartitionLog:
        """Stage the events of a message in a partition, and return it. Without one, their key or turn chooses it.

        The events of an idempotent producer are staged once. Raises AmqpError when the message cannot be read, or when
        its number does not follow.
        """
        publication = read_publication(message, message_format)
        if partition is None:
            partition = hub.route(publication.partition_key)
        if producer is None or partition.producers.is_new(publication, producer):
            partition.stage(publication.events, self._clock())
        self._staged[partition] = hub
        return partition

    def register(self, hub: Hub, partition: PartitionLog, claim: Claim) -> Claim:
        """Stage an idempotent producer of a partition, and return its complete claim. Raises AmqpError to refuse it."""
        complete = partition.producers.register(claim)
        self._staged[partition] = hub
        return complete

    def commit(self) -> list[PartitionLog]:
        """Make the staged events durable, then readable. Return the partitions that grew.

        Raises AmqpError amqp:internal-error when the disk refuses them, and then every partition is as before.
        """
        staged, self._staged = self._staged, {}
        try:
            self._write(staged)
        except sqlite3.Error as error:
            for partition in staged:
                partition.drop_staged()
            raise AmqpError("amqp:internal-error", f"the events could not be stored: {error}") from error
        for partition, hub in staged.items():
            partition.append_staged()
            if partition.expire():
                self._cut_disk(hub, partition)
        return list(staged)

    def _write(self, staged: dict[PartitionLog, Hub]) -> None:
        if self._disk is None or not staged:
            return
        try:
            for partition, hub in staged.items():
                self._disk.add(hub.name.lower(), partition.partition_id, partition.staged)
                self._disk.put_producers(hub.name.lower(), partition.partition_id, partition.producers.staged)
            self._disk.commit()
        except sqlite3.Error:
            self._disk.roll_back()
            raise

    def let_time_pass(self) -> None:
        """End the waits of publishers that are over."""
        now = self._clock()
        for hub in self._hubs.values():
            for partition in hub.partitions.values():
                partition.lead.let_time_pass(now)

    def expire_before(self, hub: Hub, partition: PartitionLog, sequence: int) -> None:
        """Cut a partition's events before a sequence number, as retention would."""
        partition.expire_before(sequence)
        self._cut_disk(hub, partition)

    def _cut_disk(self, hub: Hub, partition: PartitionLog) -> None:
        if self._disk is None:
            return
        before = min(partition.first_sequence, partition.last_sequence)
        try:
            self._disk.cut(hub.name.lower(), partition.partition_id, before)
        except sqlite3.Error as error:  # the events in memory are cut, so no reader gets them
            _log.warning(
                "expired events were not removed from the file; the next cut removes them",
                extra={"action": "expire", "error": str(error)},
            )
