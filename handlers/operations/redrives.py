"""Retry or discard letters of any number as a job: preview it, request it, show it, pause, resume and cancel it."""

import logging
from typing import Literal
from uuid import UUID

import msgspec

from core.api.cursors import Moment, Number, key_of, page_of
from core.api.operation import Answer, Call, Nothing, operation
from core.api.problems import CONFLICT, COUNT_DIFFERS, NOT_FOUND, REDRIVE_OVERLAP, Problem, clipped, not_found
from core.api.shown import written
from core.letters.moves import CountDiffers, LetterOrder, Mover
from core.letters.redrive import (
    MOST_OPEN,
    Redrive,
    RedriveCause,
    RedrivenLetter,
    RedriveOverlap,
    TooManyRedrives,
)
from core.letters.redrive_run import preview_redrive as preview_of
from core.letters.redrive_run import request_redrive
from core.model.jobs import JobMove
from core.model.letters import LetterPosition, OrderedMove
from handlers.app import app
from handlers.operations.letter_orders import chosen_of
from handlers.operations.letters import filter_of, hide_letter, letter_answer
from handlers.operations.redrive_shapes import (
    MOST_SHOWN,
    CauseAnswer,
    PreviewAnswer,
    PreviewQuery,
    RedriveAnswer,
    RedriveMove,
    RedrivenAnswer,
    RedrivenLettersAnswer,
    RedrivenQuery,
    RedrivePath,
    RedrivesAnswer,
    RedriveShape,
    RedrivesQuery,
    SelectedAnswer,
)
from handlers.operations.replay_shapes import MoveAnswer, MoveShape

log = logging.getLogger("hubledger.api")
MOVED: dict[RedriveMove, OrderedMove] = {"retry": "requeue", "discard": "discard"}
NAMED: dict[OrderedMove, RedriveMove] = {move: name for name, move in MOVED.items()}
FIRST = (-1, -1)  # before every place in a piece


@operation("The letters that a redrive would move", "redrives")
def preview_redrive(call: Call[Nothing, PreviewQuery, Nothing]) -> PreviewAnswer:
    """Count the letters by cause, with a sample; nothing changes."""
    found = preview_of(MOVED[call.query.move], filter_of(call.query), app().listing)
    sample = [hide_letter(letter_answer(one)) for one in found.sample]
    return PreviewAnswer(count=found.count, causes=list(map(_cause, found.causes)), sample=sample)


@operation(
    "Retry or discard letters of any number, as a job",
    "redrives",
    {202: RedriveAnswer},
    (COUNT_DIFFERS, REDRIVE_OVERLAP, CONFLICT),
)
def start_redrive(call: Call[Nothing, Nothing, RedriveShape]) -> Answer:
    """Make a planned job; the orchestration begins it."""
    body = call.body
    order = LetterOrder(MOVED[body.move], chosen_of(body), body.expected_count, Mover(call.who, body.reason))
    try:
        job = request_redrive(order, body.per_second, app().redriving)
    except RedriveOverlap as overlap:
        raise Problem(REDRIVE_OVERLAP, str(overlap), more={"redrive_id": str(overlap.redrive_id)}) from overlap
    except TooManyRedrives as full:
        raise Problem(CONFLICT, str(full), more={"limit": MOST_OPEN}) from full
    if isinstance(job, CountDiffers):
        said = f"{job.found} letters can be moved now, not {body.expected_count}; nothing was changed"
        raise Problem(COUNT_DIFFERS, said, more={"count": job.found})
    redrive_id = str(job.request.redrive_id)
    facts = {"redrive_id": redrive_id, "total": job.request.total}
    log.info("redrive requested", extra={"action": body.move, "who": call.who, "why": clipped(body.reason), **facts})
    return Answer(_redrive(job), 202, {"Location": f"/api/redrives/{redrive_id}", "Retry-After": "2"})


@operation("A page of redrives", "redrives")
def list_redrives(call: Call[Nothing, RedrivesQuery, Nothing]) -> RedrivesAnswer:
    """List a page of redrives, the newest first."""
    own, query = app(), call.query
    before = None
    if query.cursor is not None:
        at, redrive_id = key_of("redrives", query.cursor, tuple[Moment, UUID])
        before = (at, redrive_id)
    found = own.redrives.read_redrives(own.settings.stream, query.limit + 1, before)
    page, following = page_of(
        found, query.limit, "redrives", lambda job: (job.request.requested_at, job.request.redrive_id)
    )
    return RedrivesAnswer(redrives=[_redrive(job) for job in page], next=following)


@operation("One redrive with its progress", "redrives", problems=(NOT_FOUND,))
def show_redrive(call: Call[RedrivePath, Nothing, Nothing]) -> RedriveAnswer:
    """Show a job."""
    return _redrive(_found(call.path.redrive_id))


@operation("The letters that a redrive moved", "redrives", problems=(NOT_FOUND,))
def list_redriven(call: Call[RedrivePath, RedrivenQuery, Nothing]) -> RedrivenLettersAnswer:
    """List a page of the letters that a job moved, in the order of its pieces."""
    job, query = _found(call.path.redrive_id), call.query
    bound_to, after = call.path.redrive_id, FIRST
    if query.cursor is not None:
        after = key_of(bound_to, query.cursor, tuple[Number, Number])
    found = app().redrives.read_redriven(job, after, query.limit + 1)
    page, following = page_of(found, query.limit, bound_to, lambda one: (one.piece, one.place))
    return RedrivenLettersAnswer(letters=list(map(_redriven, page)), next=following)


@operation("Pause a redrive between two pieces", "redrives", problems=(NOT_FOUND, CONFLICT))
def pause_redrive(call: Call[RedrivePath, Nothing, MoveShape]) -> RedriveAnswer:
    """Begin no further piece; the current one is finished or rolled back."""
    return _moved(call, "pause")


@operation("Resume a paused redrive", "redrives", problems=(NOT_FOUND, CONFLICT))
def resume_redrive(call: Call[RedrivePath, Nothing, MoveShape]) -> RedriveAnswer:
    """Continue where the job was paused."""
    return _moved(call, "resume")


@operation("Cancel a redrive; the letters that it moved stay moved", "redrives", problems=(NOT_FOUND, CONFLICT))
def cancel_redrive(call: Call[RedrivePath, Nothing, MoveShape]) -> RedriveAnswer:
    """Cancel the job for good. The letters that it moved stay moved, and are listed."""
    return _moved(call, "cancel")


def _found(redrive_id: str) -> Redrive:
    own = app()
    job = own.redrives.find_redrive(UUID(redrive_id))
    if job is None or job.request.stream != own.settings.stream:
        raise not_found("redrive_id", f"there is no redrive {redrive_id}")
    return job


def _moved(call: Call[RedrivePath, Nothing, MoveShape], move: Literal["pause", "resume", "cancel"]) -> RedriveAnswer:
    job = _found(call.path.redrive_id)
    requested = JobMove(job.request.redrive_id, move, call.who, call.body.reason, call.at)
    if not app().redrives.move_redrive(requested):
        status = _found(call.path.redrive_id).status
        raise Problem(CONFLICT, f"{move}: the redrive is {status}", more={"redrive_status": status})
    return _redrive(_found(call.path.redrive_id))


def _redrive(job: Redrive) -> RedriveAnswer:
    request, selection = job.request, job.request.selection
    given = request.chosen
    hidden = {"partition_key": "hidden"} if given and "partition_key" in given else {}
    return RedriveAnswer(
        redrive_id=str(request.redrive_id),
        move=NAMED[request.move],
        status=job.status,
        filter=None if given is None else {**given, **hidden},
        letters=None if selection is None else [_selected(one) for one in selection[:MOST_SHOWN]],
        total=request.total,
        looked_at=job.moved + job.unmoved,
        moved=job.moved,
        unmoved=job.unmoved,
        per_second=request.per_second,
        requested_by=request.requested_by,
        reason=request.reason,
        requested_at=request.requested_at,
        started_at=job.started_at,
        ended_at=job.ended_at,
        updated_at=job.updated_at,
        fault=job.fault,
        history=[msgspec.json.decode(line, type=MoveAnswer) for line in job.history.splitlines()],
    )


def _selected(one: LetterPosition) -> SelectedAnswer:
    return written(SelectedAnswer, one)


def _redriven(one: RedrivenLetter) -> RedrivenAnswer:
    return written(RedrivenAnswer, one)


def _cause(one: RedriveCause) -> CauseAnswer:
    return CauseAnswer(
        fingerprint=one.fingerprint,
        error_class=one.sample.error_class,
        error_type=one.sample.error_type,
        letters=one.letters,
    )
