"""Put a commit into the one T-SQL batch of sql/sqlserver/commit_batch.sql: its text, and its parameters."""

from collections.abc import Iterable
from functools import cache
from typing import Any

import orjson

from core.commits import BatchCommit, Settled
from core.errors import DataRefused
from core.rows import row_table
from core.store.aggregation_types import AGGREGATION_TYPES
from core.store.queries import SQL, load_queries
from core.store.records import checkpoint_values, gap_values, ledger_values, letter_values
from core.store.row_statements import rows_variable, server_write
from core.store.server_json import FOLDED, PLAIN, rows_json, storable_json

# How each parameter of a named query is declared. Instants are sent as text: a datetime loses its fraction. Texts are
# wider than any column: a variable cuts what is too long without a word, where the column refuses it.
_INSTANT = ("datetime2(7)", "CONVERT(datetime2(7), ?, 126)")
_TEXT, _NAME, _JSON = ("nvarchar(4000)", "?"), ("varchar(8000)", "?"), ("nvarchar(max)", "?")
_TYPES: dict[str, tuple[str, str]] = {
    "absent": ("bigint", "?"),
    "anchored_at": _INSTANT,
    "applied_at": _INSTANT,
    "began_at": _INSTANT,
    "claimed_at": _INSTANT,
    "claimed_by": _TEXT,
    "claimed_until": _INSTANT,
    "commit_id": ("uniqueidentifier", "CONVERT(uniqueidentifier, ?)"),
    "committed_at": _INSTANT,
    "consumer_group": _TEXT,
    "dead_lettered": ("int", "?"),
    "done_at": _INSTANT,
    "done_by": _TEXT,
    "due_at": _INSTANT,
    "enqueued_at": _INSTANT,
    "etag": _NAME,
    "event_hub": _TEXT,
    "expected": ("bigint", "?"),
    "expected_etag": _NAME,
    "filtered": ("int", "?"),
    "first_sequence_number": ("bigint", "?"),
    "folded": ("nvarchar(40)", "?"),
    "found_at": _INSTANT,
    "invocation_id": _TEXT,
    "keys": _JSON,
    "kind": _NAME,
    "last_modified_at": _INSTANT,
    "last_sequence_number": ("bigint", "?"),
    "letter_count": ("int", "?"),
    "most": ("int", "?"),
    "move_id": _TEXT,
    "moved_at": _INSTANT,
    "name": _TEXT,
    "offset_token": _TEXT,
    "owner_id": _TEXT,
    "partition_id": _NAME,
    "plain": ("nvarchar(40)", "?"),
    "rows_written": ("int", "?"),
    "sequence_number": ("bigint", "?"),
    "sequence_numbers": _JSON,
    "sources": _NAME,
    "status": _NAME,
    "stream_id": ("int", "?"),
    "touched_by": _TEXT,
    "transform_version": _TEXT,
    "updated_at": _INSTANT,
    "version": ("int", "?"),
    "why": _TEXT,
    "written": ("int", "?"),
} | AGGREGATION_TYPES
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
    """The letters as JSON, and one text that holds what may be long: properties as ASCII, bodies in hex.

    Each letter says where its own begin, counted from 1 as SUBSTRING does; a character is one unit there.
    """
    letters, texts, end = [], [], 1
    for letter in commit.settled.letters:
        values = server_texts(letter_values(letter, commit))
        values["body"] = values["body"].hex()
        for name in ("properties", "body"):
            texts.append(values[name])
            values |= {f"{name}_at": end, f"{name}_length": len(values[name])}
            end += len(values[name])
        letters.append([values[name] for name in _LETTER])
    return [storable_json(letters), "".join(texts)]


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
