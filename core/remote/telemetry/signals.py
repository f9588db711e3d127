"""The spans and metrics of the app. `docs/telemetry.md` shows the same.

Names of `messaging.` and `error.` are from OpenTelemetry's semantic conventions, others begin with `hubledger.`.
No attribute has a body, a key, an id from an event, or the text of an error.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

from opentelemetry.context import Context
from opentelemetry.metrics import CallbackOptions, Meter, Observation
from opentelemetry.trace import Link, SpanKind, StatusCode, Tracer, get_current_span
from opentelemetry.trace import Span as OpenSpan
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from core.measured import GAUGES, Factual
from core.model.events import Event, EventBatch

log = logging.getLogger("hubledger.telemetry")
Report = TypeVar("Report")
Value = str | int | float
SYSTEM, OPERATION, OPERATION_TYPE = "messaging.system", "messaging.operation.name", "messaging.operation.type"
DESTINATION, PARTITION = "messaging.destination.name", "messaging.destination.partition.id"
GROUP, BATCH_COUNT, ERROR = "messaging.consumer.group.name", "messaging.batch.message_count", "error.type"
OWN = "hubledger."

UNITS = {"seconds": "s", "hours": "h"}
FRESH = 90.0  # seconds: the watch comes each minute

LINKS = 32  # of a span; Application Insights cuts a property after 8,192 characters, which is 90 links
TRACE_CONTEXTS = ("traceparent", "Diagnostic-Id")  # of the conventions, and of the Azure SDKs
LENGTH = 55  # octets of version 00; a longer text is no trace context that we know
_NOWHERE, _READER = Context(), TraceContextTextMapPropagator()


class Signals:
    """Runs each measured use case in a span, and sends the facts of the watch as gauges.

    A fault of the use case stays as it is. `monotonic` gives seconds.
    """

    def __init__(self, tracer: Tracer, meter: Meter, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._tracer, self._monotonic = tracer, monotonic
        self._watched: dict[tuple[Value, Value], tuple[float, Mapping[str, Any]]] = {}
        self._faults: set[str] = set()
        for fact in GAUGES:
            name, unit = metric_of(fact)
            meter.create_observable_gauge(name, [partial(self._read, fact)], unit)

    def run(
        self, name: str, use_case: Callable[..., Report], args: tuple[Any, ...], named: Mapping[str, Any]
    ) -> Report:
        """Run a use case in a span. The text of its fault is not sent, because it may have a key."""
        attributes: dict[str, Value] = {}
        kind, links = SpanKind.INTERNAL, tuple[Link, ...]()
        if args and isinstance(batch := args[0], EventBatch):
            links, left_out = producer_links(batch.events)
            attributes = {**of_batch(batch), f"{OWN}links_left_out": left_out}
            name, kind = f"process {attributes[DESTINATION]}", SpanKind.CONSUMER
        with self._tracer.start_as_current_span(
            name, kind=kind, attributes=attributes, links=links, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                report = use_case(*args, **named)
            except BaseException as fault:
                span.set_attribute(ERROR, type(fault).__name__)
                span.set_status(StatusCode.ERROR)
                raise
            if isinstance(report, Factual):
                self._note(span, report)
            return report

    def _note(self, span: OpenSpan, report: Factual) -> None:
        """Note the facts of a report. A fault in here must not make the host try a committed batch again, without end.

        Such a fault is logged, the first one of each class.
        """
        try:
            facts = report.facts()
            if set(GAUGES) <= facts.keys():
                stream = (_hub_of(str(facts["event_hub"])), str(facts["consumer_group"]))
                self._watched[stream] = (self._monotonic(), facts)
            else:
                span.set_attributes({OWN + fact: value for fact, value in facts.items() if isinstance(value, Value)})
        except Exception as fault:  # noqa: BLE001 - telemetry never fails the work that it observes
            error = type(fault).__name__
            if error not in self._faults:
                self._faults.add(error)
                log.warning("telemetry not recorded", extra={"action": "telemetry", "error": error})

    def _read(self, fact: str, options: CallbackOptions) -> list[Observation]:
        """Return the fact of each stream. An instance that lost the watch must not repeat its last one."""
        oldest = self._monotonic() - FRESH
        return [
            Observation(float(facts[fact]), {DESTINATION: hub, GROUP: group})
            for (hub, group), (at, facts) in list(self._watched.items())
            if at >= oldest
        ]


def metric_of(fact: str) -> tuple[str, str]:
    """Return the name and the unit of a fact's metric. Prometheus appends the unit to the name again."""
    name, _, unit = fact.rpartition("_")
    return (OWN + name, UNITS[unit]) if unit in UNITS else (OWN + fact, "")


def of_batch(batch: EventBatch) -> dict[str, Value]:
    """Return the attributes of a batch before it is ingested."""
    stream = batch.partition.stream
    return {
        SYSTEM: "eventhubs",
        OPERATION: "process",
        OPERATION_TYPE: "process",
        DESTINATION: _hub_of(stream.event_hub),
        GROUP: stream.consumer_group,
        PARTITION: str(batch.partition.partition_id),
        BATCH_COUNT: len(batch.events),
        f"{OWN}first": batch.events[0].sequence_number,
        f"{OWN}last": batch.events[-1].sequence_number,
        f"{OWN}retries": batch.retries,
    }


def _hub_of(event_hub: str) -> str:
    return event_hub.rpartition("/")[2]


def producer_links(events: Iterable[Event]) -> tuple[tuple[Link, ...], int]:
    """Return a link to each producer's span, at most LINKS, and the number of spans that were left out.

    A text that is no trace context is ignored, whoever sent it. `tracestate` is not read: its sender chooses its size.
    """
    texts = dict.fromkeys(text for event in events if (text := _text_of(event.properties)) is not None)
    links: list[Link] = []
    for seen, text in enumerate(texts):
        if len(links) == LINKS:
            return tuple(links), len(texts) - seen
        context = get_current_span(_READER.extract({"traceparent": text}, _NOWHERE)).get_span_context()
        if context.is_valid:
            links.append(Link(context))
    return tuple(links), 0


def _text_of(properties: object) -> str | None:
    if type(properties) is not dict:  # properties that cannot be read raise at any access
        return None
    for name in TRACE_CONTEXTS:
        value = properties.get(name)
        if type(value) is str and len(value) == LENGTH:
            return value
    return None
