"""The means to retry and move letters."""

from contextlib import nullcontext
from dataclasses import dataclass

from core.letters.plan import RetryRules
from core.letters.store.letters import Letters
from core.model.clock import Clock
from core.model.events import Stream
from core.model.letters import EventFinder, LetterPolicy
from core.model.transform import Lone, Transform


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

    @property
    def rules(self) -> RetryRules:
        """The part that decides the outcome of a retry."""
        return RetryRules(self.transform, self.clock, self.letters)
