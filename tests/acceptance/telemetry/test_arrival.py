import signal
from collections.abc import Iterator
from typing import Any

import pytest
from azure.eventhub import EventData

from core.measured import GAUGES
from core.remote.telemetry.signals import metric_of
from tests.acceptance.started import DEADLINE, SELDOM, App
from tests.fakes.otlp_receiver import Received, attributes_of, receiving
from tests.patience import allowed

PRODUCERS = [f"00-{number:032x}-{number:016x}-01" for number in (1, 2)]
EVERY_SECOND = {"OTEL_METRIC_EXPORT_INTERVAL": "500", "OTEL_BSP_SCHEDULE_DELAY": "200"}


@pytest.fixture
def received() -> Iterator[Received]:
    with receiving() as one:
        yield one


def publish_traced(app: App) -> None:
    sent: Any = app.producer.create_batch(partition_id="0")
    for number, context in enumerate([*PRODUCERS, "00-" + "g" * 52]):
        event = EventData(b"reading home-1")
        event.properties = {"traceparent" if number % 2 else "Diagnostic-Id": context}
        sent.add(event)
    app.producer.send_batch(sent)


def are_linked(received: Received) -> bool:
    links = {link.trace_id.hex() for span in received.batches() for link in span.links}
    return links == {context[3:35] for context in PRODUCERS}


def test_the_app_on_the_host_links_a_batch_to_its_producers_and_sends_its_metrics(app: App, received: Received) -> None:
    settings = {**SELDOM, **EVERY_SECOND, "OTEL_EXPORTER_OTLP_ENDPOINT": received.address}
    app.start(**{**settings, "WATCH_SCHEDULE": "* * * * * *"}, OTEL_SERVICE_NAME="acceptance")
    app.send("1", [b"quiet"])
    publish_traced(app)
    app.until(lambda: are_linked(received))
    app.until(lambda: {metric_of(fact)[0] for fact in GAUGES} <= set(received.metrics))
    (span,) = [one for one in received.batches() if one.links]
    told, names = attributes_of(span), ("messaging.system", "messaging.batch.message_count")
    assert (span.name, *map(told.get, names)) == ("process telemetry", "eventhubs", 3)
    assert {one["service.name"] for one in received.resources} == {"acceptance"}


def test_the_worker_sends_the_same_and_what_is_left_at_its_end(place: App, received: Received) -> None:
    worker = place.start_worker(OTEL_EXPORTER_OTLP_ENDPOINT=received.address)
    publish_traced(place)
    place.until(lambda: sum(place.accounted().values()) >= 3)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(allowed(DEADLINE)) == 0
    assert are_linked(received)
    assert sum(attributes_of(span)["hubledger.events"] for span in received.batches()) == 3
