"""The means to retry and move letters."""

from dataclasses import dataclass

from core.letters.plan import RetryRules
from core.letters.store.letters import Letters
from core.model.clock import Clock
from core.model.commits import PartitionState
from core.model.events import Stream
from core.model.letters import EventFinder, LetterPolicy
from core.model.transform import Transform
from core.settle.erased import Erased, SubjectKey
from core.settle.isolate import NOT_JOURNALED, Journal


@dataclass(frozen=True, slots=True)
class Keeper:
    """The means to retry and move the letters of one stream."""

    stream: Stream
    store: Letters
    transform: Transform
    find_event: EventFinder
    clock: Clock
    letters: LetterPolicy = LetterPolicy()  # noqa: RUF009 - it is frozen
    journal: Journal = NOT_JOURNALED
    erasure: SubjectKey = SubjectKey()  # noqa: RUF009 - it is frozen

    def read_erased(self, state: PartitionState) -> Erased:
        """Return the subjects that were erased in a partition: a retry makes nothing of their events."""
        return self.store.read_erased(state, self.erasure)

    @property
    def rules(self) -> RetryRules:
        """The part that decides the outcome of a retry."""
        return RetryRules(self.transform, self.clock, self.letters)
