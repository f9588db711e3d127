"""The quality of a run: the rows that it read beside those that the ledger counts, as its job stored them in JSON."""

from dataclasses import dataclass

import msgspec


@dataclass(frozen=True, slots=True)
class PartitionRows:
    """A partition in which the tables have a different number of rows than the ledger counts."""

    partition: str
    ledger: int
    found: int


@dataclass(frozen=True, slots=True)
class Quality:
    """The rows that a run added up.

    `rows_ledger`: the appended rows that the ledger counts for the commits of the run; None when some were
    purged. `rows_read`: those that the run read; `rows_removed`: those of its table that a replay removed since;
    `rows_elsewhere`: those of other tables. `fault` says in words that they differ. `rows_late` were read long after
    the end of their window.
    """

    fault: str | None
    rows_ledger: int | None
    rows_read: int
    rows_removed: int
    rows_elsewhere: int
    rows_difference: int | None
    rows_late: int
    partitions: tuple[PartitionRows, ...]


def quality_from(text: str | None) -> Quality | None:
    """Return the quality in the JSON of a run; None for a run that has none."""
    return None if text is None else msgspec.json.decode(text, type=Quality)
