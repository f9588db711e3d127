"""The timers: the watch, gaps, aggregation and the upkeep of the lake."""

import logging
import os
from datetime import datetime
from typing import TYPE_CHECKING

import azure.functions as func

from core.errors import HubledgerError

if TYPE_CHECKING:
    from core.aggregation.tick import Aggregation, AggregationReport
    from core.ingest.stalled_partitions import Looked
    from core.ledger.watch import Pipeline, Watching
    from core.model.letters import LetterKey
    from handlers.app import App


log = logging.getLogger("hubledger.timers")
bp = func.Blueprint()


@bp.function_name("aggregate")
@bp.timer_trigger(arg_name="timer", schedule=os.environ.get("AGGREGATION_SCHEDULE") or "0 */5 * * * *")
def aggregate_on_time(timer: func.TimerRequest) -> None:
    """Take one step of each job, if SPARK_ENGINE names an engine. After a fault, the next tick continues."""
    from handlers.app import aggregation

    own = aggregation()
    if own is not None:
        take_steps(own)


def take_steps(own: "Aggregation") -> None:
    """Take one step of each job. A fault of one job stops no other job, and fails the tick at the end."""
    faults: list[Exception] = []
    for job in own.jobs:
        try:
            take_step(own, job)
        except Exception as fault:  # noqa: BLE001 - the first one is raised below
            faults.append(fault)
            log.warning("aggregation failed; the next tick continues", extra={"job": job, "fault": repr(fault)})
    if faults:
        raise faults[0]


def take_step(own: "Aggregation", job: str) -> "AggregationReport":
    """Take one step of a job, and log it as one line."""
    from core.aggregation.tick import aggregate, report_facts

    report = aggregate(own, job)
    is_sound = report.published and (report.quality is None or report.quality.fault is None)
    level = logging.INFO if is_sound else logging.WARNING
    log.log(level, "aggregation advanced", extra=report_facts(job, report))
    return report


@bp.function_name("heal_gaps")
@bp.timer_trigger(arg_name="timer", schedule=os.environ.get("WATCH_SCHEDULE") or "15 * * * * *", use_monitor=False)
def heal_gaps(timer: func.TimerRequest, context: func.Context) -> None:
    """Check every partition. A fault of one is logged, and its check is repeated at the next tick."""
    from handlers.app import app, in_time

    own = app()
    own.hub.check_access()  # reports a missing consumer group every minute, not only when a gap is found
    with in_time():
        for looked in own.stalled.run(context.invocation_id):
            note(looked)


def note(looked: "Looked") -> None:
    """Log what a check found in a partition."""
    from core.ingest.stalled_partitions import Healed, Unhealed

    if isinstance(looked, Healed):
        log.warning("gap healed", extra=looked.facts())
    elif isinstance(looked, Unhealed):
        log.error("gap not healed", extra=looked.facts())
    else:
        facts = {"action": "trigger", "partition": str(looked.partition), "detail": looked.words}
        log.warning("trigger stands", extra=facts)


@bp.function_name("maintain_lake")
@bp.timer_trigger(arg_name="timer", schedule="0 40 3 * * *")
def maintain_lake(timer: func.TimerRequest) -> None:
    """Maintain the tables of all jobs, if there is a lake."""
    from handlers.app import aggregation

    own = aggregation()
    if own is not None:
        maintain(own)


def maintain(own: "Aggregation") -> None:
    """Maintain the tables of each job, and log them as one line each. A fault is logged, and left to the next time."""
    from core.aggregation.lake_upkeep import maintain_job

    for job in own.jobs:
        facts: dict[str, object] = {"action": "maintain_lake", "job": job}
        try:
            did = maintain_job(own, job)
        except Exception as fault:  # noqa: BLE001 - whatever it is, no run may notice it
            log.warning("lake not maintained; the next time tries again", extra={**facts, "fault": repr(fault)})
        else:
            log.info("lake maintained", extra={**facts, "did": did})


@bp.function_name("watch")
@bp.timer_trigger(arg_name="timer", schedule=os.environ.get("WATCH_SCHEDULE") or "15 * * * * *", use_monitor=False)
def watch(timer: func.TimerRequest) -> None:
    """Log the facts, and store the lag of this minute. A fault has its own log line, which no alert mistakes for a
    watch, and fails this tick."""
    from core.ledger.store import Ledger
    from core.ledger.watch import observe
    from handlers.app import app

    try:
        own = app()
        seen = observe(watching(own), own.clock.now())
    except HubledgerError as fault:
        error = f"{type(fault).__name__}: {fault}"
        log.error("books not watched", extra={"action": "watch_failed", "error": error})
        raise
    log.info("books watched", extra=seen.facts())
    try:
        Ledger(own.stream).store_minute(seen.minute)
    except HubledgerError as fault:
        error = f"{type(fault).__name__}: {fault}"
        log.error("minute of the chart not stored", extra={"action": "minute_failed", "error": error})
        raise


def watching(own: "App") -> "Watching":
    """Return the sources of the watch."""
    from core.aggregation.orders import Pipelines
    from core.ledger.store import Ledger
    from core.ledger.watch import Pipeline, Watching
    from core.letters.listing import LetterListing

    def enqueued_at(key: "LetterKey") -> datetime | None:
        found = LetterListing(own.stream).read_letter(key.partition_id, key.sequence_number)
        return None if found is None else found.letter.enqueued_at

    def pipeline(since: datetime) -> "Pipeline":
        if own.settings.spark.engine == "none":
            return Pipeline()
        store = Pipelines(own.brief)
        oldest = [at for job in own.jobs if (at := store.read_oldest_commit(job)) is not None]
        counts = (store.count_failures(since), store.count_quality_faults(since))
        return Pipeline(min(oldest, default=None), *counts, store.read_stale())

    sources = (own.settings.stream, Ledger(own.stream), own.hub, enqueued_at, own.hub_ends.get)
    return Watching(*sources, pipeline, lambda now: own.burn_down.get(), own.batch_log.faults)
