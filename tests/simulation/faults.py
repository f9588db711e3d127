"""The ways in which one call of the database fails: before it, at a statement inside its transaction, or after it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from core.errors import CommitOutcomeUnknown, StoreUnavailable
from core.store.database import Database
from core.store.script import Named, Outcome, Script
from tests.fakes.faulty_database import Killed

NO_COUNT = -2  # of rows that any statement ever touches


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of one call; only a `before` can hit a read. `place` is the step that fails `inside`."""

    kind: str
    moment: Literal["before", "inside", "after"]
    error: type[BaseException]
    place: int = 0

    def strike(self, script: Script | None, call: Callable[[], Any]) -> None:
        """Raise the fault at its moment; the call is made only when the fault comes after it."""
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
    """The database as one process sees it; a dead process no longer reaches it."""

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
