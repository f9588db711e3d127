"""The safety features of a commit, each of which a bench can switch off by a port; the app has no such switches."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from core.store.database import Database
from core.store.script import Named, Outcome, Script, Step

Change = Callable[[Step], Step | None]  # None: the step is left out
KEPT = "commit_number"


@dataclass(frozen=True, slots=True)
class Feature:
    """A safety feature: its name, how its steps change without it, and if it is the journal, which is no step."""

    name: str
    change: Change = lambda step: step
    is_journal: bool = False


class Without:
    """A Database that runs scripts without some features."""

    def __init__(self, database: Database, changes: tuple[Change, ...]) -> None:
        self.ask, self.close, self._database = database.ask, database.close, database
        self._changes = changes
        self._numbers = count(2)  # the first commit opens the checkpoint

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        """Run the script; the commit has a number even when no checkpoint gives it one."""
        steps = tuple(self._changed(script.steps))
        if any(step.keeps == KEPT for step in script.steps) and not any(step.keeps == KEPT for step in steps):
            number = next(self._numbers)
            steps = tuple(replace(step, values={**step.values, KEPT: number}) for step in steps)
            outcome = self._database.run(replace(script, steps=steps), rehearse)
            return replace(outcome, kept={**outcome.kept, KEPT: number})
        return self._database.run(replace(script, steps=steps), rehearse)

    def _changed(self, steps: tuple[Step, ...]) -> Iterator[Step]:
        for step in steps:
            changed: Step | None = step
            for change in self._changes:
                changed = None if changed is None else change(changed)
            if changed is not None:
                yield changed


def _leaving_out(*statements: Named) -> Change:
    return lambda step: None if step.statement in statements else step


def _without_bodies(step: Step) -> Step:
    if step.statement != "add_letter":
        return step
    letters: list[dict[str, Any]] = [{**letter, "body": b"", "body_kept": 0} for letter in step.many or ()]
    return replace(step, many=letters)


FEATURES = (
    Feature("range of the ledger", _leaving_out("record_batch")),
    Feature("bodies of letters", _without_bodies),
    Feature("compare-and-set of the checkpoint", _leaving_out("advance_checkpoint")),
    Feature("journal of attempts", is_journal=True),
)
