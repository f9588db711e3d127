"""The timer that watches: once a minute, one log line with the facts that the alerts of docs/alerts.md read."""

import logging
import os
from datetime import UTC, datetime

import azure.functions as func

from core.errors import HubledgerError
from core.ledger.books import LetterBooks
from core.ledger.watch import Watching
from core.ledger.watch import watch as watch_once
from core.letters.listing import LetterKey
from core.settings import watch_schedule
from handlers.desk import Desk, desk

log = logging.getLogger("hubledger.watch")
bp = func.Blueprint()


@bp.function_name("watch")
@bp.timer_trigger(arg_name="timer", schedule=watch_schedule(os.environ), use_monitor=False)
def watch(timer: func.TimerRequest) -> None:
    """One line. A fault is a line of its own, which no alert takes for a watch, and fails this tick."""
    try:
        facts = watch_once(_watching(desk()), datetime.now(UTC))
    except HubledgerError as fault:
        log.error("books not watched", extra={"action": "watch_failed", "error": f"{type(fault).__name__}: {fault}"})
        raise
    log.info("books watched", extra=facts)


def _watching(own: Desk) -> Watching:
    settings = own.settings

    def letters() -> LetterBooks:
        return own.letter_counts.get().letters

    def enqueued_at(key: LetterKey) -> datetime | None:
        found = own.store.letters.read_letter(key.partition_id, key.sequence_number)
        return None if found is None else found.letter.enqueued_at

    return Watching(settings.stream, own.store.books, own.hub, letters, enqueued_at, own.hub_ends.read)
