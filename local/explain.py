"""`python -m local.explain commit_batch`: print the T-SQL of a transaction, and its locks in their order.

This reads the form in which all statements of `sql/` are written, and no other T-SQL.

`rights` prints the rights that the app needs on each table, with the statements that need them.
"""

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from core.aggregation.runs import NO_CUT, AggregationRun, Portion, Staged, StagedSlice
from core.aggregation.store import close_run_script, portion_script
from core.errors import HubledgerError
from core.letters.store import claim_script, retry_script
from core.model.aggregates import SLICES
from core.model.commits import BatchCommit, Checkpoint, DeadLetter, PartitionState, Settled
from core.model.events import Event, Partition, PartitionId, SequenceNumber, Span
from core.model.letters import LetterClaim, LetterOutcome, RetryCommit
from core.model.release import DEFAULT_TRANSFORM
from core.model.rows import row_table
from core.replay.pieces import PartitionProgress, PartitionRange, Piece, ReplayCommit
from core.replay.store import commit_script
from core.settle.partition_store import batch_script
from core.store.queries import SQL, load_queries
from core.store.script import OfRows, RowVerb, Script, of_rows
from core.store.sqlserver.batch import run_text, step_text
from core.store.sqlserver.statements import rows_query
from core.store.window_statements import WINDOW_VERBS
from core.transforms.loading import find_aggregate, load_aggregates, load_transform

_REMARKS_AND_TEXTS = re.compile(r"--[^\n]*|'(?:[^']|'')*'")
_TABLE = re.compile(r"\bhubledger\.(?P<table>\w+)(?: AS (?P<alias>\w+))?")
_INSERTED = re.compile(r"\bINTO hubledger\.(\w+)")
_CHANGED = re.compile(r"\b(?P<verb>UPDATE|DELETE)(?: TOP \(@\w+\))?(?: FROM)? (?:hubledger\.)?(?P<target>\w+)")


@dataclass(frozen=True, slots=True, order=True)
class Use:
    """The use of a table: SELECT, INSERT, UPDATE or DELETE, which is also the right that the use needs."""

    table: str
    verb: str


def uses_of(text: str) -> tuple[Use, ...]:
    """Return the uses of tables in the order in which the statements of a text come, each once.

    A statement that changes existing rows reads them too: SQL Server asks for SELECT wherever it has a condition.
    """
    statements = _REMARKS_AND_TEXTS.sub("''", text).split(";")
    return tuple(dict.fromkeys(use for statement in statements for use in _uses(statement)))


def _uses(statement: str) -> Iterator[Use]:
    inserted, changed = _INSERTED.search(statement), _CHANGED.search(statement)
    if inserted:
        yield Use(inserted[1], "INSERT")
        statement = statement[: inserted.start()] + statement[inserted.end() :]
    named = list(_TABLE.finditer(statement))
    if changed:
        tables = {found["alias"] or found["table"]: found["table"] for found in named}
        yield Use(tables[changed["target"]], changed["verb"])
    yield from (Use(found["table"], "SELECT") for found in named)


RIGHTS = "rights"
KEPT = ("REPEATABLEREAD", "UPDLOCK", "HOLDLOCK")  # the hints of a read that keep its locks until the end
_HINTS = re.compile(r"hubledger\.(\w+) AS \w+ WITH \(([A-Z, ]+)\)")
OF_THE_OWNER = ("create_schema_migration", "record_migration")  # the app never sends them
_APPENDED: tuple[RowVerb, ...] = ("append", "retract", "delete", "find_lettered", "stub_subject")
_STATES: tuple[RowVerb, ...] = ("set", "retract_states", "replace_states", "select_states", "select_standing")
_EACH: tuple[RowVerb, ...] = (
    "select_placed",
    "count_rows",
    "find_row_faults",
    "next_number",
    "select_subject",
    "delete_subject",
)
_BY_SUBJECT = ("select_subject", "stub_subject", "delete_subject")  # of a table that names its subject

_AT = datetime(2026, 1, 1, tzinfo=UTC)
_ID = UUID(int=0)
_EVENT = Event(SequenceNumber(7), "448", _AT, None, {}, b"")
_LETTER = DeadLetter(_EVENT, "unknown", "", "", "", "waiting")
_STATE = PartitionState(
    Partition("", "", PartitionId("0")), 1, Checkpoint(SequenceNumber(6), "384", _AT, 1, _ID), stops=()
)
RowClasses = tuple[type, ...]


def main(arguments: list[str] | None = None) -> int:
    """Print the transactions of these names. On a fault, print one line on stderr and return 1."""
    parser = argparse.ArgumentParser(prog="python -m local.explain", description=__doc__)
    parser.add_argument("names", nargs="+", choices=[*TRANSACTIONS, RIGHTS], metavar="name", help=_NAMES)
    parser.add_argument(
        "--transform", default=DEFAULT_TRANSFORM, metavar="MODULE", help="whose rows it writes; %(default)s"
    )
    given = parser.parse_args(arguments)
    try:
        row_classes = load_transform(given.transform).row_classes
        texts = [rights_text(row_classes) if name == RIGHTS else explained(name, row_classes) for name in given.names]
    except HubledgerError as error:
        print(f"explain: {error}", file=sys.stderr)
        return 1
    print("\n\n".join(texts))
    return 0


def explained(name: str, row_classes: RowClasses) -> str:
    """Return the text of a transaction as it is sent, after remarks that name the locks of its steps in their order."""
    script = TRANSACTIONS[name](row_classes)
    locks = "".join(f"--   {line}\n" for line in lock_lines(script))
    return f"-- {name}: the locks that it takes, in this order, and keeps until its end\n{locks}{run_text(script)}"


def lock_lines(script: Script) -> list[str]:
    """Return a line for each table of which a step locks rows: the hints that keep what it reads, the changes, and the
    name of the step."""
    lines = []
    for step in script.steps:
        text = step_text(step)
        locks: dict[str, list[str]] = defaultdict(list)
        for table, hints in _HINTS.findall(text):
            locks[table] += [hint for hint in hints.split(", ") if hint in KEPT]
        for use in uses_of(text):
            if use.verb != "SELECT":
                locks[use.table].append(use.verb)
        kept = {table: " and ".join(dict.fromkeys(words)) for table, words in locks.items() if words}
        lines += [f"{table:<22} {words:<18} {step.statement}" for table, words in kept.items()]
    return lines


def rights_text(row_classes: RowClasses) -> str:
    """Return a line for each right that the app needs: the table, the right, and the statements that need it."""
    needed = sorted(rights_of_statements(row_classes).items())
    return "\n".join(f"{use.table:<22} {use.verb:<7} {', '.join(names)}" for use, names in needed)


def rights_of_statements(row_classes: RowClasses) -> Mapping[Use, list[str]]:
    """Return the rights that the app needs, each with the statements that need it."""
    needed: dict[Use, list[str]] = defaultdict(list)
    for name, text in _statements(row_classes):
        for use in uses_of(text):
            needed[use].append(name)
    return needed


def _statements(row_classes: RowClasses) -> Iterator[tuple[str, str]]:
    room: list[OfRows] = []
    for row_class in row_classes:
        verbs = _STATES if row_table(row_class).key else _APPENDED
        asked = [verb for verb in (*verbs, *_EACH) if row_table(row_class).subject or verb not in _BY_SUBJECT]
        room += (of_rows(verb, row_class) for verb in asked)
    levels = [level for one in load_aggregates(row_classes) for level in one.levels]
    room += (of_rows(verb, level.of) for level in levels for verb in WINDOW_VERBS)
    of_the_room = [(str(of), rows_query(of).text) for of in room]
    # the tables that every app has: a named statement on other tables belongs to the pages of an example
    text = (SQL / "sqlserver" / "permissions.sql").read_text(encoding="utf-8")
    ours = set(re.findall(r"^GRANT .* ON hubledger\.(\w+)", text, re.MULTILINE))
    known = ours | {use.table for _, text in of_the_room for use in uses_of(text)}
    for name, query in load_queries("sqlserver").items():
        if name not in OF_THE_OWNER and all(use.table in known for use in uses_of(query.text)):
            yield name, query.text
    yield from of_the_room


def _commit(row_classes: RowClasses) -> Script:
    return batch_script(BatchCommit(_STATE, _ID, _EVENT.sequence_number, _EVENT, _settled(row_classes), "", "", _AT))


def _retry(row_classes: RowClasses) -> Script:
    outcomes = (LetterOutcome(_EVENT.sequence_number, "resolved", why=""),)
    return retry_script(RetryCommit(_STATE, "", outcomes, _settled(row_classes), "", "", _AT))


def _replay(row_classes: RowClasses) -> Script:
    piece = Piece(Span(_EVENT.sequence_number, _EVENT.sequence_number), (_EVENT,))
    progress = PartitionProgress(PartitionRange(PartitionId("0"), piece.span), _EVENT.sequence_number)
    settled = _settled(row_classes)
    return commit_script(ReplayCommit(_ID, _STATE, piece, settled, {}, row_classes, progress, "", _AT))


def _run_of(row_classes: RowClasses) -> AggregationRun:
    """Return a run of an aggregate of these rows, or of any if they have none."""
    (job, *_) = (one.name for one in (*load_aggregates(row_classes), *load_aggregates()))
    return AggregationRun("", job, 1, NO_CUT, NO_CUT, "", 1, 1, "submitted", _AT, _AT)


def _slices(row_classes: RowClasses) -> Script:
    run = _run_of(row_classes)
    levels = find_aggregate(run.job).levels
    slices = tuple(StagedSlice(number, 1, 1, one.name) for one in levels for number in (0, 1))
    return portion_script(run, Staged("", "", 1, _AT), Portion(0, SLICES - 1, slices))


def _settled(row_classes: RowClasses) -> Settled:
    """Return an outcome with a row of each class, and a letter. No text depends on the row, so there is none."""
    nothing: Any = None
    return Settled({row_class: [(7, 0, nothing)] for row_class in row_classes}, [_LETTER], 1, 0)


TRANSACTIONS: Mapping[str, Callable[[RowClasses], Script]] = {
    "commit_batch": _commit,
    "retry": _retry,
    "replay": _replay,
    "slices": _slices,
    "run": lambda row_classes: close_run_script(_run_of(row_classes), Staged("", "", 1, _AT), _AT),
    "claim": lambda _: claim_script(LetterClaim(_STATE.partition.stream, "", _AT, _AT, _AT, 1), stream_id=1),
}
_NAMES = f"one or more of {', '.join(TRANSACTIONS)}, {RIGHTS}"


if __name__ == "__main__":
    sys.exit(main())
