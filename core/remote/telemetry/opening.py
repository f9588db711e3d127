"""Open telemetry when OpenTelemetry's own settings ask for it. Otherwise nothing of it is imported.

The worker of Functions configures the SDK for Azure Monitor itself. Otherwise the standard variables of OTLP configure
it here, by the configurator of `opentelemetry-distro`, so that every variable means what its specification says.
"""

import atexit
import logging
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from core.measured import record_with

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from core.remote.telemetry.signals import Signals

log = logging.getLogger("hubledger.telemetry")
BY_THE_HOST = "PYTHON_APPLICATIONINSIGHTS_ENABLE_TELEMETRY"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES_ENDPOINT, METRICS_ENDPOINT = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
TRACES, METRICS = "OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER"
DISABLED, SERVICE, RESOURCE = "OTEL_SDK_DISABLED", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"
PROTOCOL = "OTEL_EXPORTER_OTLP_PROTOCOL"
CONVENTIONS = "1.44.0"  # of opentelemetry-semantic-conventions, in requirements.txt by azure-monitor-opentelemetry
SCHEMA = f"https://opentelemetry.io/schemas/{CONVENTIONS}"
CLOSE_WITHIN = 5.0  # seconds: the worker has 25 in all, and a collector that does not answer takes up to 30


class Closes(Protocol):
    """A provider of the SDK."""

    def shutdown(self) -> None: ...


def open_telemetry(environ: MutableMapping[str, str]) -> None:
    """Record the measured use cases of this process, if the environment asks for it. Never raises.

    Telemetry that cannot be opened is logged, and the work goes on without it.
    """
    if not is_asked_for(environ):
        return
    try:
        record_with(_configured_signals(environ))
    except Exception as fault:  # noqa: BLE001 - telemetry never stops the work: a wrong setting of it neither
        error = f"{type(fault).__name__}: {fault}"
        log.warning("telemetry not opened; the work goes on without it", extra={"action": "telemetry", "error": error})


def is_asked_for(environ: Mapping[str, str]) -> bool:
    """Return True when a variable asks for telemetry and none switches it off."""
    if environ.get(DISABLED, "").strip().lower() == "true":
        return False
    return is_hosts(environ) or is_otlps(environ)


def is_otlps(environ: Mapping[str, str]) -> bool:
    """Return True when a variable of OpenTelemetry names an endpoint or an exporter."""
    endpoints = (environ.get(name, "").strip() for name in (ENDPOINT, TRACES_ENDPOINT, METRICS_ENDPOINT))
    exporters = (environ.get(name, "").strip().lower() not in ("", "none") for name in (TRACES, METRICS))
    return any(endpoints) or any(exporters)


def is_hosts(environ: Mapping[str, str]) -> bool:
    """Return True when the worker of Functions configures the SDK."""
    return environ.get(BY_THE_HOST, "").strip().lower() in ("1", "true")


def _configured_signals(environ: MutableMapping[str, str]) -> "Signals | None":
    from opentelemetry import metrics, trace
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import TracerProvider

    def is_configured() -> bool:
        tracers, meters = trace.get_tracer_provider(), metrics.get_meter_provider()
        return isinstance(tracers, TracerProvider) or isinstance(meters, MeterProvider)

    if not is_configured() and is_otlps(environ):
        from opentelemetry.distro import OpenTelemetryConfigurator  # here, because only this way needs it

        set_defaults(environ)
        OpenTelemetryConfigurator().configure()  # type: ignore[no-untyped-call]  # the package has no types
        providers: list[Any] = [trace.get_tracer_provider(), metrics.get_meter_provider()]
        atexit.register(close, providers)  # before the SDK's own end, which would wait up to 30 s for each of them
    if not is_configured():
        return None  # no worker of Functions is here, or telemetry is switched off
    return signals_of(trace.get_tracer_provider(), metrics.get_meter_provider())


def signals_of(
    tracers: "TracerProvider", meters: "MeterProvider", monotonic: Callable[[], float] = time.monotonic
) -> "Signals":
    """Return the recorder that sends by these providers."""
    from core.remote.telemetry.signals import Signals

    tracer = tracers.get_tracer("hubledger", schema_url=SCHEMA)
    return Signals(tracer, meters.get_meter("hubledger", schema_url=SCHEMA), monotonic)


def set_defaults(environ: MutableMapping[str, str]) -> None:
    """Set the defaults that the specification has and the Python SDK has not: OTLP over HTTP to a given endpoint."""
    everything = bool(environ.get(ENDPOINT))
    for exporter, endpoint in ((TRACES, TRACES_ENDPOINT), (METRICS, METRICS_ENDPOINT)):
        if everything or environ.get(endpoint):
            environ.setdefault(exporter, "otlp")
    environ.setdefault(PROTOCOL, "http/protobuf")
    if "service.name=" not in environ.get(RESOURCE, ""):
        environ.setdefault(SERVICE, "hubledger")


def close(providers: Sequence[Closes], within: float = CLOSE_WITHIN) -> None:
    """Send what is left, for some seconds at most: a collector that does not answer must not hold the process."""
    endings = [threading.Thread(target=each.shutdown, daemon=True) for each in providers]
    for ending in endings:
        ending.start()
    ends_at = time.monotonic() + within
    for ending in endings:
        ending.join(max(0.0, ends_at - time.monotonic()))
