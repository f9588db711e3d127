"""Telemetry of this process that stays in memory, for tests of what is sent."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from core.measured import record_with
from core.remote.telemetry.opening import signals_of


@dataclass
class Memory:
    """The recorder of the process, with the spans and metrics that it sent."""

    exporter: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    reader: InMemoryMetricReader = field(default_factory=InMemoryMetricReader)
    monotonic: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        tracers = TracerProvider(shutdown_on_exit=False)
        tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.signals = signals_of(tracers, MeterProvider([self.reader], shutdown_on_exit=False), self.monotonic)

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def points(self) -> dict[str, list[tuple[dict[str, Any], Any]]]:
        """Return the points of each metric: attributes, and the value."""
        found: dict[str, list[tuple[dict[str, Any], Any]]] = {}
        data = self.reader.get_metrics_data()
        for metric in [] if data is None else data.resource_metrics[0].scope_metrics[0].metrics:
            points: Any = metric.data.data_points
            values = [(dict(one.attributes), one.value) for one in points]
            found[metric.name] = values
        return found


@contextmanager
def recording(monotonic: Callable[[], float] = time.monotonic) -> Iterator[Memory]:
    """Record the measured use cases until the end of the block."""
    memory = Memory(monotonic=monotonic)
    record_with(memory.signals)
    try:
        yield memory
    finally:
        record_with(None)
