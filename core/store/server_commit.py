"""Put a commit into the one T-SQL batch of sql/sqlserver/commit_batch.sql: its text, and its parameters."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import orjson

from core.errors import DataRefused
from core.model.commits import BatchCommit, Settled
from core.model.rows import row_table
from core.store.aggregation_types import AGGREGATION_TYPES
from core.store.operator_types import OPERATOR_TYPES
from core.store.queries import SQL, load_queries
from core.store.records import checkpoint_values, gap_values, ledger_values, letter_values
from core.store.row_statements import rows_variable, server_write
from core.store.server_json import FOLDED, PLAIN, rows_json, storable_json

# How each parameter of a named query is declared. Instants are sent as text: a datetime loses its fraction. Texts are
# wider than any column: a variable cuts what is too long without a word, where the column refuses it.
_INSTANT = ("datetime2(7)", "CONVERT(datetime2(7), ?, 126)")
_TEXT, _NAME, _JSON = ("nvarchar(4000)", "?"), ("varchar(8000)", "?"), ("nvarchar(max)", "?")
_TYPES: dict[str, tuple[str, str]] = (
    {
        "absent": ("bigint", "?"),
        "anchored_at": _INSTANT,
        "applied_at": _INSTANT,
        "asked": _JSON,
        "began_at": _INSTANT,
        "carried": _JSON,
        "claimed_at": _INSTANT,
        "claimed_by": _TEXT,
        "claimed_until": _INSTANT,
        "commit_id": ("uniqueidentifier", "CONVERT(uniqueidentifier, ?)"),
        "commit_number": ("bigint", "?"),
        "committed_at": _INSTANT,
        "consumer_group": _TEXT,
        "dead_lettered": ("int", "?"),
        "diffs": _JSON,
        "done_at": _INSTANT,
        "done_by": _TEXT,
        "due_at": _INSTANT,
        "enqueued_at": _INSTANT,
        "entry": _JSON,
        "etag": _NAME,
        "event_hub": _TEXT,
        "events": ("bigint", "?"),
        "events_changed": ("bigint", "?"),
        "expected": ("bigint", "?"),
        "expected_etag": _NAME,
        "expected_next": ("bigint", "?"),
        "fault": _TEXT,
        "filtered": ("int", "?"),
        "first_sequence_number": ("bigint", "?"),
        "folded": ("nvarchar(40)", "?"),
        "found_at": _INSTANT,
        "gone": ("bigint", "?"),
        "gone_ranges": _JSON,
        "invocation_id": _TEXT,
        "is_dry_run": ("bit", "?"),
        "job_id": _NAME,
        "job_ids": _JSON,
        "keys": _JSON,
        "kind": _NAME,
        "last_modified_at": _INSTANT,
        "last_sequence_number": ("bigint", "?"),
        "left_out": _JSON,
        "letter_count": ("int", "?"),
        "letters_added": ("bigint", "?"),
        "letters_resolved": ("bigint", "?"),
        "most": ("int", "?"),
        "move_id": _TEXT,
        "moved_at": _INSTANT,
        "name": _TEXT,
        "next_sequence_number": ("bigint", "?"),
        "offset_token": _TEXT,
        "owner_id": _TEXT,
        "partition_id": _NAME,
        "plain": ("nvarchar(40)", "?"),
        "ranges": _JSON,
        "reason": _TEXT,
        "requested_at": _INSTANT,
        "requested_by": _TEXT,
        "rows_added": ("bigint", "?"),
        "rows_changed": ("bigint", "?"),
        "rows_removed": ("bigint", "?"),
        "rows_retracted": ("bigint", "?"),
        "rows_written": ("int", "?"),
        "sequence_number": ("bigint", "?"),
        "sequence_numbers": _JSON,
        "settled_why": _TEXT,
        "sources": _NAME,
        "states_left": ("bigint", "?"),
        "states_rewritten": ("bigint", "?"),
        "status": _NAME,
        "stream_id": ("int", "?"),
        "succeeded": _JSON,
        "touched_by": _TEXT,
        "transform_version": _TEXT,
        "updated_at": _INSTANT,
        "version": ("int", "?"),
        "why": _TEXT,
        "written": ("int", "?"),
    }
    | AGGREGATION_TYPES
    | OPERATOR_TYPES
)
_LETTER = (
    "sequence_number", "offset_token", "enqueued_at", "partition_key", "properties_at", "properties_length", "body_at",
    "body_length", "body_kept", "error_class", "error_type", "error", "fingerprint", "transform_version", "status",
    "due_at", "failed_at",
)  # fmt: skip
_GAP = ("first_sequence_number", "last_sequence_number", "status")
UNFOLDING = {"folded": FOLDED, "plain": PLAIN}  # what the statements of folded texts take besides


def statement(text: str, params: Iterable[str]) -> str:
    """A named query as one batch: nothing counted, every parameter declared, so that each is given once."""
    return f"SET NOCOUNT ON;\n{declare(tuple(params))}\n{text}"


def commit_statement(commit: BatchCommit) -> tuple[str, list[Any]]:
    """The text of a commit's batch, the same for commits of one shape, and its parameters in order."""
    letters, first, gaps = commit.settled.letters, commit.expected is None, bool(commit.gaps)
    values = server_texts({**ledger_values(commit, 0), **checkpoint_values(commit), **UNFOLDING})
    sent = shaped_rows(commit.settled)
    shapes = tuple((row_class, folded) for row_class, (_, folded) in sent.items())
    given = [values[name] for name in _scalars(first, _unfolds(shapes, bool(letters)))]
    given += [rows for rows, _ in sent.values()]
    given += _letters(commit) if letters else []
    given += [_gaps(commit)] if gaps else []
    return _commit_text(first, shapes, bool(letters), gaps), given


def _unfolds(shapes: Iterable[tuple[type, bool]], letters: bool) -> bool:
    return letters or any(folded for _, folded in shapes)


@cache
def _commit_text(first: bool, shapes: tuple[tuple[type, bool], ...], letters: bool, gaps: bool) -> str:
    queries = load_queries("sqlserver")
    tables = [rows_variable(row_table(row_class)) for row_class, _ in shapes]
    writes = [server_write(row_class, folded).text for row_class, folded in shapes]
    writes += [queries["add_letter"].text] if letters else []
    writes.append(queries["record_batch"].text)
    writes += [queries["settle_gap"].text, queries["add_gap"].text] if gaps else []
    scalars = _scalars(first, _unfolds(shapes, letters))
    tables += ["letters", "letter_texts"] * letters + ["gaps"] * gaps
    return template("commit_batch").format(
        declarations=declare(scalars, tables),
        checkpoint=queries["open_checkpoint" if first else "advance_checkpoint"].text,
        writes="\n".join(writes),
    )


def template(name: str) -> str:
    """A batch to be filled in, without its comments: the driver looks for parameters in them too."""
    lines = (SQL / "sqlserver" / f"{name}.sql").read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.startswith("--"))


@cache
def _scalars(first: bool, unfolds: bool) -> tuple[str, ...]:
    queries = load_queries("sqlserver")
    names = (*queries["open_checkpoint" if first else "advance_checkpoint"].params, *queries["record_batch"].params)
    names += tuple(UNFOLDING) if unfolds else ()
    return tuple(name for name in dict.fromkeys(names) if name != "commit_number")


def declare(params: Iterable[str], tables: Iterable[str] = ()) -> str:
    """The declaration of every parameter, and of the JSON of tables."""
    declared = [f"@{name} {_TYPES[name][0]} = {_TYPES[name][1]}" for name in params]
    declared += [f"@{table} nvarchar(max) = ?" for table in tables]
    return f"DECLARE {', '.join(declared)};" if declared else ""


def shaped_rows(settled: Settled) -> dict[type, tuple[str, bool]]:
    """The rows of each class that has some: an array each, as JSON, and whether its texts are folded.

    Raises DataRefused for what cannot be sent.
    """
    try:
        return {
            row_class: rows_json(server_write(row_class).values_of(placed, 0, "", 0))
            for row_class, placed in settled.rows.items()
            if placed
        }
    except (orjson.JSONEncodeError, ValueError) as error:
        raise DataRefused(f"the rows cannot be written as JSON: {error.__cause__ or error}") from error


def _letters(commit: BatchCommit) -> list[str]:
    """The letters as JSON, and one text that holds what may be long."""
    return cut_out_letters([letter_values(letter, commit) for letter in commit.settled.letters], _LETTER)


def cut_out_letters(letters: Iterable[dict[str, Any]], order: Sequence[str]) -> list[str]:
    """Letters as JSON arrays in an order, and one text that holds what may be long: properties as ASCII, bodies in hex.

    Each letter says where its own begin.
    """
    sent, texts = [], LongTexts()
    for letter in letters:
        values = server_texts(letter)
        values["body"] = values["body"].hex()
        for name in ("properties", "body"):
            values[f"{name}_at"], values[f"{name}_length"] = texts.place(values[name])
        sent.append([values[name] for name in order])
    return [storable_json(sent), str(texts)]


class LongTexts:
    """Texts of ASCII as one: OPENJSON of some servers gives no more than 4000 characters of any."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._end = 1  # counted as SUBSTRING does; a character is one unit there

    def place(self, text: str) -> tuple[int, int]:
        """Where this text begins, and its length."""
        begin, self._end = self._end, self._end + len(text)
        self._texts.append(text)
        return begin, len(text)

    def __str__(self) -> str:
        return "".join(self._texts)


def _gaps(commit: BatchCommit) -> str:
    """The parts of gaps as JSON."""
    parts = [gap_values(gap, commit) for gap in commit.gaps]
    return storable_json([[part[name] for name in _GAP] for part in parts])


def server_texts(values: dict[str, Any]) -> dict[str, Any]:
    """The same values with instants as T-SQL reads them, without the Z."""
    return {
        name: value.removesuffix("Z") if name.endswith(("_at", "_until")) and isinstance(value, str) else value
        for name, value in values.items()
    }
