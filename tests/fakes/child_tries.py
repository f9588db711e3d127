"""Children that are none: a transform that names the event which ends its child, and notes what it tries."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from core.model.events import Event
from core.model.ports import Clock
from core.model.rows import References, Row
from core.model.transforms import Transform
from core.settle.attempts import StoredJournal
from core.settle.settle import EventKilled
from tests.fakes.store import Store


@dataclass
class ChildTries:
    """The numbers of each run that was tried in a child. An event `kill` ends its children."""

    tried: list[list[int]] = field(default_factory=list)

    @contextmanager
    def in_child(self, transform: Transform, look_again: Callable[[], None]) -> Iterator[Transform]:
        self.tried.append([])

        def rows_of(event: Event, references: References) -> Iterable[Row]:
            self.tried[-1].append(event.sequence_number)
            if event.body.startswith(b"kill"):
                raise EventKilled(event.sequence_number, "its process ended by SIGSEGV")
            return transform.rows_of(event, references)

        yield replace(transform, rows_of=rows_of)

    def journal(self, store: Store, clock: Clock) -> StoredJournal:
        return StoredJournal(store, clock, self.in_child)
