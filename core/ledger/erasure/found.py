"""Everything that a piece of an erasure is about to change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from core.ledger.erasure.erasure import Erasing
from core.model.rows import row_table
from core.model.spans import SequenceNumber, Span

RetractedPlace = tuple[int, str, int, int]  # commit that took the row away, table, sequence number, ordinal
Diff = tuple[str, int]  # task of a dry run, and the event that it has stored a difference for


@dataclass(frozen=True, slots=True)
class FoundPiece:
    """Everything of the subjects in a range of a partition. `rows` counts the rows of each table."""

    span: Span
    rows: Mapping[type, int]
    letters: tuple[SequenceNumber, ...] = ()
    staged: tuple[SequenceNumber, ...] = ()
    retracted: tuple[RetractedPlace, ...] = ()
    diffs: tuple[Diff, ...] = ()
    days: Mapping[str, tuple[date, date]] = field(default_factory=dict)

    @property
    def figures(self) -> Erasing:
        """The counts of this piece."""
        return Erasing(
            {row_table(row_class).name: count for row_class, count in self.rows.items()},
            len(self.letters),
            len(self.staged),
            len(self.retracted),
            len(self.diffs),
            self.days,
        )
