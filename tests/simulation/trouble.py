"""The faults of a world, drawn from its seed and counted by kind."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from core.errors import HubRefused
from core.store.script import Script
from tests.fakes.builders import FakeClock
from tests.simulation.faults import NOT_REACHED, OF_READS, OF_SCRIPTS, Fault

OUTAGE, SLOW, FROZEN = "store: outage", "store: slow", "process: frozen"
FREEZES = (6.0, 61.0, 301.0, 800.0)  # seconds: beyond the memory of a stream, of references, a claim, all of them
HUB_FAULTS = ("hub: unreachable", "hub: throttled", "hub: refused")
LEVELS = (0.0, 0.02, 0.06, 0.15)  # the share of the store's calls that fail


class Trouble:
    """Draws the faults of one world. `meanwhile` lets others act between two calls of a process."""

    def __init__(self, chance: random.Random, clock: FakeClock) -> None:
        self.chance = chance
        self.clock = clock
        self.level = chance.choice(LEVELS)
        self.counts: Counter[str] = Counter()
        self.meanwhile: Callable[[], None] = lambda: None
        self._outage = self._throttled = self._nested = 0

    def end(self) -> None:
        """Let nothing fail from now on."""
        self.level, self._outage, self._throttled = 0.0, 0, 0
        self.meanwhile = lambda: None

    def comes(self, share: float) -> bool:
        """Return True now and then while there is trouble."""
        return self.level > 0.0 and self.chance.random() < share

    @property
    def is_amid_a_call(self) -> bool:
        """True while one act interrupts another."""
        return self._nested > 0

    def interrupt(self) -> None:
        """Let others act now and then; an act that interrupts is not interrupted."""
        if self._nested == 0 and self.comes(0.05):
            self._nested += 1
            act = self._freeze if self.comes(0.2) else self.meanwhile
            try:
                act()
            finally:
                self._nested -= 1

    def _freeze(self) -> None:
        """Stop a process between two of its calls for longer than it may remember, while others act or nobody does."""
        self.counts[FROZEN] += 1
        self.clock.advance(self.chance.choice(FREEZES))
        for _ in range(self.chance.randint(0, 6)):
            self.meanwhile()
            self.clock.advance(self.chance.choice([0.0, 1.0, 45.0]))

    def of_store(self, script: Script | None) -> Fault | None:
        """Return the fault of one call of the store."""
        self.interrupt()
        if self._outage:
            self._outage -= 1
            return NOT_REACHED
        if not self.comes(self.level):
            return None
        if self.comes(0.1):
            self._outage = self.chance.randint(2, 12)
            self.counts[OUTAGE] += 1
        if self.comes(0.1):
            self.clock.advance(self.chance.choice([2.0, 70.0, 301.0]))
            self.counts[SLOW] += 1
            return None
        fault = self.chance.choice(OF_READS if script is None else OF_SCRIPTS)
        self.counts[fault.kind] += 1
        return fault if script is None else replace(fault, place=self.chance.randrange(len(script.steps)))

    def of_hub(self) -> bool:
        """Return True when the hub does not answer; raise HubRefused when it refuses."""
        self.interrupt()
        if self._throttled:
            self._throttled -= 1
            return True
        if not self.comes(self.level / 6):
            return False
        kind = self.chance.choice(HUB_FAULTS)
        self.counts[kind] += 1
        if kind == "hub: refused":
            raise HubRefused("the hub does not know the token")
        self._throttled = self.chance.randint(1, 4) if kind == "hub: throttled" else 0
        return True
