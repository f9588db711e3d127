"""The transform as the app uses it: the functions that turn one event into rows."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from core.model.events import Event, Partition
from core.model.rows import ReferenceKey, References, Row

ROWS_LIMIT = 10_000  # rows of one event

# Watches over the transform while it works on some events, of a partition where one is known.
Watch = Callable[[Partition | None, Sequence[Event]], AbstractContextManager[None]]

# Gives the transform whose functions run in a child process, for as long as its context is entered. Before it tries an
# event in a second child, it calls the function, which raises a fault when another owner has done the work.
Lone = Callable[["Transform", Callable[[], None]], AbstractContextManager["Transform"]]


def may_be_signalled() -> bool:
    """Take every KeyboardInterrupt for that of a signal."""
    return True


def unwatched(of: Partition | None, events: Sequence[Event]) -> AbstractContextManager[None]:
    """Let the transform work without a watch."""
    return nullcontext()


@dataclass(frozen=True, slots=True)
class Transform:
    """A transform module, read once. `row_classes` are those in its namespace; a replay retracts their rows.

    An event that becomes more than `rows_limit` rows is a letter, before its rows fill the memory. Where no signal is
    taken, a KeyboardInterrupt is raised by the transform, and would be at every retry: it is the outcome of its event.
    """

    version: str
    rows_of: Callable[[Event, References], Iterable[Row]]
    references_of: Callable[[Event], Iterable[ReferenceKey]] | None = None
    row_classes: tuple[type, ...] = ()
    rows_limit: int = ROWS_LIMIT
    watch: Watch = unwatched
    takes_signals: Callable[[], bool] = may_be_signalled
