import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from msgspec import structs
from opentelemetry.metrics import NoOpMeter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NoOpTracer, SpanKind, StatusCode

from core.aggregation.tick import AggregationReport, TickStep, aggregate
from core.errors import StoreUnavailable
from core.ingest.ingest import Ingestion, ingest_batch
from core.ledger.totals import Books, LetterBooks
from core.ledger.watch import LaggingPartition, Observation
from core.letters.retry import Keeper, claim_due, retry_chunk
from core.measured import GAUGES, measured, record_with
from core.model.events import PartitionId, Stream
from core.model.ports import Clock
from core.model.property_values import Unread
from core.remote.telemetry import signals
from core.remote.telemetry.opening import signals_of
from core.remote.telemetry.signals import LINKS, Signals, metric_of, producer_links
from core.replay.store import Replays
from core.replay.task import ReplayKind
from core.settle.partition_store import Partitions
from core.tasks.run import work_on
from tests.fakes.aggregation_engines import HOME_ACTIVITY, ingest
from tests.fakes.builders import NOON, STREAM, FakeClock, batch, event, events, ids, keep_letters, partition, reading
from tests.fakes.faulty_database import Fault, FaultyDatabase
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.plain_transform import PLAIN
from tests.fakes.store import MemoryStore, Store
from tests.fakes.ticks import World


class Memory:
    """The recorder of the process, with the spans and metrics that it sent."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        tracers = TracerProvider(shutdown_on_exit=False)
        tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.signals = signals_of(tracers, MeterProvider([self.reader], shutdown_on_exit=False), monotonic)

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def points(self) -> dict[str, list[tuple[dict[str, Any], Any]]]:
        data: Any = self.reader.get_metrics_data()
        metrics = [] if data is None else data.resource_metrics[0].scope_metrics[0].metrics
        return {one.name: [(dict(each.attributes), each.value) for each in one.data.data_points] for one in metrics}


@contextmanager
def recording(monotonic: Callable[[], float] = time.monotonic) -> Iterator[Memory]:
    """Record the measured use cases until the end of the block."""
    memory = Memory(monotonic)
    record_with(memory.signals)
    try:
        yield memory
    finally:
        record_with(None)


HUB = {signals.DESTINATION: "telemetry", signals.GROUP: "hubledger"}
PROCESS = {signals.SYSTEM: "eventhubs", signals.OPERATION: "process", signals.OPERATION_TYPE: "process", **HUB}
SECRETS = ("home-1", "reading", "SharedAccessKey", "the body says")
SEEN = Observation(
    stream=STREAM,
    at=NOON,
    books=Books((), LetterBooks({"waiting": 2, "exhausted": 1}, 3)),
    lagging=(LaggingPartition(PartitionId("1"), NOON - timedelta(seconds=90), NOON - timedelta(seconds=90)),),
    oldest_letter_at=NOON - timedelta(hours=1),
    absent=7,
)


@measured("watch")
def look(seen: Observation) -> Observation:
    return seen


def clock() -> Clock:
    source, fake = iter(ids()), FakeClock()
    return Clock(now=fake.now, new_id=lambda: next(source))


@pytest.fixture
def memory() -> Any:
    with recording() as one:
        yield one


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def test_a_batch_is_one_consumer_span_with_the_facts_of_its_report(memory: Memory, store: MemoryStore) -> None:
    given = (event(0, "reading home-1"), event(1, "poison"), event(2, "quiet"))
    report = ingest_batch(batch(given), Ingestion(store, PLAIN, clock()))
    (span,) = memory.spans
    assert (span.name, span.kind, span.status.status_code) == ("process telemetry", SpanKind.CONSUMER, StatusCode.UNSET)
    ends = {"hubledger.first": 0, "hubledger.last": 2, "hubledger.retries": 0, "hubledger.links_left_out": 0}
    counts = {f"hubledger.{fact}": count for fact, count in report.facts().items()}
    assert span.attributes == {**PROCESS, signals.PARTITION: "0", signals.BATCH_COUNT: 3, **ends, **counts}
    assert (counts["hubledger.written"], counts["hubledger.dead_lettered"]) == (1, 1)


def test_a_fault_has_its_class_and_not_its_text(memory: Memory, store: MemoryStore) -> None:
    faulty = FaultyDatabase(store.database, on_commit=[Fault.NOT_REACHED])
    with pytest.raises(StoreUnavailable):
        ingest_batch(replace(batch(events(0, 4, "quiet")), retries=3), Ingestion(Store(faulty), PLAIN, clock()))
    (span,) = memory.spans
    assert (span.status.status_code, span.status.description, span.events) == (StatusCode.ERROR, None, ())
    assert span.attributes is not None
    assert (span.attributes[signals.ERROR], span.attributes["hubledger.retries"]) == ("StoreUnavailable", 3)


def test_a_chunk_of_letters_is_a_span_with_its_outcomes(memory: Memory, store: MemoryStore) -> None:
    keep_letters(store, {0: "reading home-1", 1: "poison"})
    keeper = Keeper(STREAM, store, PLAIN, MemoryHub({}).find_event, replace(clock(), now=lambda: NOON))
    (chunk,) = claim_due(keeper)
    retry_chunk(chunk, keeper, "i-1")
    (span,) = memory.spans
    assert span.attributes is not None
    told = [span.attributes[f"hubledger.{fact}"] for fact in ("partition_id", "resolved", "exhausted")]
    assert (span.name, span.kind, told) == ("retry letters", SpanKind.INTERNAL, ["0", 1, 1])


def test_a_slice_of_a_task_is_a_span(memory: Memory, store: MemoryStore) -> None:
    replaying = ReplayKind(STREAM, Replays(store.database, Partitions(store.database)), MemoryHub({}), PLAIN, clock())
    work_on(UUID(int=7), partition().partition_id, replaying, NOON)
    (span,) = memory.spans
    facts = {"is_over": True, "pieces": 0, "looked_at": 0, "part": "0"}
    assert (span.name, span.attributes) == ("task slice", {f"hubledger.{name}": value for name, value in facts.items()})


def test_each_step_of_the_aggregation_is_a_span_without_the_text_of_a_fault(memory: Memory, tmp_path: Path) -> None:
    world = World(tmp_path)
    ingest(world.store, [reading()])
    aggregate(world.own, HOME_ACTIVITY)
    world.finish()
    aggregate(world.own, HOME_ACTIVITY)
    steps = [span.attributes for span in memory.spans if span.name == "aggregation tick"]
    assert steps == [{"hubledger.steps": "submitted"}, {"hubledger.steps": "committed; has nothing new"}]
    world.store.close()
    waits = TickStep("waits", "https://engine/?sig=abc refused")
    report = AggregationReport((waits, TickStep("has nothing new")), None)
    assert report.facts() == {"steps": "waits; has nothing new"}


def test_each_fact_that_an_alert_reads_is_a_gauge_of_its_stream(memory: Memory) -> None:
    look(SEEN)
    facts = SEEN.facts()
    points = memory.points()
    assert points == {metric_of(fact)[0]: [(HUB, float(facts[fact]))] for fact in GAUGES}  # type: ignore[arg-type]
    assert (points["hubledger.lag"], points["hubledger.letters_open"]) == ([(HUB, 90.0)], [(HUB, 3.0)])
    assert points["hubledger.ledger_balanced"] == [(HUB, 1.0)]
    look(replace(SEEN, stream=Stream(STREAM.event_hub, "a second group"), absent=0))
    found = {told[signals.GROUP]: value for told, value in memory.points()["hubledger.absent_new"]}
    assert found == {"hubledger": 7, "a second group": 0}


def test_a_gauge_of_an_instance_that_lost_the_watch_ends_so_that_no_old_value_is_repeated() -> None:
    fake = FakeClock()
    with recording(fake.monotonic) as memory:
        look(SEEN)
        fake.advance(60)
        assert "hubledger.lag" in memory.points()
        fake.advance(60)
        assert "hubledger.lag" not in memory.points()


def test_a_fault_of_the_telemetry_itself_does_not_fail_the_work(caplog: pytest.LogCaptureFixture) -> None:
    class Torn:
        """A report whose facts cannot be read."""

        def facts(self) -> dict[str, object]:
            raise ZeroDivisionError

    torn, own = Torn(), Signals(NoOpTracer(), NoOpMeter("torn"))
    for _ in range(2):
        assert own.run("work", lambda: torn, (), {}) is torn
    assert [record.getMessage() for record in caplog.records] == ["telemetry not recorded"]


def test_nothing_that_is_sent_holds_a_body_a_key_or_the_text_of_an_error(memory: Memory, store: MemoryStore) -> None:
    given = (event(0, "reading home-1", key="home-1"), event(1, "poison", key="home-1"), event(2, "bug"))
    ingest_batch(batch(given), Ingestion(store, PLAIN, clock()))
    sent = " ".join(span.to_json() for span in memory.spans) + repr(memory.points())
    assert [secret for secret in SECRETS if secret in sent] == []


TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CONTEXT = f"00-{TRACE}-{SPAN}-01"


def links_of(*properties: Mapping[str, Any]) -> tuple[Any, int]:
    return producer_links([structs.replace(event(number), properties=each) for number, each in enumerate(properties)])


@pytest.mark.parametrize("name", ["traceparent", "Diagnostic-Id"])
def test_the_context_of_a_producer_becomes_one_link(name: str) -> None:
    (link,), left_out = links_of(*[{name: CONTEXT, "traceparent": CONTEXT if name == "traceparent" else "no"}] * 500)
    found = link.context
    assert (f"{found.trace_id:032x}", f"{found.span_id:016x}", found.trace_flags, left_out) == (TRACE, SPAN, 1, 0)


def test_links_beyond_the_limit_are_counted_and_malformed_contexts_take_no_place_of_a_good_one() -> None:
    good = [{"traceparent": f"00-{number + 1:032x}-{number + 1:016x}-01"} for number in range(500)]
    hostile = [{"traceparent": f"00-{number:032d}-{'0' * 16}-01"} for number in range(1, 400)]
    for given in (good, [*hostile, *good]):
        links, left_out = links_of(*given)
        assert (len(links), left_out) == (LINKS, 500 - LINKS)


HOSTILE = [
    *("", "00", CONTEXT.upper(), CONTEXT[:-1], CONTEXT + "0", CONTEXT.replace("-", "_"), "x" * 10_000_000),
    *(f"ff-{TRACE}-{SPAN}-01", f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01", f"00-{TRACE}-{SPAN}-0g"),
    *(f"01-{TRACE}-{SPAN}-01-{'x' * 1_000_000}", f"00-{TRACE}-{SPAN}-\n1", "|" + "a" * 54, "٠" * 55, "\ud800" * 55),
    *(None, 1, b"0" * 55, [CONTEXT], {"a": CONTEXT}),
]


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
def test_a_malformed_or_hostile_context_is_ignored(value: object) -> None:
    assert links_of({"traceparent": value, "tracestate": "k=v," * 100_000}, Unread("json", "{"), {}) == ((), 0)
