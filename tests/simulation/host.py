"""The hub and the functions host of a world.

The hub grows, forgets, leaves holes, is recreated, and a different hub takes its place for a while. Its full log is the
oracle's truth. No event of the different hub may become a row.

The host hands batches to instances by the real trigger's rules, and loses some as it does. It moves its checkpoint
after an invocation, whatever the outcome. With the retry policy it tries a failed batch again first, some times, and
then passes it. At some events its reader stands until its checkpoint is moved past them. An owner that loses its
partition may still be running, and may still move the checkpoint.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any, Literal

from core.ingest.stalled_partitions import HostCheckpoint
from core.model.commits import Checkpoint
from core.model.events import Event, Partition, SequenceNumber
from tests.fakes.builders import EPOCH, FakeClock
from tests.fakes.memory_hub import Fails, MemoryHub
from tests.simulation.trouble import Trouble

VERBS = [
    *["reading {home}"] * 3,
    *["double {home}"] * 2,
    *["look {home}"] * 4,
    "look nobody",
    *["home {home} 0", "home {home} 1"] * 2,
    "fixhome {late} 0",
    "fixhome {late} 1",
    "look {late}",
    *["quiet"] * 2,
    "poison",
    *["bug"] * 2,
]
REFUSED = "huge {home}"
OTHER = "reading other"  # the events of a different hub


class Log:
    """The log of one partition in one life of the hub: all events ever enqueued, and the numbers that left the hub."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.gone: set[int] = set()  # numbers that the hub no longer has
        self.lost: set[int] = set()  # those that were not committed when they left


class SimulatedHub(MemoryHub):
    """A hub that, unlike MemoryHub, keeps its whole past, by incarnation."""

    def __init__(self, partitions: Sequence[str], chance: random.Random, clock: FakeClock, fails: Fails) -> None:
        super().__init__(dict.fromkeys(partitions, ()), fails)
        self.chance = chance
        self.clock = clock
        self.refused = chance.choice([0.0, 0.03, 0.03, 0.3])  # the number of events whose rows every database refuses
        self.killers = chance.choice([0.0, 0.0, 0.03])  # the number of events that end the process that tries them
        self.lives: dict[datetime, dict[str, Log]] = {self.made_at: {id: Log() for id in partitions}}
        self.aside: dict[str, Any] = {}  # the hub of the stream while a different one is in its place

    @property
    def own_made_at(self) -> datetime:
        return self.aside.get("made_at", self.made_at)

    @property
    def log(self) -> dict[str, Log]:
        return self.lives[self.own_made_at]

    def enqueue(self, id: str, count: int) -> None:
        for _ in range(count):
            number = self.last[id] + 1
            body = self._body(id).format(home=f"home-{id}-{self.chance.randrange(2)}", late=f"late-{id}")
            at = self._now() + timedelta(microseconds=number)
            key = self.chance.choice([*(f"home-{id}-{one}" for one in range(3)), None])
            event = Event(SequenceNumber(number), str(number * 64), at, key, {}, body.encode())
            self.publish(id, [event])
            if not self.aside:
                self.log[id].events.append(event)

    def replace(self, most: int = 30) -> None:
        """Delete the hub and create one of the same name, which takes some time. Then add at most so many events."""
        for log in self.log.values():
            log.gone.update(one.sequence_number for one in log.events)
        self.clock.advance(1.0)
        self.recreate_hub(self._now())
        self.lives[self.made_at] = {id: Log() for id in self.held}
        self.clock.advance(1.0)
        for id in self.held:
            self.enqueue(id, self.chance.randint(0, most))

    def swap(self) -> None:
        """Put a different hub in the place of this one. It is empty, or has other events with some of the numbers."""
        self.aside = {name: vars(self)[name] for name in ("held", "last", "last_at", "made_at")}
        self.held, self.last, self.last_at = {id: {} for id in self.held}, {}, {}
        self.clock.advance(1.0)
        self.recreate_hub(self._now())
        for id in self.held:
            self.last[id] = self.chance.choice([-1, 4])
            self.enqueue(id, self.chance.choice([0, 0, 20, 60]))

    def give_back(self) -> None:
        vars(self).update(self.aside)
        self.aside = {}

    def _now(self) -> datetime:
        return EPOCH + timedelta(days=1, seconds=self.clock.seconds)

    def cut(self, id: str, before: int, committed: int) -> None:
        """Remove the head, as retention does."""
        self._remove(id, [one for one in self.held[id] if one < before], committed)

    def punch(self, id: str, committed: int) -> None:
        """Remove an event from the middle, as compaction does."""
        if self.held[id]:
            self._remove(id, [self.chance.choice(list(self.held[id]))], committed)

    def _remove(self, id: str, numbers: list[SequenceNumber], committed: int) -> None:
        self.lose(id, *numbers)
        self.log[id].gone.update(numbers)
        self.log[id].lost.update(one for one in numbers if one > committed)

    def _body(self, id: str) -> str:
        if self.aside:
            return OTHER
        if self.chance.random() < self.refused:
            return REFUSED
        if self.chance.random() < self.killers:
            return f"kill {self.chance.choice([1, 2, 99])}"
        return self.chance.choice(VERBS)

    def next_events(self, id: str, position: int, most: int) -> tuple[Event, ...]:
        numbers = sorted(one for one in self.held[id] if one >= position)[:most]
        return tuple(self.held[id][one] for one in numbers)


Ending = Literal["done", "failed", "died"]
# By the number of the instance, with the partition, the events, and how often the invocation was retried.
Invoke = Callable[[int, str, tuple[Event, ...], int], Ending]


@dataclass(slots=True)
class Pump:
    """The host's view of one partition under one owner. `batch` was handed over and has not ended yet."""

    owner: int
    position: int = 0
    batch: tuple[Event, ...] = ()
    retries: int = 0
    is_running: bool = False


class Host:
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
        """Let an owner that lost its partition finish its batch. It may also move the checkpoint."""
        if not self._zombies:
            return
        id, pump = self._zombies.pop(self._trouble.chance.randrange(len(self._zombies)))
        self._note("host: two owners at once")
        self._run(id, pump)
        if self._trouble.comes(0.3):
            self.pumps[id].position = pump.position

    def read(self, partition: Partition) -> HostCheckpoint:
        position = self.pumps[partition.partition_id].position
        return HostCheckpoint(position - 1, str(position))

    def write(self, partition: Partition, position: Checkpoint, found: HostCheckpoint) -> bool:
        """Move the host's checkpoint from outside. A batch that is in hand moves it again at its end."""
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
