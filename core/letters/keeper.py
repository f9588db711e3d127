"""The means to retry and move letters."""

from contextlib import nullcontext
from dataclasses import dataclass, replace

from core.letters.plan import RetryRules
from core.letters.store.letters import Letters
from core.model.clock import Clock
from core.model.commits import PartitionState
from core.model.events import Stream
from core.model.letters import EventFinder, LetterPolicy
from core.model.transform import Lone, Transform
from core.settle.erased import SubjectKey


@dataclass(frozen=True, slots=True)
class Keeper:
    """The means to retry and move the letters of one stream. `lone` gives the transform for letters that may kill."""

    stream: Stream
    store: Letters
    transform: Transform
    find_event: EventFinder
    clock: Clock
    letters: LetterPolicy = LetterPolicy()  # noqa: RUF009 - it is frozen
    lone: Lone = nullcontext
    erasure: SubjectKey = SubjectKey()  # noqa: RUF009 - it is frozen

    def forgetting(self, state: PartitionState) -> "Keeper":
        """Return the keeper with a transform that makes nothing of what was erased in a partition."""
        erased = self.store.read_erased(state, self.erasure)
        return replace(self, transform=erased.around(self.transform))

    @property
    def rules(self) -> RetryRules:
        """The part that decides the outcome of a retry."""
        return RetryRules(self.transform, self.clock, self.letters)
