"""Every T-SQL batch that Hubledger can send, by a name that says where it is from."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

from core.model.commits import BatchCommit, Checkpoint, DeadLetter, PartitionState, SequenceGap, Settled
from core.model.events import Event, Partition, PartitionId
from core.model.letters import LetterMove, LetterOutcome, Move, RetryCommit
from core.model.rows import PlacedRow, row_table
from core.model.spans import SequenceNumber, Span
from core.replay.job import PartitionProgress, PartitionRange, ReplayRequest
from core.replay.pieces import Piece, RehearsedPiece, ReplayCommit
from core.store.queries import SQL, load_migrations, load_queries
from core.store.recount_statements import OF_FAULTS, OF_RANGE, server_count_rows, server_row_faults
from core.store.replay_statements import STANDING, server_count_states
from core.store.row_statements import server_select_placed, server_select_states
from core.store.server_aggregation import COMMIT, PLAN, batch
from core.store.server_commit import UNFOLDING, commit_statement, statement
from core.store.server_letters import move_statement, retry_statement
from core.store.server_replay_commit import (
    close_replay_statement,
    commit_replay_statement,
    note_rehearsal_statement,
    open_replay_statement,
    rehearse_replay_statement,
)
from tests.sql.values import EPOCH, ID, ROW_CLASSES, awkward_row_of, row_of

STATES = tuple(row_class for row_class in ROW_CLASSES if row_table(row_class).key)
POSITION = ("stream_id", "partition_id", "sequence_number")
MOVED: tuple[Move, ...] = ("release", "exhaust", "requeue", "discard", "free")
SCRIPTS = ("lock_migrations", "create_schema", "commit_migrations", "permissions")
IN_A_BATCH_ONLY = (
    "open_checkpoint", "advance_checkpoint", "record_batch", "add_letter", "settle_gap", "add_gap",
    "count_commit", "settle_letters", "record_attempts", "record_retry", "move_letters",
    "count_replay", "resolve_letters", "reopen_letters", "add_replayed_letters", "record_replay", "advance_replay",
    "carry_states", "hold_replay_job", "end_replay_job", "close_replay_progress", "add_replay_diffs", "add_replay_job",
    "add_replay_progress", "lock_partitions", "find_overlap", "forget_staged",
    *PLAN, *COMMIT,
)  # fmt: skip


@cache
def every_batch() -> Mapping[str, str]:
    """All of them, as they are sent."""
    return dict(
        [
            *_scripts(),
            *_migrations(),
            *_queries(),
            *_selects(),
            *run_batches().items(),
            *commit_batches().items(),
            *retry_batches().items(),
            *move_batches().items(),
            *replay_batches().items(),
            *job_batches().items(),
        ]
    )


@cache
def commit_batches() -> Mapping[str, str]:
    """A commit in every shape: first or later, with and without letters, no rows, rows of each class, rows of all.

    And with gaps, after letters and without.
    """
    shapes = [*product((True, False), (True, False), ((), ROW_CLASSES))]
    shapes += [(False, False, (row_class,)) for row_class in ROW_CLASSES]
    named: dict[str, str] = {}
    for first, letters, classes in shapes:
        text, _ = commit_statement(commit_of(classes, first=first, letters=letters))
        named[f"commit {'first' if first else 'later'} {_tables(classes)}{' letters' if letters else ''}"] = text
    for first, letters in product((True, False), (True, False)):
        text, _ = commit_statement(with_gap(commit_of(ROW_CLASSES, first=first, letters=letters)))
        named[f"commit {'first' if first else 'later'} gaps{' letters' if letters else ''}"] = text
    for row_class in ROW_CLASSES:
        text, _ = commit_statement(commit_with({row_class: [(7, 0, awkward_row_of(row_class))]}))
        named[f"commit folded {row_table(row_class).name}"] = text
    return named


@cache
def run_batches() -> Mapping[str, str]:
    """The plan and the commit of an aggregation run."""
    return {"plan of a run": batch("open_run", PLAN), "commit of a run": batch("commit_run", COMMIT)}


@cache
def retry_batches() -> Mapping[str, str]:
    """A retry in every shape: no rows, rows of each class, rows of all."""
    shapes: list[tuple[type, ...]] = [(), *((row_class,) for row_class in ROW_CLASSES), ROW_CLASSES]
    return {f"retry {_tables(classes)}": retry_statement(retry_of(classes))[0] for classes in shapes}


@cache
def move_batches() -> Mapping[str, str]:
    """Every move that is sent as one."""
    return {f"move {move}": move_statement(move_of(move), 1)[0] for move in MOVED}


@cache
def replay_batches() -> Mapping[str, str]:
    """A piece of a replay in every shape: committed and rehearsed, with and without letters and rows of each class."""
    shapes: list[tuple[type, ...]] = [(), *((row_class,) for row_class in ROW_CLASSES), ROW_CLASSES]
    named: dict[str, str] = {}
    for classes, letters in product(shapes, (True, False)):
        commit, tables = replay_of(classes, letters=letters), "+".join(row_table(each).name for each in classes)
        told = f"{tables or 'nothing'}{' letters' if letters else ''}"
        named[f"replay {told}"] = commit_replay_statement(commit)[0]
        named[f"rehearsal {told}"] = rehearse_replay_statement(commit)[0]
    return named


@cache
def job_batches() -> Mapping[str, str]:
    """What is written of a job beside its pieces."""
    return {name: text for name, (text, _) in job_statements().items()}


def job_statements() -> Mapping[str, tuple[str, list[Any]]]:
    """The same with their parameters."""
    commit = replay_of(ROW_CLASSES, letters=False)
    values = {"job_id": str(ID), "partition_id": "0", "states_left": 0, "committed_at": "2026-01-01T00:00:00.000000Z"}
    return {
        "job open": open_replay_statement(request_of(is_dry_run=False), 1),
        "job open dry": open_replay_statement(request_of(is_dry_run=True), 1),
        "job rehearsed": note_rehearsal_statement(RehearsedPiece(commit, commit.counts, ())),
        "job close": close_replay_statement(values),
    }


def request_of(*, is_dry_run: bool) -> ReplayRequest:
    """A request for one event."""
    partition = commit_of((), first=True, letters=False).partition
    ranges = (PartitionRange(partition.partition_id, Span(SequenceNumber(7), SequenceNumber(7)), "a note"),)
    return ReplayRequest(ID, partition.stream, ranges, (), "{}", is_dry_run, "test/1", "somebody", "because", EPOCH)


def replay_of(classes: tuple[type, ...], *, letters: bool) -> ReplayCommit:
    """A piece of one event with a row of each class, taken out of the tables of all."""
    commit = commit_of(classes, first=False, letters=letters)
    event = commit.last
    assert isinstance(event, Event)
    piece = Piece(Span(event.sequence_number, event.sequence_number), (event,))
    progress = PartitionProgress(PartitionRange(commit.partition.partition_id, piece.span), event.sequence_number)
    return ReplayCommit(ID, commit.state, piece, commit.settled, {}, ROW_CLASSES, progress, "test/2", EPOCH)


def without_markers(text: str) -> str:
    """A parameter marker is the driver's, not T-SQL's."""
    return text.replace("?", "NULL")


def without_comments(text: str) -> str:
    """The text without remarks; no string of ours has two hyphens."""
    return re.sub(r"--.*", "", text)


def commit_of(classes: tuple[type, ...], *, first: bool, letters: bool) -> BatchCommit:
    """A commit of one event with a row of each class."""
    partition = Partition("namespace/telemetry", "hubledger", PartitionId("0"))
    event = Event(SequenceNumber(7), "448", EPOCH, None, {}, b"body")
    checkpoint = None if first else Checkpoint(SequenceNumber(6), "384", EPOCH, 1, ID)
    letter = DeadLetter(event, "unknown", "builtins.ValueError", "why", "0123456789abcdef", "waiting")
    rows: dict[type, list[PlacedRow]] = {
        row_class: [(7, at, row_of(row_class))] for at, row_class in enumerate(classes)
    }
    settled = Settled(rows, [letter] if letters else [], int(not letters), 0)
    state = PartitionState(partition, 1, checkpoint)
    return BatchCommit(state, ID, SequenceNumber(7), event, settled, "test/1", "invocation-1", EPOCH)


def with_gap(commit: BatchCommit) -> BatchCommit:
    """The same, of which the number before its event is absent."""
    gaps = (SequenceGap(SequenceNumber(6), SequenceNumber(6), "absent"),)
    return replace(commit, first=SequenceNumber(6), absent=1, gaps=gaps)


def commit_with(rows: Mapping[type, list[PlacedRow]]) -> BatchCommit:
    """The same with rows of your own."""
    commit = commit_of((), first=True, letters=False)
    return replace(commit, settled=Settled(rows, [], 1, 0))


def retry_of(classes: tuple[type, ...]) -> RetryCommit:
    """A retry of one event with a row of each class; without rows it failed."""
    commit = commit_of(classes, first=False, letters=not classes)
    number = commit.last.sequence_number
    resolved = LetterOutcome(number, "resolved", why="its rows were written")
    waits = [LetterOutcome(number, "waiting", failure, EPOCH) for failure in commit.settled.letters]
    outcomes = tuple(waits) or (resolved,)
    return RetryCommit(commit.state, "claim-1", outcomes, commit.settled, "test/2", "invocation-2", EPOCH)


def move_of(move: Move) -> LetterMove:
    """A move of two letters by a person."""
    partition, numbers = commit_of((), first=True, letters=False).partition, (SequenceNumber(7), SequenceNumber(9))
    return LetterMove(move, partition, numbers, "move-1", EPOCH, EPOCH, "somebody", "because")


def _tables(classes: tuple[type, ...]) -> str:
    return "+".join(row_table(row_class).name for row_class in classes) or "nothing"


def _scripts() -> Iterator[tuple[str, str]]:
    for name in SCRIPTS:
        yield f"{name}.sql", (SQL / "sqlserver" / f"{name}.sql").read_text(encoding="utf-8")


def _migrations() -> Iterator[tuple[str, str]]:
    for migration in load_migrations("sqlserver"):
        yield f"migration {migration.version} {migration.name}", statement(migration.text, ())


def _queries() -> Iterator[tuple[str, str]]:
    for name, query in load_queries("sqlserver").items():
        if name not in IN_A_BATCH_ONLY:
            yield f"query {name}", statement(query.text, query.params)


def _selects() -> Iterator[tuple[str, str]]:
    for row_class in ROW_CLASSES:
        if row_table(row_class).key:
            name = row_table(row_class).name
            yield f"select {name}", statement(server_select_states(row_class), ("keys",))
            yield f"select folded {name}", statement(server_select_states(row_class, True), (*UNFOLDING, "keys"))
            yield f"select standing {name}", statement(server_select_states(row_class, False, STANDING), ("keys",))
            span = ("stream_id", "partition_id", "commit_number", "first_sequence_number", "last_sequence_number")
            yield f"count {name}", statement(server_count_states(row_class), span)
        yield f"placed {row_table(row_class).name}", statement(server_select_placed(row_class), POSITION)
        yield f"rows {row_table(row_class).name}", statement(server_count_rows(row_class), OF_RANGE)
    yield "row faults", statement(server_row_faults(ROW_CLASSES), OF_FAULTS)
    yield "row faults of states", statement(server_row_faults(STATES), OF_FAULTS)
