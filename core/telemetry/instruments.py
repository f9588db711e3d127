"""The instruments of OpenTelemetry for the metrics of the catalogue. A fault of one never reaches the work."""

import logging
from collections.abc import Mapping

from opentelemetry.metrics import Meter

from core.telemetry.names import METRICS, Metric

log = logging.getLogger("hubledger.telemetry")
Value = str | int | float
_noted: set[str] = set()


class Instruments:
    """Records values of the metrics of the catalogue."""

    def __init__(self, meter: Meter) -> None:
        self._record = {metric.name: _recording(meter, metric) for metric in METRICS}

    def record(self, metric: Metric, value: float, attributes: Mapping[str, Value]) -> None:
        """Record a value. A fault of the SDK is logged, and the work goes on."""
        try:
            self._record[metric.name](value, attributes)
        except Exception as fault:  # noqa: BLE001 - telemetry never fails the work that it observes
            note_fault(fault)

    def count(self, metric: Metric, value: int, attributes: Mapping[str, Value]) -> None:
        """Add to a counter, unless there is nothing to add."""
        if value:
            self.record(metric, value, attributes)


def note_fault(fault: Exception) -> None:
    """Log a fault of the telemetry itself, the first one of each class in a process: a batch has many values."""
    error = type(fault).__name__
    if error not in _noted:
        _noted.add(error)
        log.warning("telemetry not recorded", extra={"action": "telemetry", "error": error})


def _recording(meter: Meter, metric: Metric):  # type: ignore[no-untyped-def]  # the API has a method for each kind
    if metric.kind == "counter":
        return meter.create_counter(metric.name, metric.unit, metric.meaning).add
    if metric.kind == "gauge":
        return meter.create_gauge(metric.name, metric.unit, metric.meaning).set
    buckets = metric.buckets
    return meter.create_histogram(
        metric.name, metric.unit, metric.meaning, explicit_bucket_boundaries_advisory=buckets
    ).record
