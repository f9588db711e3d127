"""The functions host of a world: it hands batches to instances by the real trigger's rules, and loses some as it does.

The host moves its checkpoint after an invocation, whatever the outcome; with the retry policy it tries a failed batch
again first, some times, and then passes it. At some events its reader stands until its checkpoint is moved past them.
An owner that loses its partition may still be running, and may still move the checkpoint.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Literal

from core.ingest.stalled_partitions import HostCheckpoint
from core.model.commits import Checkpoint
from core.model.events import Event, Partition
from tests.simulation.hub import SimulatedHub
from tests.simulation.trouble import Trouble

Ending = Literal["done", "failed", "died"]
# By the number of the instance, with the partition, the events, and how often the invocation was retried.
Invoke = Callable[[int, str, tuple[Event, ...], int], Ending]


@dataclass(slots=True)
class Pump:
    """The host's view of one partition under one owner; `batch` was handed over and has not ended yet."""

    owner: int
    position: int = 0
    batch: tuple[Event, ...] = ()
    retries: int = 0
    is_running: bool = False


class Host:
    """Delivers the events of every partition to one of the instances."""

    def __init__(self, hub: SimulatedHub, trouble: Trouble, invoke: Invoke, instances: int) -> None:
        self._hub = hub
        self._trouble = trouble
        self._invoke = invoke
        self._instances = instances
        self._tries = trouble.chance.choice([1, 3, 8])  # retries of a batch; then its events are passed
        self._loses = trouble.chance.choice([0.0, 0.02, 0.15])  # the number of batches that this host loses
        self.pumps = {id: Pump(trouble.chance.randrange(instances)) for id in hub.log}
        self._zombies: list[tuple[str, Pump]] = []
        self._unreadable = trouble.chance.choice([0.0, 0.0, 0.05])  # the share of the events at which a reader stands
        self._stands: dict[tuple[str, int, datetime], bool] = {}

    def deliver(self, id: str) -> None:
        """Hand over the next batch of a partition, or a failed one again."""
        pump = self.pumps[id]
        if pump.is_running:
            return  # one batch of a partition after the other
        pump.batch = pump.batch or self._next(id, pump)
        if pump.batch:
            self._run(id, pump)

    def steal(self, id: str) -> None:
        """Give a partition to a different owner, who begins at the host's checkpoint: that may be an older one."""
        old, chance = self.pumps[id], self._trouble.chance
        back = chance.choice([0, 0, 3, 20])
        if back:
            self._note("host: events redelivered")
        self._note("host: owner changed")
        self.pumps[id] = Pump(chance.randrange(self._instances), max(0, old.position - back))
        if old.is_running:
            self._note("host: two owners at once")
        elif old.batch:
            self._zombies = [*self._zombies, (id, old)][-3:]

    def lose_places(self) -> None:
        """Note that the hub is a new one: the host's checkpoint is invalid in it, or happens to fit."""
        for pump in self.pumps.values():
            pump.position = self._trouble.chance.choice([0, pump.position])

    def rival(self) -> None:
        """Let a different owner take a partition whose batch is running, and get the same events at once."""
        running = [id for id, pump in self.pumps.items() if pump.is_running]
        if running:
            id = self._trouble.chance.choice(running)
            self.steal(id)
            for _ in range(self._trouble.chance.randint(1, 3)):
                self.deliver(id)

    def wake_zombie(self) -> None:
        """Let an owner that lost its partition finish its batch; it may also move the checkpoint."""
        if not self._zombies:
            return
        id, pump = self._zombies.pop(self._trouble.chance.randrange(len(self._zombies)))
        self._note("host: two owners at once")
        self._run(id, pump)
        if self._trouble.comes(0.3):
            self.pumps[id].position = pump.position

    def read(self, partition: Partition) -> HostCheckpoint:
        """Return the host's checkpoint, as the app finds it in the host's storage."""
        position = self.pumps[partition.partition_id].position
        return HostCheckpoint(position - 1, str(position))

    def write(self, partition: Partition, position: Checkpoint, found: HostCheckpoint) -> bool:
        """Move the host's checkpoint from outside; a batch that is in hand moves it again at its end."""
        pump = self.pumps[partition.partition_id]
        if str(pump.position) != found.tag:
            return False
        self._note("host: checkpoint lifted")
        pump.position = position.sequence_number + 1
        return True

    def forget(self, instance: int) -> None:
        """Note that a process died: its batches are gone with it, and are delivered again."""
        self._zombies = [one for one in self._zombies if one[1].owner != instance]
        for pump in self.pumps.values():
            if pump.owner == instance:
                pump.owner, pump.batch = self._trouble.chance.randrange(self._instances), ()

    def _next(self, id: str, pump: Pump) -> tuple[Event, ...]:
        if pump.position > self._hub.last[id] + 1:
            pump.position = 0  # the receiver is refused there, and begins again
        events = self._readable(id, self._hub.next_events(id, pump.position, self._trouble.chance.randint(1, 12)))
        if events and self._trouble.comes(self._loses):
            self._note("host: batch lost before the app saw it")
            pump.position = events[-1].sequence_number + 1
            return ()
        return events

    def _readable(self, id: str, events: tuple[Event, ...]) -> tuple[Event, ...]:
        """Return the events before the first one at which the reader stands."""
        found = tuple(takewhile(lambda event: not self._is_unreadable(id, event), events))
        if events and not found:
            self._note("host: stands at an event")
        return found

    def _is_unreadable(self, id: str, event: Event) -> bool:
        place = (id, event.sequence_number, event.enqueued_at)
        if place not in self._stands:
            self._stands[place] = self._trouble.chance.random() < self._unreadable
        return self._stands[place]

    def _run(self, id: str, pump: Pump) -> None:
        events, pump.is_running = pump.batch, True
        ending = self._invoke(pump.owner, id, events, pump.retries)
        pump.is_running = False
        if ending == "done" or (ending == "failed" and self._trouble.comes(self._loses)):
            self._note("host: failed batch lost" if ending == "failed" else "batches")
            pump.position, pump.batch = events[-1].sequence_number + 1, ()
        elif ending == "failed" and self._trouble.comes(0.1):
            self._note("host: shut down between retries")
            pump.batch = ()
        elif ending == "failed" and pump.retries == self._tries:
            self._note("host: failed batch passed after its retries")
            pump.position, pump.batch = events[-1].sequence_number + 1, ()
        elif ending == "failed":
            self._note("host: failed batch retried")
            pump.retries += 1
            return
        pump.retries = 0

    def _note(self, kind: str) -> None:
        self._trouble.counts[kind] += 1
