"""The hub of a world: it grows, forgets, leaves holes, is recreated, and a different hub takes its place for a while.

Its full log is the oracle's truth. No event of the different hub may become a row.
"""

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from core.model.events import Event, SequenceNumber
from tests.fakes.builders import EPOCH, FakeClock
from tests.fakes.memory_hub import Fails, MemoryHub

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
        """The time of creation of the stream's hub."""
        return self.aside.get("made_at", self.made_at)

    @property
    def log(self) -> dict[str, Log]:
        """The logs of the stream's hub."""
        return self.lives[self.own_made_at]

    def enqueue(self, id: str, count: int) -> None:
        """Add events to the end of a partition, at the hub's own time."""
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
        """Delete the hub and create one of the same name, which takes some time; then add at most so many events."""
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
        """Put the hub of the stream in its place again."""
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
        """Return the events at or after a position, as the host's receiver gets them."""
        numbers = sorted(one for one in self.held[id] if one >= position)[:most]
        return tuple(self.held[id][one] for one in numbers)
