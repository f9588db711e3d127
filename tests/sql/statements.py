"""Every T-SQL batch that Hubledger can send, by a name that says where it is from."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from typing import get_args
from uuid import UUID

from msgspec import structs

from core.aggregation import runs as aggregation_runs
from core.aggregation.orders import discard_result_script, discard_run_script
from core.aggregation.runs import ALL_DAYS, NO_CUT, Cut, Failure, Order, Portion, RunOrder, Staged, StagedSlice
from core.aggregation.store import close_run_script, ending_steps, fail_steps, plan_script, portion_script, stop_script
from core.audit.task import AuditAsked, audit_request
from core.erasure.erasure import FoundPiece
from core.erasure.store import erasure_script, opening_of
from core.incarnations.next_incarnation import Opening, opening_script
from core.ledger.store import minute_script
from core.ledger.totals import LedgerRange, Minute
from core.letters import redrive
from core.letters.listing import RedriveRange
from core.letters.redrive import NextLetters, RedriveAsked, piece_script, redrive_of, redrive_request
from core.letters.store import claim_script, move_script, retry_script, taking_script
from core.model import commits as model_commits
from core.model.aggregates import SLICES
from core.model.commits import BatchCommit, Checkpoint, DeadLetter, OpenKeys, PartitionStop, SequenceGap, Settled
from core.model.events import Event, Incarnation, Partition, PartitionId, SequenceNumber, Span, Stream
from core.model.letters import LetterClaim, LetterMove, LetterOutcome, Move, OrderedMove, RetryCommit
from core.model.policies import DEFAULT_DAYS, SubjectKey
from core.model.rows import PlacedRow, ReferenceKey, row_table
from core.purge.purge import BY_STREAM, PurgeTarget, RowPiece, SettledLetter, purge_request
from core.purge.store import ledger_script, letter_script, row_script
from core.replay import pieces as replay_pieces
from core.replay.pieces import PartitionRange, Piece, RehearsedPiece, ReplayAsked, ReplayCommit, WrittenState
from core.replay.request import replay_request
from core.replay.store import close_script as close_replay_script
from core.replay.store import commit_script, note_script, rehearsal_script
from core.settle.partition_store import batch_script, noting_script
from core.store.columns import instant_text
from core.store.queries import SQL, load_queries
from core.store.script import OfRows, RowVerb, Script, of_rows
from core.store.sqlserver.batch import Batch, ask_batch, run_batch
from core.store.sqlserver.statements import rows_query
from core.tasks.store import Ending, advance_steps, open_script
from core.tasks.task import Advance, Task, TaskOrder, TaskPart, TaskRequest
from core.transforms.loading import find_aggregate, load_aggregates
from tests.fakes.aggregation_engines import HOME_ACTIVITY
from tests.fakes.rooms import all_migrations
from tests.sql.values import EPOCH, ID, ROW_CLASSES, row_of

OF_APPENDED: tuple[RowVerb, ...] = ("next_partition", "next_number", "find_lettered")
OF_SUBJECTS: tuple[RowVerb, ...] = ("select_subject",)
STATES = tuple(row_class for row_class in ROW_CLASSES if row_table(row_class).key)
MOVED: tuple[Move, ...] = ("release", "exhaust", "requeue", "discard", "free")
FILES = (
    "open_session",
    "lock_migrations",
    "engine_edition",
    "create_schema",
    "begin_migration",
    "commit_migration",
    "permissions",
)
RUN = aggregation_runs.AggregationRun(
    "r", HOME_ACTIVITY, 3, NO_CUT, Cut('{"1/0":1}'), "livy", 1, 1, "submitting", EPOCH, EPOCH
)
GAP = (SequenceNumber(7), SequenceNumber(9))
STAGED = Staged("s", "r", 1, EPOCH)
AT = instant_text(EPOCH)
RENEWED = {"engine": "livy", "attempt": 2, "intent_at": AT, "expected_attempt": 1, "expected_intent_at": AT}


def portion_of(job: str, *, has_whole: bool) -> Portion:
    slices = tuple(
        StagedSlice(number, 1, int(has_whole), one.name) for one in find_aggregate(job).levels for number in (0, 1)
    )
    return Portion(0, SLICES - 1, slices)


PORTION = portion_of(HOME_ACTIVITY, has_whole=True)


@cache
def every_batch() -> Mapping[str, str]:
    sent = {name: text for name, (text, _) in every_run().items()}
    return dict([*_files(), *_migrations(), *_queries(), *_selects(), *sent.items()])


@cache
def every_run() -> Mapping[str, Batch]:
    return {name: run_batch(script, name.startswith("rehearsal ")) for name, script in every_script().items()}


@cache
def every_script() -> Mapping[str, Script]:
    letters = {**retries(), **moves(), **claims()}
    gap = {"gap noted": noting_script(commit_of((), first=False, letters=False).state, Span(*GAP), EPOCH)}
    minute = {"minute": minute_script(1, Minute(EPOCH, 7, 9))}
    orders = {**replays(), **jobs(), **redrives(), **purges(), **erasures()}
    return {**commits(), **gap, **letters, **orders, **tasks(), **aggregations(), **incarnations(), **minute}


def purges() -> Mapping[str, Script]:
    partition = commit_of((), first=True, letters=False).partition
    ending = Ending(UUID(int=7), "purge", EPOCH)
    ahead = Advance("a part", 3, 0, "{}")
    row = LedgerRange(1, "replay", *GAP, 1, 0, 0, 0, 0, 1, "test/1", str(UUID(int=8)), EPOCH)
    letters = (SettledLetter(GAP[0], EPOCH, None, 1, 0),)
    pieces = {table: RowPiece(PurgeTarget(table), EPOCH, 9, "task", 7) for table in BY_STREAM}
    pieces["retracted_row"] = RowPiece(PurgeTarget("retracted_row", partition.partition_id), EPOCH, 9, rows=7)
    place = {"stream_id": 1, "partition_id": partition.partition_id}
    values = {**place, "last_commit": 1, "before_at": instant_text(EPOCH), "most": 9}
    return {
        "purge ledger": ledger_script(place, (row,), GAP[1], ending, ahead),
        "purge letters": letter_script(place, letters, ending, ahead),
        **{f"purge {name}": row_script(values, piece, ending, ahead) for name, piece in pieces.items()},
    }


def erasures() -> Mapping[str, Script]:
    partition, number = commit_of((), first=True, letters=False).partition, SequenceNumber(7)
    found = FoundPiece(
        1,
        partition,
        ("home-7", "7"),
        Span(*GAP),
        {row_class: 1 for row_class in ROW_CLASSES if row_table(row_class).subject},
        letters=GAP,
        reasons=((number, 2),),
        staged=(number,),
        retracted=((2, "sensor_reading", number, 0),),
        diffs=((str(ID), number),),
    )
    ending = Ending(ID, "erasure", EPOCH)
    ahead = Advance("0", 0, 10, "{}")
    none = FoundPiece(1, partition, (), Span(*GAP), {})
    order = TaskOrder(ID, 1, "ann", "a request", EPOCH)
    request = TaskRequest(order, "erasure", "", "{}", (), holds_numbers=True)
    opening = opening_of(request, ("7",), SubjectKey("secret", "former"), EPOCH)
    return {
        "erasure opening": open_script(request, opening),
        "erasure piece": erasure_script(found, "ann", ending, ahead),
        "erasure piece without finds": erasure_script(none, "ann", ending, ahead),
    }


def tasks() -> Mapping[str, Script]:
    """Return the opening of an audit and of a purge, and pieces that only advance parts."""
    order, ids = TaskOrder(UUID(int=9), 1, "ann", "room", EPOCH), (PartitionId("0"),)
    ending = Ending(UUID(int=9), "audit", EPOCH)
    ahead = Advance("0", 0, 0, "{}")
    return {
        "audit open": open_script(audit_request(order, AuditAsked(), ids)),
        "task open": open_script(purge_request(order, DEFAULT_DAYS, ids)),
        "part closed": Script("audit", tuple(advance_steps(ending, replace(ahead, is_last=True)))),
        "part advanced": Script("audit", tuple(advance_steps(ending, ahead))),
    }


def commits() -> Mapping[str, Script]:
    shapes = [*product((True, False), (True, False), ((), ROW_CLASSES))]
    shapes += [(False, False, (row_class,)) for row_class in ROW_CLASSES]
    named: dict[str, Script] = {}
    for first, letters, classes in shapes:
        name = f"commit {'first' if first else 'later'} {_tables(classes)}{' letters' if letters else ''}"
        named[name] = batch_script(commit_of(classes, first=first, letters=letters))
    for first, letters in product((True, False), (True, False)):
        name = f"commit {'first' if first else 'later'} gaps{' letters' if letters else ''}"
        named[name] = batch_script(with_gap(commit_of(ROW_CLASSES, first=first, letters=letters)))
    marked = replace(commit_of(ROW_CLASSES, first=False, letters=True), is_marked=True)
    named["commit later marked"] = batch_script(marked)
    plain = commit_of(ROW_CLASSES, first=False, letters=True)
    unknown = replace(plain.settled, unknown_fields={"coupon": 2})
    named["commit later unknown fields"] = batch_script(replace(plain, settled=unknown))
    named["commit ordered"] = batch_script(in_order(commit_of(ROW_CLASSES, first=False, letters=True)))
    return named


def retries() -> Mapping[str, Script]:
    return {f"retry {_tables(classes)}": retry_script(retry_of(classes)) for classes in _classes()}


def moves() -> Mapping[str, Script]:
    return {f"move {move}": move_script(move_of(move), 1) for move in MOVED}


def claims() -> Mapping[str, Script]:
    claim = LetterClaim(commit_of((), first=True, letters=False).partition.stream, "claim-1", EPOCH, EPOCH, EPOCH, 1)
    return {"claim": claim_script(claim, 1), "taking": taking_script(retry_of(()), EPOCH)}


def replays() -> Mapping[str, Script]:
    """Return a piece of a replay: committed and rehearsed, with and without letters, states to carry and rows."""
    named: dict[str, Script] = {}
    for classes, letters in product(_classes(), (True, False)):
        commit, shape = replay_of(classes, letters=letters), f"{_tables(classes)}{' letters' if letters else ''}"
        named[f"replay {shape}"] = commit_script(commit)
        named[f"rehearsal {shape}"] = rehearsal_script(commit)
    carried = {ReferenceKey.of(row_of(each)): WrittenState(SequenceNumber(7), row_of(each)) for each in STATES}
    ordered = replay_in_order(replay_of(ROW_CLASSES, letters=True))
    named["replay ordered"], named["rehearsal ordered"] = commit_script(ordered), rehearsal_script(ordered)
    named["replay carrying"] = commit_script(replace(replay_of(ROW_CLASSES, letters=True), carried=carried))
    return named


def jobs() -> Mapping[str, Script]:
    commit = replay_of(ROW_CLASSES, letters=False)
    return {
        "job open": open_script(request_of(is_dry_run=False)),
        "job open dry": open_script(request_of(is_dry_run=True)),
        "job rehearsed": note_script(RehearsedPiece(commit, commit.counts, ())),
        "job close": close_replay_script(
            running(request_of(is_dry_run=False), commit.partition.stream), commit.progress, 0, EPOCH
        ),
    }


def redrives() -> Mapping[str, Script]:
    named: dict[str, Script] = {}
    for move in get_args(OrderedMove):
        letters = replace(move_of(move), move_id=str(ID))
        ranges = (RedriveRange(letters.partition.partition_id, Span(SequenceNumber(7), SequenceNumber(9)), 2),)
        request = redrive_request(TaskOrder(ID, 1, "somebody", "because", EPOCH), RedriveAsked(move, {}), ranges, 5)
        job = redrive_of(running(request, letters.partition.stream))
        walked = NextLetters(letters.sequence_numbers, SequenceNumber(9))
        named[f"redrive open {move}"] = open_script(request)
        named[f"redrive piece {move}"] = piece_script(job, walked, EPOCH)
        named[f"redrive close {move}"] = redrive.close_redrive_script(job, EPOCH)
    return named


def running(request: TaskRequest, stream: Stream) -> Task:
    order = request.order
    parts = tuple(TaskPart(one.name, one.span, one.position, 0, one.asked, one.report, None) for one in request.parts)
    asked = (request.is_dry_run, request.asked, order.digest, request.total or 0, 3, request.per_second)
    begun = (ID, request.kind, stream, 1, "running", *asked, EPOCH, order.by, order.why, order.at, order.at, None)
    return Task(*begun, order.at, None, "", request.transform_version, parts=parts)  # type: ignore[arg-type]


def aggregations() -> Mapping[str, Script]:
    failure, order = (
        Failure("r", 1, 1, EPOCH, "why"),
        Order(HOME_ACTIVITY, "discard_run", "somebody", "because", EPOCH),
    )
    runs = {one.name: replace(RUN, job=one.name) for one in load_aggregates()}
    parts = {
        f"run slices of {name}": portion_script(run, STAGED, portion_of(name, has_whole=True))
        for name, run in runs.items()
    }
    return {
        **parts,
        "run slices": portion_script(RUN, STAGED, portion_of(RUN.job, has_whole=False)),
        "run plan": plan_script(RUN),
        "run plan ordered": plan_script(RUN, RunOrder("repair", ALL_DAYS, EPOCH, "somebody", "because")),
        "run result": close_run_script(RUN, STAGED, EPOCH),
        "run submitted": Script("submit", ending_steps("renew_intent", RUN, RENEWED, failure)),
        "run ended": Script("end", fail_steps(RUN, "why", EPOCH, failure)),
        "run stopped": stop_script(RUN, STAGED, "why", failure),
        "run discarded": discard_run_script(order, RUN),
        "run result discarded": discard_result_script(order, RUN, STAGED),
    }


def incarnations() -> Mapping[str, Script]:
    closed = Incarnation(1, 1, EPOCH, EPOCH)
    anchors = {PartitionId("0"): SequenceNumber(7)}
    stream = Stream("namespace/telemetry", "hubledger")
    return {"incarnation next": opening_script(Opening(closed, stream, EPOCH, anchors, "somebody", "because", EPOCH))}


def named_statements(scripts: Iterable[Script]) -> set[str]:
    return {step.statement for script in scripts for step in script.steps if isinstance(step.statement, str)}


def request_of(*, is_dry_run: bool) -> TaskRequest:
    partition = commit_of((), first=True, letters=False).partition
    order = TaskOrder(ID, 1, "somebody", "because", EPOCH)
    ranges = (PartitionRange(partition.partition_id, Span(SequenceNumber(7), SequenceNumber(7)), "a note"),)
    return replay_request(order, ReplayAsked("{}", ()), ranges, "test/1", is_dry_run=is_dry_run)


def replay_of(classes: tuple[type, ...], *, letters: bool) -> ReplayCommit:
    commit = commit_of(classes, first=False, letters=letters)
    event = commit.last
    assert isinstance(event, Event)
    piece = Piece(Span(event.sequence_number, event.sequence_number), (event,))
    progress = replay_pieces.PartitionProgress(
        PartitionRange(commit.partition.partition_id, piece.span), event.sequence_number
    )
    return ReplayCommit(ID, commit.state, piece, commit.settled, {}, ROW_CLASSES, progress, "test/2", EPOCH)


def without_markers(text: str) -> str:
    """Return the text without parameter markers, which are the driver's and not T-SQL's."""
    return text.replace("?", "NULL")


def without_comments(text: str) -> str:
    """The text without remarks. No string of ours has two hyphens."""
    return re.sub(r"--.*", "", text)


def commit_of(classes: tuple[type, ...], *, first: bool, letters: bool) -> BatchCommit:
    partition = Partition("namespace/telemetry", "hubledger", PartitionId("0"))
    event = Event(SequenceNumber(7), "448", EPOCH, None, {}, b"body")
    checkpoint = None if first else Checkpoint(SequenceNumber(6), "384", EPOCH, 1, ID)
    letter = DeadLetter(event, "unknown", "builtins.ValueError", "why", "0123456789abcdef", "waiting")
    rows: dict[type, list[PlacedRow]] = {
        row_class: [(7, at, row_of(row_class))] for at, row_class in enumerate(classes)
    }
    settled = Settled(rows, [letter] if letters else [], int(not letters), 0)
    state = model_commits.PartitionState(partition, 1, checkpoint)
    return BatchCommit(state, ID, SequenceNumber(7), event, settled, "test/1", "invocation-1", EPOCH)


def in_order(commit: BatchCommit) -> BatchCommit:
    held = [replace(letter, status="held", held_behind=SequenceNumber(5)) for letter in commit.settled.letters]
    stop = PartitionStop("held", "why", 1, EPOCH)
    state = replace(commit.state, open_keys=OpenKeys(frozenset(["a key"])), stops=(stop,))
    return replace(commit, state=state, settled=replace(commit.settled, letters=held), ends=("held",))


def replay_in_order(commit: ReplayCommit) -> ReplayCommit:
    event = structs.replace(commit.piece.events[0], partition_key="a key")
    state = replace(commit.state, open_keys=OpenKeys(None))
    return replace(commit, state=state, piece=replace(commit.piece, events=(event,)))


def with_gap(commit: BatchCommit) -> BatchCommit:
    gaps = (SequenceGap(SequenceNumber(6), SequenceNumber(6), "absent"),)
    return replace(commit, first=SequenceNumber(6), absent=1, gaps=gaps)


def commit_with(rows: Mapping[type, list[PlacedRow]]) -> BatchCommit:
    commit = commit_of((), first=True, letters=False)
    return replace(commit, settled=Settled(rows, [], 1, 0))


def retry_of(classes: tuple[type, ...]) -> RetryCommit:
    """A retry of one event with a row of each class. Without rows it failed."""
    commit = commit_of(classes, first=False, letters=not classes)
    number = commit.last.sequence_number
    resolved = LetterOutcome(number, "resolved", why="its rows were written")
    waits = [LetterOutcome(number, "waiting", failure, EPOCH) for failure in commit.settled.letters]
    outcomes = tuple(waits) or (resolved,)
    return RetryCommit(commit.state, "claim-1", outcomes, commit.settled, "test/2", "invocation-2", EPOCH)


def move_of(move: Move) -> LetterMove:
    partition, numbers = commit_of((), first=True, letters=False).partition, (SequenceNumber(7), SequenceNumber(9))
    return LetterMove(move, partition, numbers, "move-1", EPOCH, EPOCH, "somebody", "because")


def _classes() -> list[tuple[type, ...]]:
    return [(), *((row_class,) for row_class in ROW_CLASSES), ROW_CLASSES]


def _tables(classes: tuple[type, ...]) -> str:
    return "+".join(row_table(row_class).name for row_class in classes) or "nothing"


def _files() -> Iterator[tuple[str, str]]:
    for path in sorted(SQL.parent.glob("examples/*/permissions.sql")):
        yield f"permissions of {path.parent.name}", path.read_text(encoding="utf-8")
    for name in FILES:
        yield f"{name}.sql", (SQL / "sqlserver" / f"{name}.sql").read_text(encoding="utf-8")


def _migrations() -> Iterator[tuple[str, str]]:
    for migration in all_migrations("sqlserver"):
        yield f"migration {migration.title}", f"SET NOCOUNT ON;\n{migration.text}"


def _queries() -> Iterator[tuple[str, str]]:
    """Give the statements that run alone. Those of a script are in its batch."""
    for name, query in load_queries("sqlserver").items():
        if name not in named_statements(every_script().values()):
            values = {param.name: "x" for param in query.declared}
            yield f"query {name}", ask_batch(name, values)[0]
            if query.optional:
                yield f"query {name} of all", ask_batch(name, {**values, **dict.fromkeys(query.optional)})[0]


def _selects() -> Iterator[tuple[str, str]]:
    read = [of_rows(verb, each) for verb in ("select_placed", "count_rows") for each in ROW_CLASSES]
    read += [of_rows(verb, each) for verb in OF_APPENDED for each in ROW_CLASSES if each not in STATES]
    read += [of_rows(verb, each) for verb in ("select_states", "select_standing", "count_states") for each in STATES]
    read += [of_rows(verb, each) for verb in OF_SUBJECTS for each in ROW_CLASSES if row_table(each).subject]
    reading: tuple[RowVerb, ...] = (
        "find_staging",
        "remove_staged",
        "remove_windows",
        "read_windows",
        "read_last_window",
        "find_subject_windows",
        "remove_subject_windows",
        "remove_subject_staged",
    )
    read += [of_rows(verb, one.of) for verb in reading for each in load_aggregates() for one in each.levels]
    for one in (*read, of_rows("find_row_faults", *ROW_CLASSES), of_rows("find_row_faults", *STATES)):
        yield f"rows {one}", asked_rows(one)


def asked_rows(of: OfRows) -> str:
    return ask_batch(of, {param.name: "x" for param in rows_query(of).declared})[0]
