"""A transaction as a value: the steps that an engine runs one after the other, all of them or none."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

RowVerb = Literal[
    "append",  # insert rows by position
    "set",  # set states where the new one is newer: by its column, or by its position
    "retract",  # copy the rows of some events to `retracted_row`
    "delete",  # delete the rows of some events
    "retract_states",  # copy the states that will be replaced to `retracted_row`
    "replace_states",  # set states where there is none, or one of this partition that is not newer, or by its column
    "count_states",
    "select_states",
    "select_standing",  # states, after the columns that name their writer
    "select_placed",
    "count_rows",
    "next_partition",  # the first partition after one that has rows
    "next_number",  # the first number at or after one that has rows
    "find_lettered",  # letters of a range that are open, although rows of their number were appended
    "find_row_faults",
    "select_subject",  # the rows of subjects in a range, after commit number and place
    "stub_subject",  # leave a retracted row without its columns for each of them
    "delete_subject",
    "find_overflow",  # of an aggregate: a staged window that its stored one cannot take
    "verify_slices",  # of an aggregate: compare staged windows with the facts of their job
    "replace_windows",  # delete the windows that staged ones replace
    "add_windows",  # add staged windows to those that exist, and insert the others
    "find_staging",  # the staged results of closed runs
    "remove_staged",
    "remove_windows",  # that begin before an instant
    "read_windows",  # of one value of the first column of the key, in a span of time
    "read_last_window",
    "find_subject_windows",  # the first and the last beginning of the windows of subjects
    "remove_subject_windows",
    "remove_subject_staged",
]


@dataclass(frozen=True, slots=True)
class OfRows:
    """The name of a statement that an engine builds from the fields of row classes. One verb takes several classes."""

    verb: RowVerb
    row_classes: tuple[type, ...]

    @property
    def row_class(self) -> type:
        """The class of a statement about one class."""
        (only,) = self.row_classes
        return only

    def __str__(self) -> str:
        return f"{self.verb} {', '.join(one.__name__ for one in self.row_classes)}"


def of_rows(verb: RowVerb, *row_classes: type) -> OfRows:
    """Return the name of a statement about row classes."""
    return OfRows(verb, row_classes)


Named = str | OfRows  # a statement of sql/queries, or one that is built from row classes


@dataclass(frozen=True, slots=True)
class Step:
    """One statement of a transaction.

    `values` are its parameters by name. The kept numbers of earlier steps are parameters too. With `many`, the
    statement runs once for each member: further parameters of a named statement, or placed rows of a row class. If the
    statement touches a different number of rows than `expect`, the transaction ends with the error that `otherwise`
    makes. `keeps` names the number that the statement returns. `counts` names the kept number to which the touched rows
    are added. The rows of the step that `answers` are the answer of the script. A duplicate in a key or a table of
    `races` means that another transaction was first: `otherwise` makes the error, or it is StoreUnavailable.
    For a state, the script runs again instead, and a second duplicate of one key is DataRefused.
    """

    statement: Named
    values: Mapping[str, Any] = field(default_factory=dict)
    many: Sequence[Any] | None = None
    expect: int | None = None
    otherwise: Callable[[], Exception] | None = None
    keeps: str | None = None
    counts: str | None = None
    answers: bool = False
    races: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Script:
    """The steps of one transaction, in lock order. `subject` names it in errors.

    `may_repeat`: running it twice does no more than running it once, so a lost answer is StoreUnavailable, which is
    retried. Without `durable`, a loss of power may take the transaction back, together with every later one, until the
    next durable transaction is committed. So a caller that continues the work reads its progress from the database. A
    script that `gives_way` loses every deadlock with one that does not: it is long, and nobody waits for it.
    """

    subject: str
    steps: tuple[Step, ...]
    may_repeat: bool = False
    durable: bool = True
    gives_way: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """The numbers that a script kept, and the rows of the step that answers."""

    kept: Mapping[str, int]
    rows: list[tuple[Any, ...]]
