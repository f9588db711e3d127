"""What the aggregation's functions of one process share, made on first use: its store, and perhaps an engine."""

import atexit
import logging
import threading
from dataclasses import dataclass
from datetime import UTC, datetime

from core.aggregation.port import AggregationStore
from core.aggregation.runs import RunLimits
from core.aggregation.tick import Aggregation, AggregationReport, aggregate, report_facts
from core.settings import Settings
from handlers.services import services


@dataclass(frozen=True, slots=True)
class AggregationServices:
    """`aggregation` is None for SPARK_ENGINE=none."""

    store: AggregationStore
    aggregation: Aggregation | None


log = logging.getLogger("hubledger.aggregation")
_lock = threading.Lock()
_made: list[AggregationServices] = []


def aggregation_services() -> AggregationServices:
    """The services; a HubledgerError, each time, while they cannot be made."""
    with _lock:
        if not _made:
            _made.append(_make(services().settings))
        return _made[0]


def take_step(own: Aggregation) -> AggregationReport:
    """Take one step, and log it as one line."""
    report = aggregate(own)
    level = logging.INFO if report.published else logging.WARNING
    log.log(level, "aggregation looked after", extra=report_facts(report))
    return report


def _make(settings: Settings) -> AggregationServices:
    from core.remote.spark.open import job_arguments, open_engine, open_lake  # clients and drivers are not needed
    from core.store.aggregation import open_aggregation_store  # to index the functions

    engine, lake = open_engine(settings), open_lake(settings)
    arguments = () if engine is None else job_arguments(settings)
    store = open_aggregation_store(settings)
    atexit.register(store.close)
    if engine is None:
        return AggregationServices(store, None)
    limits = RunLimits(grace=settings.spark.grace, deadline=settings.spark.deadline)
    return AggregationServices(store, Aggregation(store, engine, lake, _now, limits, arguments))


def _now() -> datetime:
    return datetime.now(UTC)
