"""Spans with links to their producers, and metrics, arrive at a receiver of OTLP, from the trigger and the worker."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.eventhub import EventData, EventHubProducerClient

from core.measured import GAUGES
from core.remote.telemetry.signals import metric_of
from tests.acceptance.gaps.apps import DEADLINE, SELDOM, working
from tests.acceptance.worker.conftest import place  # noqa: F401 - a fixture
from tests.acceptance.worker.started import Workplace
from tests.fakes.otlp_receiver import Received, attributes_of, receiving
from tests.patience import allowed

pytestmark = pytest.mark.slow

PRODUCERS = [f"00-{number:032x}-{number:016x}-01" for number in (1, 2)]
EVERY_SECOND = {"OTEL_METRIC_EXPORT_INTERVAL": "500", "OTEL_BSP_SCHEDULE_DELAY": "200"}


@pytest.fixture
def received() -> Iterator[Received]:
    with receiving() as one:
        yield one


def traced(contexts: list[str]) -> list[EventData]:
    """Return an event from each producer, and one whose context is hostile."""
    found = []
    for number, context in enumerate([*contexts, "00-" + "g" * 52]):
        event = EventData(b"reading home-1")
        event.properties = {"traceparent" if number % 2 else "Diagnostic-Id": context}
        found.append(event)
    return found


def publish(producer: EventHubProducerClient, events: list[EventData], partition_id: str = "0") -> None:
    sent = producer.create_batch(partition_id=partition_id)
    for event in events:
        sent.add(event)
    producer.send_batch(sent)


def links(received: Received) -> set[str]:
    return {link.trace_id.hex() for span in received.batches() for link in span.links}


def test_the_app_on_the_host_links_a_batch_to_its_producers_and_sends_its_metrics(
    tmp_path: Path, received: Received
) -> None:
    with working(tmp_path) as app:
        settings = {**SELDOM, **EVERY_SECOND, "OTEL_EXPORTER_OTLP_ENDPOINT": received.address}
        app.start(**{**settings, "WATCH_SCHEDULE": "* * * * * *"}, OTEL_SERVICE_NAME="acceptance")
        app.send("1", [b"quiet"])
        assert app.producer is not None
        publish(app.producer, traced(PRODUCERS))
        app.until(lambda: links(received) == {context[3:35] for context in PRODUCERS})
        app.until(lambda: {metric_of(fact)[0] for fact in GAUGES} <= set(received.metrics))
    (span,) = [one for one in received.batches() if one.links]
    told = attributes_of(span)
    assert (span.name, told["messaging.system"], told["messaging.batch.message_count"]) == (
        "process telemetry",
        "eventhubs",
        3,
    )
    assert {one["service.name"] for one in received.resources} == {"acceptance"}


def test_the_worker_sends_the_same_and_what_is_left_at_its_end(
    place: Workplace,  # noqa: F811
    received: Received,
) -> None:
    worker = place.start_worker(OTEL_EXPORTER_OTLP_ENDPOINT=received.address)
    publish(place.producer, traced(PRODUCERS))
    place.until(lambda: sum(place.accounted()) >= 3)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(allowed(DEADLINE)) == 0
    assert links(received) == {context[3:35] for context in PRODUCERS}
    assert sum(attributes_of(span)["hubledger.events"] for span in received.batches()) == 3
