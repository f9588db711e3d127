"""Put a piece of a replay into one T-SQL batch: its text, the same for pieces of one shape, and its parameters."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from core.model.rows import row_table
from core.replay.job import ReplayRequest
from core.replay.pieces import RehearsedPiece, ReplayCommit
from core.store.queries import load_queries
from core.store.replay_records import (
    COUNTED,
    commit_values,
    rehearsal_values,
    replayed_letter_values,
    request_values,
)
from core.store.replay_statements import server_retraction, server_set_states
from core.store.row_statements import rows_variable, server_write
from core.store.server_commit import UNFOLDING, LongTexts, cut_out_letters, declare, server_texts, shaped_rows, template
from core.store.server_json import storable_json

_REPLAYED_LETTER = (
    "sequence_number", "error_class", "error_type", "error", "fingerprint", "transform_version", "status", "due_at",
    "failed_at", "offset_token", "enqueued_at", "partition_key", "properties_at", "properties_length", "body_at",
    "body_length", "body_kept",
)  # fmt: skip
_OF_LETTERS = {*_REPLAYED_LETTER, "properties", "body", "commit_number"}
_WRITES = ("count_replay", "resolve_letters", "record_attempts", "record_replay")
_LETTERS = ("reopen_letters", "add_replayed_letters")
_JOB = ("forget_staged", "advance_replay", "carry_states", "hold_replay_job")
_OPENING = ("lock_partitions", "find_overlap", "add_replay_job", "add_replay_progress")
_REHEARSED = ("advance_replay", "add_replay_diffs", "carry_states", "hold_replay_job")
_CLOSING = ("close_replay_progress", "hold_replay_job", "end_replay_job", "forget_states")

Batch = tuple[str, list[Any]]
Shape = tuple[type, bool | None]  # a row class, and whether its rows are sent folded; None when it has none


def commit_replay_statement(commit: ReplayCommit) -> Batch:
    """The batch that commits a piece."""
    return _piece("commit_replay", commit, (*_WRITES, *_JOB))


def rehearse_replay_statement(commit: ReplayCommit) -> Batch:
    """The batch that does a piece, tells what it did, and rolls it back."""
    return _piece("rehearse_replay", commit, _WRITES)


def open_replay_statement(request: ReplayRequest, stream_id: int) -> Batch:
    """The batch that keeps a new job; it answers with the job in its way, or nothing."""
    values = {**server_texts(request_values(request, stream_id)), **UNFOLDING}
    values["ranges"] = storable_json([(one.partition_id, *one.span.ends, one.note) for one in request.ranges])
    return _opening_text(request.is_dry_run), [values[name] for name in (*_params(_OPENING), *UNFOLDING)]


def note_rehearsal_statement(rehearsed: RehearsedPiece) -> Batch:
    """The batch that moves the progress of a dry run."""
    values = server_texts(rehearsal_values(rehearsed))
    texts = LongTexts()
    values["diffs"] = json.dumps([(one.sequence_number, *texts.place(one.diff)) for one in rehearsed.diffs])
    values |= {"diff_texts": str(texts), **_carried(values)}
    given = [values[name] for name in (*_params(_REHEARSED), "diff_texts", "carried_texts")]
    return _progress_text(), given


def close_replay_statement(values: Mapping[str, Any]) -> Batch:
    """The batch that closes a partition, and the job with its last one."""
    given = server_texts(dict(values))
    return _closing_text(), [given[name] for name in _params(_CLOSING)]


def _carried(values: Mapping[str, Any]) -> dict[str, str]:
    """The states that are carried along, and the one text that holds their columns."""
    texts = LongTexts()
    carried = json.dumps([(key, number, *texts.place(row)) for key, number, row in json.loads(values["carried"])])
    return {"carried": carried, "carried_texts": str(texts)}


def _piece(name: str, commit: ReplayCommit, queries: tuple[str, ...]) -> Batch:
    sent, letters = shaped_rows(commit.settled), commit.settled.letters
    shapes = tuple((row_class, sent[row_class][1] if row_class in sent else None) for row_class in commit.row_classes)
    values = {**server_texts(commit_values(commit)), **UNFOLDING}
    values |= _carried(values)
    given = [values[param] for param in _scalars(queries, bool(letters))]
    given += [values["carried_texts"]] if "carry_states" in queries else []
    given += [sent[row_class][0] for row_class, folded in shapes if folded is not None]
    told = [replayed_letter_values(letter, commit) for letter in letters]
    given += cut_out_letters(told, _REPLAYED_LETTER) if letters else []
    return _piece_text(name, queries, shapes, bool(letters)), given


@cache
def _piece_text(name: str, names: tuple[str, ...], shapes: tuple[Shape, ...], letters: bool) -> str:
    queries = {name: query.text for name, query in load_queries("sqlserver").items()}
    variables = ["carried_texts"] if "carry_states" in names else []
    variables += [rows_variable(row_table(row_class)) for row_class, folded in shapes if folded is not None]
    variables += ["letters", "letter_texts"] if letters else []
    reopen = f"{queries['reopen_letters']}\n{queries['add_replayed_letters']}\nSET @letters_added = @@ROWCOUNT;"
    resolve = f"{queries['resolve_letters']}\nSET @letters_resolved = @@ROWCOUNT;"
    return template(name).format(
        declarations=declare(_scalars(names, letters), variables),
        partition=queries["count_replay"],
        rows="\n".join(_rows_text(*shape) for shape in shapes),
        letters=f"{resolve}\n{reopen}" if letters else resolve,
        attempts=queries["record_attempts"],
        ledger=queries["record_replay"],
        staged=queries["forget_staged"],
        progress=queries["advance_replay"],
        states=queries["carry_states"],
        job=queries["hold_replay_job"],
    )


def _rows_text(row_class: type, folded: bool | None) -> str:
    if row_table(row_class).key:
        return "" if folded is None else server_set_states(row_class, folded).text
    taken = server_retraction(row_class)
    return taken if folded is None else f"{taken}\n{server_write(row_class, folded).text}"


@cache
def _opening_text(is_dry_run: bool) -> str:
    queries = {name: query.text for name, query in load_queries("sqlserver").items()}
    overlap = queries["find_overlap"].replace("SELECT MIN(j.job_id) AS job_id", "SELECT @standing = MIN(j.job_id)")
    return template("open_replay").format(
        declarations=declare((*_params(_OPENING), *UNFOLDING)),
        locks=queries["lock_partitions"],
        overlap="" if is_dry_run else overlap,
        job=queries["add_replay_job"],
        progress=queries["add_replay_progress"],
    )


@cache
def _progress_text() -> str:
    progress, diffs, states, job = (load_queries("sqlserver")[name].text for name in _REHEARSED)
    return template("move_progress").format(
        declarations=declare(_params(_REHEARSED), ["diff_texts", "carried_texts"]),
        progress=progress,
        guard="IF @@ROWCOUNT <> 1 THROW 51008, 'the replay moved on', 1;",
        writes=f"{diffs}\n{states}",
        job=job,
        end="",
    )


@cache
def _closing_text() -> str:
    progress, job, end, forget = (load_queries("sqlserver")[name].text for name in _CLOSING)
    return template("move_progress").format(
        declarations=declare(_params(_CLOSING)), progress=progress, guard="", writes="", job=job, end=f"{end}\n{forget}"
    )


@cache
def _scalars(names: tuple[str, ...], letters: bool) -> tuple[str, ...]:
    own = [param for param in _params(names) if param not in COUNTED and param != "commit_number"]
    own += [param for param in _params(_LETTERS) if param not in _OF_LETTERS] if letters else []
    return tuple(dict.fromkeys((*own, *UNFOLDING)))


def _params(names: tuple[str, ...]) -> tuple[str, ...]:
    queries = load_queries("sqlserver")
    return tuple(dict.fromkeys(param for name in names for param in queries[name].params))
