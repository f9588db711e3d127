"""The instruments of OpenTelemetry for the metrics of the catalogue. A fault of one never reaches the work."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from core.remote.telemetry.names import METRICS, Metric

log = logging.getLogger("hubledger.telemetry")
Value = str | int | float
FRESH = 90.0  # seconds: the watch comes each minute
_noted: set[str] = set()


class Latest:
    """The values of a gauge, each for a while: an instance that lost the watch must not repeat its last ones."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic, self._alone = monotonic, threading.Lock()
        self._values: dict[frozenset[tuple[str, Value]], tuple[float, Observation]] = {}

    def set(self, value: float, attributes: Mapping[str, Value]) -> None:
        """Replace the value of these attributes."""
        with self._alone:
            self._values[frozenset(attributes.items())] = (self._monotonic(), Observation(value, dict(attributes)))

    def read(self, options: CallbackOptions) -> list[Observation]:
        """Return the values that are not too old."""
        oldest = self._monotonic() - FRESH
        with self._alone:
            self._values = {key: each for key, each in self._values.items() if each[0] >= oldest}
            return [value for _, value in self._values.values()]


class Instruments:
    """Records values of the metrics of the catalogue. `monotonic` gives seconds."""

    def __init__(self, meter: Meter, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._record = {metric.name: _recording(meter, metric, Latest(monotonic)) for metric in METRICS}

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


def _recording(meter: Meter, metric: Metric, latest: Latest) -> Callable[[Any, Any], None]:
    name, unit, meaning = metric.name, metric.unit, metric.meaning
    if metric.kind == "counter":
        return meter.create_counter(name, unit, meaning).add
    if metric.kind == "gauge":
        meter.create_observable_gauge(name, [latest.read], unit, meaning)
        return latest.set
    buckets = metric.buckets
    return meter.create_histogram(name, unit, meaning, explicit_bucket_boundaries_advisory=buckets).record
