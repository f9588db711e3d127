"""Retry dead letters: an eternal orchestration retries the letters that are due, and a timer keeps it running.

The orchestration is only an alarm clock (docs/adr/0012): only ids travel through it, so losing, purging or doubling
it loses and repeats nothing.
"""

import asyncio
import logging
import re
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from typing import Any

import azure.durable_functions as df
import azure.functions as func

from core.errors import InfrastructureFault
from handlers.tasks import PAUSE, SILENT, SLICE, STALLED_AFTER, is_silent, outlive, refuse_foreign, sleep

log = logging.getLogger("hubledger.dead_letters")
bp = df.Blueprint()

ORCHESTRATOR = "keep_dead_letters"
INSTANCE = "dead-letters-"  # and the id of the stream: each incarnation has a keeper of its own
BRIEF = timedelta(seconds=5)  # while due letters cannot be claimed: another keeper has them, or the store fails
IDLE_AFTER = timedelta(minutes=30)  # without a new round while no letter is overdue
CLOCKS_DIFFER = timedelta(minutes=1)  # between two instances
_ENDED = ("Completed", "Failed", "Terminated", "Canceled")

Round = Generator[Any, Any, Any]


def keep_dead_letters(context: df.DurableOrchestrationContext) -> Round:
    """Run one round: sleep until a letter is due, or claim and retry due letters. Then begin again, without history.

    A keeper ends unless it is of the newest incarnation, by the name that the timer gives. The death of a worker ends
    nothing: its claim falls due again.
    """
    if not re.fullmatch(rf"{INSTANCE}(0|[1-9]\d{{0,9}})", context.instance_id, re.ASCII):
        return refuse_foreign(context, context.get_input())
    found = yield from outlive(context.call_activity("find_wait", context.instance_id), PAUSE.total_seconds())
    if found is None:
        return "the newest incarnation of the stream has a keeper of its own"
    wait = timedelta(seconds=found)
    if wait > timedelta():
        context.set_custom_status((context.current_utc_datetime + wait).isoformat())
        yield from sleep(context, wait)
    else:
        chunks: list[dict[str, Any]] = yield from outlive(context.call_activity("claim_letters", None), [])
        if not chunks:
            yield from sleep(context, BRIEF)
        together = [context.call_activity("retry_letters", chunk) for chunk in chunks if not chunk["alone"]]
        if together:
            yield from outlive(context.task_all(together), [])
        for chunk in chunks:
            if chunk["alone"]:  # its letters may kill the process
                yield from outlive(context.call_activity("retry_letters", chunk), {})
    context.continue_as_new(None)
    return None


bp.orchestration_trigger(context_name="context")(keep_dead_letters)


@bp.activity_trigger(input_name="keeper")
def find_wait(keeper: str) -> float | None:
    """Return the seconds until the next look of the keeper with this instance id: until a letter is due, at most
    DEAD_LETTER_LOOK_SECONDS. None when its incarnation is not the newest.

    Not a time: the clocks of the database and of Durable may differ.
    """
    from core.letters.retry import wait_for_due
    from handlers.app import app, in_time

    own = app()
    try:
        with in_time(SLICE):
            wait = wait_for_due(own.core.retrying, own.settings.letter_look)
            if int(keeper.removeprefix(INSTANCE)) != own.core.ingestion.store.open_stream(own.settings.stream):
                return None
    except InfrastructureFault as fault:
        _log_fault("find_wait", fault)
        wait = own.settings.letter_look
    return wait.total_seconds()


@bp.activity_trigger(input_name="nothing")
def claim_letters(nothing: None) -> list[dict[str, Any]]:
    """Claim the due letters, in chunks of ids. Claim none when the store cannot be reached."""
    from msgspec import to_builtins

    from core.letters.retry import claim_due
    from handlers.app import app, in_time

    try:
        with in_time(SLICE):
            return [to_builtins(chunk) for chunk in claim_due(app().core.retrying)]
    except InfrastructureFault as fault:
        _log_fault("claim_letters", fault)
        return []


@bp.activity_trigger(input_name="chunk")
def retry_letters(chunk: dict, context: func.Context) -> dict[str, Any]:  # the worker reads no dict[...]
    """Retry a chunk and report it. A fault is a report too: the letters of the chunk fall due again by themselves."""
    from core.letters.retry import retry_chunk
    from core.model.letters import LetterChunk
    from core.model.shapes import converted
    from handlers.app import app, in_time

    try:
        own = app()
        with in_time(SLICE):
            report = retry_chunk(converted(chunk, LetterChunk), own.core.retrying, context.invocation_id)
    except InfrastructureFault as fault:
        _log_fault("retry_letters", fault)
        return {"fault": str(fault)}
    facts = report.facts()
    log.info("letters retried", extra={"action": "retry_letters", "invocation_id": context.invocation_id, **facts})
    return facts


@bp.function_name("watch_dead_letters")
@bp.timer_trigger(arg_name="timer", schedule="0 * * * * *", run_on_startup=True)
@bp.durable_client_input(client_name="client")
async def watch_dead_letters(timer: func.TimerRequest, client: Any) -> None:
    """Start the keeper unless it runs: every minute, and when an instance starts. Starting it twice does no harm."""
    try:
        instance_id, look, patience = await asyncio.to_thread(_keeping)
    except InfrastructureFault as fault:
        _log_fault("watch_dead_letters", fault)
        return
    await keep_running(client, instance_id, datetime.now(UTC), look, patience)


async def keep_running(
    client: Any, instance_id: str, now: datetime, look: timedelta, patience: timedelta = IDLE_AFTER
) -> None:
    """Start the keeper unless it runs, and resume a suspended one. End one that is stalled or sleeps too long: the next
    tick starts it again."""
    status = await client.get_status(instance_id)
    state = status.runtime_status.value if status and status.runtime_status else None
    facts = {"action": "watch_dead_letters", "instance_id": instance_id}
    if state is None or state in _ENDED:
        await client.start_new(ORCHESTRATOR, instance_id)
        log.info("keeper started", extra={**facts, "was": state})
    elif state == "Suspended":
        await client.resume(instance_id, "letters are retried while the app runs")
        log.warning("keeper resumed; it was suspended", extra=facts)
    elif why := _stalled(status, now, look, patience):
        await client.terminate(instance_id, why)
        log.warning("keeper stalled; the next tick starts it again", extra={**facts, "error": why})


def _stalled(status: Any, now: datetime, look: timedelta, patience: timedelta) -> str | None:
    """Return why the keeper has to be started again, or None. A clock that was ahead makes it wait too long."""
    if status.last_updated_time.replace(tzinfo=UTC) > now + CLOCKS_DIFFER:
        return f"its last round was at {status.last_updated_time}: the clock was ahead"
    if status.custom_status and datetime.fromisoformat(status.custom_status) > now + look + CLOCKS_DIFFER:
        return f"it sleeps until {status.custom_status}: the clock was ahead"
    return SILENT if is_silent(status, now, patience) else None


def _keeping() -> tuple[str, timedelta, timedelta]:
    """Return the keeper's instance id, its longest sleep, and how long it may be silent: not long when letters are
    overdue."""
    from core.letters.retry import next_due_at
    from handlers.app import app

    own = app()
    due_at = next_due_at(own.core.retrying)
    is_overdue = due_at is not None and due_at < own.clock.now() - STALLED_AFTER
    stream_id = own.core.ingestion.store.open_stream(own.settings.stream)
    return f"{INSTANCE}{stream_id}", own.settings.letter_look, STALLED_AFTER if is_overdue else IDLE_AFTER


def _log_fault(action: str, fault: InfrastructureFault) -> None:
    log.warning("dead-letter round failed; will retry: %s", fault, extra={"action": action, "error": str(fault)})
