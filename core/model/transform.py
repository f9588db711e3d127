"""The transform as the app uses it: the functions that turn one event into rows."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from core.model.events import Event
from core.model.rows import ReferenceKey, References, Row


@dataclass(frozen=True, slots=True)
class Transform:
    """A transform module, read once. `row_classes` are those in its namespace; a replay retracts their rows."""

    version: str
    rows_of: Callable[[Event, References], Iterable[Row]]
    references_of: Callable[[Event], Iterable[ReferenceKey]] | None = None
    row_classes: tuple[type, ...] = ()
