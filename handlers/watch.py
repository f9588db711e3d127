"""The timer that watches: once a minute, one log line with the facts that the alerts of docs/alerts.md read."""

import logging
import os
from datetime import datetime
from typing import TYPE_CHECKING

import azure.functions as func

from core.errors import HubledgerError

if TYPE_CHECKING:
    from core.ledger.books import LetterBooks
    from core.ledger.watch import Pipeline, Watching
    from core.letters.listing import LetterKey
    from handlers.app import App

log = logging.getLogger("hubledger.watch")
bp = func.Blueprint()


@bp.function_name("watch")
@bp.timer_trigger(arg_name="timer", schedule=os.environ.get("WATCH_SCHEDULE") or "15 * * * * *", use_monitor=False)
def watch(timer: func.TimerRequest) -> None:
    """Log the facts, and store the lag of this minute. A fault has its own log line, which no alert mistakes for a
    watch; it fails this tick."""
    from core.ledger.watch import observe
    from handlers.app import app

    try:
        own = app()
        seen = observe(watching(own), own.clock.now())
    except HubledgerError as fault:
        log.error("books not watched", extra={"action": "watch_failed", "error": _text_of(fault)})
        raise
    log.info("books watched", extra=seen.facts())
    try:
        own.ledger.store_minute(seen.minute)
    except HubledgerError as fault:
        log.error("minute of the chart not stored", extra={"action": "minute_failed", "error": _text_of(fault)})
        raise


def _text_of(fault: HubledgerError) -> str:
    return f"{type(fault).__name__}: {fault}"


def watching(own: "App") -> "Watching":
    """Return the sources of the watch."""
    from core.ledger.balance import read_letter_books
    from core.ledger.watch import Pipeline, Watching, no_pipeline
    from handlers.app import read_losses

    def letters() -> "LetterBooks":
        return read_letter_books(own.ledger)  # each of them, so that a lost one is an alarm

    def enqueued_at(key: "LetterKey") -> datetime | None:
        found = own.listing.read_letter(key.partition_id, key.sequence_number)
        return None if found is None else found.letter.enqueued_at

    def pipeline(since: datetime) -> "Pipeline":
        oldest = [at for job in own.jobs if (at := own.pipelines.read_oldest_commit(job)) is not None]
        store = own.pipelines
        return Pipeline(min(oldest, default=None), store.count_failures(since), store.count_quality_faults(since))

    aggregates = own.settings.spark.engine != "none"
    sources = (own.settings.stream, own.ledger, own.hub, letters, enqueued_at, own.hub_ends.get)
    pipelines = pipeline if aggregates else no_pipeline
    return Watching(*sources, pipelines, read_losses, own.batch_log.faults)
