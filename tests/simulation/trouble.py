"""The faults of a world, drawn from its seed and counted by kind, and how one call of the database fails.

A call fails before it, at a statement inside its transaction, or after it.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from core.errors import CommitOutcomeUnknown, HubRefused, StoreUnavailable
from core.store.database import Database
from core.store.script import Named, Outcome, Script
from tests.fakes.builders import FakeClock
from tests.fakes.faulty_database import Killed

NO_COUNT = -2  # of rows that any statement ever touches


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of one call. Only a `before` can hit a read. `place` is the step that fails `inside`."""

    kind: str
    moment: Literal["before", "inside", "after"]
    error: type[BaseException]
    place: int = 0

    def strike(self, script: Script | None, call: Callable[[], Any]) -> None:
        """Raise the fault at its moment. The call is made only when the fault comes after it."""
        if self.moment == "after":
            call()
        if self.error is CommitOutcomeUnknown and (script is None or script.may_repeat):
            raise StoreUnavailable(self.kind)
        raise self.error(self.kind)

    def inside(self, script: Script) -> Script:
        """Return the script with the failing step: its statement runs, and then all of it is rolled back."""

        def fail() -> Exception:
            raise self.error(self.kind)

        failing = replace(script.steps[self.place], expect=NO_COUNT, otherwise=fail)
        return replace(script, steps=(*script.steps[: self.place], failing, *script.steps[self.place + 1 :]))


NOT_REACHED = Fault("store: not reached", "before", StoreUnavailable)
STATEMENT_FAILS = Fault("store: a statement fails", "inside", StoreUnavailable)
NOT_COMMITTED = Fault("store: answer lost, not committed", "before", CommitOutcomeUnknown)
COMMITTED = Fault("store: answer lost, committed", "after", CommitOutcomeUnknown)
DEATH_BEFORE = Fault("death: before a statement", "before", Killed)
DEATH_INSIDE = Fault("death: inside a transaction", "inside", Killed)
DEATH_AFTER = Fault("death: after a commit", "after", Killed)
OF_READS = (NOT_REACHED, NOT_REACHED, NOT_REACHED, DEATH_BEFORE)
OF_SCRIPTS = (NOT_REACHED, STATEMENT_FAILS, NOT_COMMITTED, COMMITTED, DEATH_BEFORE, DEATH_INSIDE, DEATH_AFTER)

# Returns the fault of the next call; the script is None for a read.
Draw = Callable[[Script | None], Fault | None]


class ProcessDatabase:
    """The database as one process sees it. A dead process no longer reaches it."""

    def __init__(self, database: Database, draw: Draw) -> None:
        self._database = database
        self._draw = draw
        self.is_dead = False

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        return self._made(None, lambda: self._database.ask(statement, **values))

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        return self._made(script, lambda made=script: self._database.run(made, rehearse))

    def close(self) -> None:
        """Keep the database: other processes use it."""

    def _made(self, script: Script | None, call: Callable[..., Any]) -> Any:
        self.refuse_dead()
        fault = self._draw(script)
        self.refuse_dead()  # it may have died while other processes ran
        try:
            if fault is None:
                return call()
            if fault.moment == "inside" and script is not None:
                return call(fault.inside(script))
            return fault.strike(script, call)
        except Killed:
            self.is_dead = True
            raise

    def refuse_dead(self) -> None:
        if self.is_dead:
            raise Killed


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
        self.level, self._outage, self._throttled = 0.0, 0, 0
        self.meanwhile = lambda: None

    def comes(self, share: float) -> bool:
        return self.level > 0.0 and self.chance.random() < share

    @property
    def is_amid_a_call(self) -> bool:
        return self._nested > 0

    def interrupt(self) -> None:
        """Let others act now and then. An act that interrupts is not interrupted."""
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
        """Return True when the hub does not answer. Raises HubRefused when it refuses."""
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
