"""The lake: Delta tables, whose Parquet files a job writes, and which the app commits with the run as a transaction.

A job knows no Delta. It gets the state of its tables as JSON, and its manifest says which files it wrote and which ones
they replace. Each table is one commit, so a reader sees all of a run in a table, or nothing of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Protocol

import msgspec

from core.aggregation.runs import NO_CUT

GOLD, SILVER = "gold", "silver"
MANIFEST = "manifest"
FILES_KEPT = timedelta(days=7)  # replaced files, for readers; and files of an execution, for its commit
Value = str | int | float | bool | None  # of a column in a file's range: instants and days are ISO texts
Range = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class LakeFile:
    """A Parquet file of a table: its path in the table's folder, its partition, and the range of some columns.

    A column that is in neither `least` nor `most` may have any value.
    """

    path: str
    size: int
    rows: int
    partition: Mapping[str, str]
    least: Range
    most: Range


@dataclass(frozen=True, slots=True)
class TableState:
    """A table at a cut: its columns with their types in Spark, and its files. No cut: a run has to write all of it."""

    cut: str | None
    columns: Mapping[str, str]
    files: tuple[LakeFile, ...]


@dataclass(frozen=True, slots=True)
class TableChange:
    """The files that a run adds to a table, and the paths that it takes away. `is_whole`: all earlier files go."""

    columns: Mapping[str, str]
    partition: tuple[str, ...]
    added: tuple[LakeFile, ...]
    removed: tuple[str, ...]
    is_whole: bool


@dataclass(frozen=True, slots=True)
class StandingTable:
    """A table as the lake has it: its version, the number of the last run in it (0: none), columns and files."""

    version: int
    run: int
    columns: Mapping[str, str]
    files: tuple[LakeFile, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """The run of a commit: its job and number, by which a repeated commit is known, and facts for readers."""

    job: str
    number: int
    facts: Mapping[str, str]


NO_TABLE = StandingTable(-1, 0, {}, ())
EMPTY = TableState(NO_CUT, {}, ())


class Lake(Protocol):
    """Reads and commits tables, and stores texts for jobs. Every method may raise LakeUnreachable."""

    @property
    def location(self) -> str:
        """The folder or the address that jobs write to."""

    def read_table(self, table: str, job: str) -> StandingTable:
        """Return a table; NO_TABLE when there is none yet. LakeUnreachable when it is not a table of this job."""

    def commit(self, table: str, standing: StandingTable, change: TableChange, mark: Mark) -> bool:
        """Commit a change that fits the table in exactly this version; False when a different commit was first."""

    def lacks(self, table: str, files: Sequence[LakeFile]) -> bool:
        """Return True when a file of a change is no longer in the lake."""

    def maintain(self, table: str) -> Mapping[str, int]:
        """Compact a table, remove files that no reader of the last days needs, and shorten its log; return counts."""

    def delete(self, table: str, condition: str) -> int:
        """Delete the rows of a table that fit a condition in SQL, and return their number; the files that had them stay
        for readers until `maintain` removes them."""

    def write_text(self, path: str, text: str) -> None:
        """Write a text for a job."""

    def read_text(self, folder: str) -> str | None:
        """Return the text that a job wrote in a folder; None when there is none."""


def state_json(tables: Mapping[str, TableState]) -> str:
    """Return the state of tables as the text that a job reads."""
    return msgspec.json.encode(tables).decode()


def state_of(text: str) -> dict[str, TableState]:
    """Return the state of tables in a text."""
    return msgspec.json.decode(text, type=dict[str, TableState])


def manifest_json(changes: Mapping[str, TableChange]) -> str:
    """Return the changes of a run as the text that the app reads."""
    return msgspec.json.encode(changes).decode()


def manifest_of(text: str) -> dict[str, TableChange]:
    """Return the changes of a run in a text; ValueError for any other text."""
    return msgspec.json.decode(text, type=dict[str, TableChange])


def file_of(text: str) -> LakeFile:
    """Return the file that a text in JSON describes."""
    return msgspec.json.decode(text, type=LakeFile)


def fits(standing: StandingTable, change: TableChange) -> bool:
    """Return True when a change can be committed: its files replace all others, or those that it replaces are there."""
    if change.is_whole:
        return True
    if standing.version >= 0 and dict(standing.columns) != dict(change.columns):
        return False
    return set(change.removed) <= {one.path for one in standing.files}


def range_end(value: Any) -> Any:
    """Return the least or the greatest value of a column as JSON has it: an instant or a day is a text."""
    if isinstance(value, datetime):
        return f"{value.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
    return value.isoformat() if isinstance(value, date) else value


def gold_table(name: str) -> str:
    """Return the table of an aggregate."""
    return f"{GOLD}/{name}"
