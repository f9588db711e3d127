"""Replays: ask for one, look at it and at what a dry run shows, pause, resume and cancel it."""

import json
from datetime import datetime
from uuid import UUID

import msgspec

from core.errors import ReplayOverlap, ReplayRefused
from core.model.events import PartitionId
from core.model.hub import Place
from core.model.spans import SequenceNumber, Span
from core.replay.job import COUNTS, JobMove, PartitionProgress, ReplayCounts, ReplayJob, ReplayMove
from core.replay.ranges import ReplayOrder
from core.replay.run import request_replay
from handlers.cursors import cursor_of, key_of
from handlers.operation import (
    Answer,
    Call,
    Nothing,
    Operation,
    number_of,
    partition_of,
    utc,
)
from handlers.operations.replay_shapes import (
    CountsAnswer,
    DiffAnswer,
    DiffQuery,
    EventDiffAnswer,
    JobPath,
    LeftOutAnswer,
    MoveAnswer,
    MoveShape,
    PartitionAnswer,
    PlaceShape,
    ReplayAnswer,
    ReplaysAnswer,
    ReplayShape,
    ReplaysQuery,
    SpanAnswer,
)
from handlers.problems import CONFLICT, NOT_FOUND, OVERLAP, Problem, invalid, not_found
from handlers.replay_services import replay_services


def start_replay(call: Call[Nothing, Nothing, ReplayShape]) -> Answer:
    """Make a job, planned; the orchestration begins it."""
    own = replay_services()
    try:
        job = request_replay(_order(call), own.means, own.most_events)
    except ReplayRefused as refusal:
        raise invalid(refusal.field, refusal.why) from refusal
    except ReplayOverlap as overlap:
        raise Problem(OVERLAP, str(overlap), more={"job_id": str(overlap.job_id)}) from overlap
    return Answer(_replay(job), 202, {"Location": f"/api/replays/{job.request.job_id}", "Retry-After": "2"})


def list_replays(call: Call[Nothing, ReplaysQuery, Nothing]) -> ReplaysAnswer:
    """The newest first."""
    own, query = replay_services(), call.query
    before = None
    if query.cursor is not None:
        at, job_id = key_of("replays", query.cursor, tuple[datetime, UUID])
        before = (at, job_id)
    found = own.means.store.read_replays(own.means.stream, query.limit + 1, before)
    page = found[: query.limit]
    last = page[-1].request if len(found) > len(page) else None
    following = None if last is None else cursor_of("replays", (last.requested_at, last.job_id))
    return ReplaysAnswer(replays=[_replay(job) for job in page], next=following)


def show_replay(call: Call[JobPath, Nothing, Nothing]) -> ReplayAnswer:
    """One job."""
    return _replay(_found(call.path.job_id))


def show_replay_diff(call: Call[JobPath, DiffQuery, Nothing]) -> DiffAnswer:
    """What a dry run shows so far."""
    job_id, query = _found(call.path.job_id).request.job_id, call.query
    after = None
    if query.cursor is not None:
        partition_id, number = key_of(str(job_id), query.cursor, tuple[str, int])
        after = (PartitionId(partition_id), SequenceNumber(number))
    found = replay_services().means.store.read_replay_diffs(job_id, after, query.limit + 1)
    page = found[: query.limit]
    last = page[-1] if len(found) > len(page) else None
    following = None if last is None else cursor_of(str(job_id), (last.partition_id, last.sequence_number))
    events = [_diff(one.partition_id, one.sequence_number, one.diff) for one in page]
    return DiffAnswer(events=events, next=following)


def pause_replay(call: Call[JobPath, Nothing, MoveShape]) -> ReplayAnswer:
    """No piece begins any more; the one in work is finished or rolled back."""
    return _moved(call, "pause")


def resume_replay(call: Call[JobPath, Nothing, MoveShape]) -> ReplayAnswer:
    """It goes on where it was paused."""
    return _moved(call, "resume")


def cancel_replay(call: Call[JobPath, Nothing, MoveShape]) -> ReplayAnswer:
    """For good. What was replayed stays so."""
    return _moved(call, "cancel")


def _order(call: Call[Nothing, Nothing, ReplayShape]) -> ReplayOrder:
    body = call.body
    partitions = None if body.partitions is None else tuple(map(partition_of, body.partitions))
    asked = {"partitions": body.partitions, "from": body.from_, "to": body.to}
    return ReplayOrder(
        partitions=partitions,
        start=_place(body.from_, "from"),
        end=_place(body.to, "to"),
        asked=msgspec.json.encode(asked).decode(),
        is_dry_run=body.dry_run,
        requested_by=call.who,
        reason=body.reason,
    )


def _place(given: PlaceShape | None, field: str) -> Place | None:
    if given is None:
        return None
    named = [name for name in ("sequence_number", "offset", "enqueued_at") if getattr(given, name) is not None]
    if len(named) != 1:
        raise invalid(field, "name exactly one of sequence_number, offset and enqueued_at")
    if given.sequence_number is not None:
        return number_of(given.sequence_number, f"{field}.sequence_number")
    return given.offset if given.offset is not None else utc(given.enqueued_at, f"{field}.enqueued_at")


def _found(job_id: str) -> ReplayJob:
    own = replay_services().means
    job = own.store.find_replay(UUID(job_id))
    if job is None or job.request.stream != own.stream:
        raise not_found("job_id", f"there is no replay {job_id}")
    return job


def _moved(call: Call[JobPath, Nothing, MoveShape], move: ReplayMove) -> ReplayAnswer:
    job = _found(call.path.job_id)
    asked = JobMove(job.request.job_id, move, call.who, call.body.reason, call.at)
    if not replay_services().means.store.move_replay(asked):
        status = _found(call.path.job_id).status
        raise Problem(CONFLICT, f"{move}: the replay is {status}", more={"replay_status": status})
    return _replay(_found(call.path.job_id))


def _replay(job: ReplayJob) -> ReplayAnswer:
    request, counts = job.request, job.counts
    return ReplayAnswer(
        job_id=str(request.job_id),
        status=job.status,
        dry_run=request.is_dry_run,
        asked=json.loads(request.asked),
        total=sum(one.range.span.length for one in job.partitions),
        done=counts.events + counts.gone,
        counts=_counts(counts),
        partitions=[_partition(one) for one in job.partitions],
        left_out=[LeftOutAnswer(partition_id=one.partition_id, why=one.why) for one in request.left_out],
        transform_version=request.transform_version,
        requested_by=request.requested_by,
        reason=request.reason,
        requested_at=request.requested_at,
        started_at=job.started_at,
        ended_at=job.ended_at,
        updated_at=job.updated_at,
        fault=job.fault,
        history=[msgspec.json.decode(line, type=MoveAnswer) for line in job.history.splitlines()],
    )


def _partition(one: PartitionProgress) -> PartitionAnswer:
    span = one.range.span
    return PartitionAnswer(
        partition_id=one.range.partition_id,
        first=str(span.first),
        last=str(span.last),
        next=str(one.next_number),
        closed_at=one.closed_at,
        note=one.range.note,
        counts=_counts(one.counts),
        gone=[_span(each) for each in one.gone_ranges],
    )


def _counts(counts: ReplayCounts) -> CountsAnswer:
    return CountsAnswer(**{name: getattr(counts, name) for name in COUNTS if name != "states_rewritten"})


def _span(span: Span) -> SpanAnswer:
    return SpanAnswer(first=str(span.first), last=str(span.last))


def _diff(partition_id: str, number: int, diff: str) -> EventDiffAnswer:
    told = {"error": None, **json.loads(diff)}
    return msgspec.convert({"partition_id": partition_id, "sequence_number": str(number), **told}, type=EventDiffAnswer)


OPERATIONS = (
    Operation(
        "start_replay",
        "Ask for a replay; a dry run unless told otherwise",
        start_replay,
        {202: ReplayAnswer},
        body=ReplayShape,
        problems=(OVERLAP,),
        tag="replays",
    ),
    Operation(
        "list_replays", "A page of replays", list_replays, {200: ReplaysAnswer}, query=ReplaysQuery, tag="replays"
    ),
    Operation(
        "show_replay",
        "One replay with its progress",
        show_replay,
        {200: ReplayAnswer},
        path=JobPath,
        problems=(NOT_FOUND,),
        tag="replays",
    ),
    Operation(
        "show_replay_diff",
        "What a dry run would change, event by event",
        show_replay_diff,
        {200: DiffAnswer},
        path=JobPath,
        query=DiffQuery,
        problems=(NOT_FOUND,),
        tag="replays",
    ),
    *(
        Operation(
            f"{name}_replay",
            summary,
            run,
            {200: ReplayAnswer},
            path=JobPath,
            body=MoveShape,
            problems=(NOT_FOUND, CONFLICT),
            tag="replays",
        )
        for name, summary, run in (
            ("pause", "Pause a replay between two pieces", pause_replay),
            ("resume", "Let a paused replay go on", resume_replay),
            ("cancel", "End a replay; what was replayed stays so", cancel_replay),
        )
    ),
)
