"""Request a replay, show its progress and the diff of a dry run, pause, resume and cancel it."""

import json
from uuid import UUID

import msgspec

from core.api.cursors import Moment, Number, key_of, page_of
from core.api.operation import Answer, Call, Nothing, PartitionText, number_of, operation, utc
from core.api.problems import CONFLICT, NOT_FOUND, OVERLAP, Problem, invalid, not_found
from core.api.shown import written
from core.errors import ReplayOverlap, ReplayRefused
from core.model.events import PartitionId
from core.model.hub import Place
from core.model.jobs import JobMove, JobVerb
from core.model.spans import SequenceNumber, Span
from core.replay.job import MOST_OPEN, PartitionProgress, ReplayCounts, ReplayJob, TooManyReplays
from core.replay.ranges import ReplayOrder
from core.replay.run import request_replay
from handlers.app import app
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


@operation("Request a replay; a dry run by default", "replays", {202: ReplayAnswer}, (OVERLAP, CONFLICT))
def start_replay(call: Call[Nothing, Nothing, ReplayShape]) -> Answer:
    """Make a planned job; the orchestration begins it."""
    own = app()
    try:
        job = request_replay(_order(call), own.replaying, own.settings.replay_most_events)
    except ReplayRefused as refusal:
        raise invalid(refusal.field, refusal.why) from refusal
    except ReplayOverlap as overlap:
        raise Problem(OVERLAP, str(overlap), more={"job_id": str(overlap.job_id)}) from overlap
    except TooManyReplays as full:
        raise Problem(CONFLICT, str(full), more={"limit": MOST_OPEN}) from full
    return Answer(_replay(job), 202, {"Location": f"/api/replays/{job.request.job_id}", "Retry-After": "2"})


@operation("A page of replays", "replays")
def list_replays(call: Call[Nothing, ReplaysQuery, Nothing]) -> ReplaysAnswer:
    """List a page of replays, the newest first."""
    own, query = app(), call.query
    before = None
    if query.cursor is not None:
        at, job_id = key_of("replays", query.cursor, tuple[Moment, UUID])
        before = (at, job_id)
    found = own.replays.read_replays(own.settings.stream, query.limit + 1, before)
    page, following = page_of(found, query.limit, "replays", lambda job: (job.request.requested_at, job.request.job_id))
    return ReplaysAnswer(replays=[_replay(job) for job in page], next=following)


@operation("One replay with its progress", "replays", problems=(NOT_FOUND,))
def show_replay(call: Call[JobPath, Nothing, Nothing]) -> ReplayAnswer:
    """Show a job."""
    return _replay(_found(call.path.job_id))


@operation("The changes that a dry run shows, event by event", "replays", problems=(NOT_FOUND,))
def show_replay_diff(call: Call[JobPath, DiffQuery, Nothing]) -> DiffAnswer:
    """Show a page of the diff of a dry run so far."""
    job_id, query = _found(call.path.job_id).request.job_id, call.query
    after = None
    if query.cursor is not None:
        partition_id, number = key_of(str(job_id), query.cursor, tuple[PartitionText, Number])
        after = (PartitionId(partition_id), SequenceNumber(number))
    found = app().replays.read_replay_diffs(job_id, after, query.limit + 1)
    page, following = page_of(found, query.limit, str(job_id), lambda one: (one.partition_id, one.sequence_number))
    events = [_diff(one.partition_id, one.sequence_number, one.diff) for one in page]
    return DiffAnswer(events=events, next=following)


@operation("Pause a replay between two pieces", "replays", problems=(NOT_FOUND, CONFLICT))
def pause_replay(call: Call[JobPath, Nothing, MoveShape]) -> ReplayAnswer:
    """Begin no further piece; the current one is finished or rolled back."""
    return _moved(call, "pause")


@operation("Resume a paused replay", "replays", problems=(NOT_FOUND, CONFLICT))
def resume_replay(call: Call[JobPath, Nothing, MoveShape]) -> ReplayAnswer:
    """Continue where the job was paused."""
    return _moved(call, "resume")


@operation("Cancel a replay; the events that it replayed stay replayed", "replays", problems=(NOT_FOUND, CONFLICT))
def cancel_replay(call: Call[JobPath, Nothing, MoveShape]) -> ReplayAnswer:
    """Cancel the job for good. The events that it replayed stay replayed."""
    return _moved(call, "cancel")


def _order(call: Call[Nothing, Nothing, ReplayShape]) -> ReplayOrder:
    body = call.body
    partitions = None if body.partitions is None else tuple(map(PartitionId, body.partitions))
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
        raise invalid(field, "set exactly one of sequence_number, offset and enqueued_at")
    if given.sequence_number is not None:
        return number_of(given.sequence_number, f"{field}.sequence_number")
    return given.offset if given.offset is not None else utc(given.enqueued_at, f"{field}.enqueued_at")


def _found(job_id: str) -> ReplayJob:
    own = app()
    job = own.replays.find_replay(UUID(job_id))
    if job is None or job.request.stream != own.settings.stream:
        raise not_found("job_id", f"there is no replay {job_id}")
    return job


def _moved(call: Call[JobPath, Nothing, MoveShape], move: JobVerb) -> ReplayAnswer:
    job = _found(call.path.job_id)
    requested = JobMove(job.request.job_id, move, call.who, call.body.reason, call.at)
    if not app().replays.move_replay(requested):
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
        left_out=[written(LeftOutAnswer, one) for one in request.left_out],
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
    return written(CountsAnswer, counts)


def _span(span: Span) -> SpanAnswer:
    return written(SpanAnswer, span)


def _diff(partition_id: str, number: int, diff: str) -> EventDiffAnswer:
    event = {"partition_id": partition_id, "sequence_number": str(number), "error": None}
    return msgspec.convert({**event, **json.loads(diff)}, type=EventDiffAnswer)
