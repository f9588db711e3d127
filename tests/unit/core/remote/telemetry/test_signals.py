"""core/remote/telemetry/signals.py and database.py: the spans and metrics of each kind of work."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from opentelemetry.metrics import NoOpMeter
from opentelemetry.trace import NoOpTracer, SpanKind, StatusCode

from core.errors import StoreUnavailable
from core.ingest.ingest import Means, ingest_batch
from core.ingest.silence import Healed
from core.letters.keeper import Keeper
from core.letters.retry import claim_due
from core.model.clock import Clock
from core.model.spans import SequenceNumber, Span
from core.remote.telemetry import names
from core.remote.telemetry.calls import CallNotes
from core.remote.telemetry.instruments import Instruments
from core.remote.telemetry.signals import Signals, steps_of
from core.replay.run import ReplayKind
from core.replay.store.replays import Replays
from core.store.database import Database, PatientDatabase, Waiting
from core.store.memory import Memory as StoreMemory
from core.store.observed import ObservedDatabase, observed
from tests.fakes.aggregation_engines import HOME_ACTIVITY, ingest
from tests.fakes.builders import (
    NOON,
    PATIENCE,
    STREAM,
    FakeClock,
    batch,
    commit,
    event,
    events,
    ids,
    keep_letters,
    partition,
    reading,
    settled,
)
from tests.fakes.faulty_database import Fault, FaultyDatabase
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.memory_store import MemoryStore
from tests.fakes.plain_transform import PLAIN
from tests.fakes.store import Store
from tests.fakes.telemetry import Memory
from tests.fakes.ticks import World

HUB = {names.DESTINATION: "telemetry", names.GROUP: "hubledger"}
ZERO = {**HUB, names.PARTITION: "0"}
PROCESS = {names.SYSTEM: "eventhubs", names.OPERATION: "process", **ZERO}
SECRETS = ("home-1", "reading", "SharedAccessKey", "the body says")


def clock(seed: int = 0) -> Clock:
    source, fake = iter(ids(seed)), FakeClock()
    return Clock(now=fake.now, new_id=lambda: next(source))


def seen_by(memory: Memory, database: Database) -> Database:
    return observed(database, memory.work.noting("sqlite:store.db"))


def means(memory: Memory, database: Database) -> Means:
    remembered = StoreMemory(timedelta(seconds=60))
    return Means(Store(seen_by(memory, database), remembered), PLAIN, clock())


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def test_a_batch_is_one_consumer_span_by_the_conventions(memory: Memory, store: MemoryStore) -> None:
    given = (event(0, "reading home-1"), event(1, "poison"), event(2, "quiet"))
    memory.work.ingest(batch(given), means(memory, store.database))
    (span,) = memory.spans
    assert (span.name, span.kind, span.status.status_code) == ("process telemetry", SpanKind.CONSUMER, StatusCode.UNSET)
    calls = span.attributes[names.STORE_CALLS] if span.attributes else None
    assert span.attributes == {
        **PROCESS,
        names.OPERATION_TYPE: "process",
        names.BATCH_COUNT: 3,
        names.FIRST: 0,
        names.LAST: 2,
        names.RETRIES: 0,
        names.COMMITS: 1,
        names.GAPS: 0,
        names.DEAD_LETTERED: 1,
        names.REDELIVERED: 0,
        names.STORE_CALLS: calls,
        names.LINKS_LEFT_OUT: 0,
    }
    assert set(span.attributes) <= set(names.BATCH_SPAN.attributes)


def test_the_metrics_of_a_batch_count_each_event_once(memory: Memory, store: MemoryStore) -> None:
    own = means(memory, store.database)
    given = (event(0, "reading home-1"), event(1, "poison"), event(2, "quiet"))
    memory.work.ingest(batch(given), own)
    memory.work.ingest(batch((*given[2:], event(3, "reading home-1"))), own)
    points = memory.points()
    outcomes = {told[names.OUTCOME]: count for told, count in points["hubledger.events"]}
    assert outcomes == {"written": 2, "filtered": 1, "dead_lettered": 1, "redelivered": 1}
    assert points["messaging.client.consumed.messages"] == [(PROCESS, 5)]
    assert points["hubledger.batch.events"] == [(HUB, 5)]
    assert points["hubledger.commits"] == [(ZERO, 2)]
    opened = {**HUB, names.LETTER_CLASS: "poison", names.LETTER_STATUS: "exhausted"}
    assert points["hubledger.letters.opened"] == [(opened, 1)]
    assert [told for told, _ in points["messaging.process.duration"]] == [PROCESS]


def test_the_calls_of_the_steady_state_are_one_a_batch(memory: Memory, store: MemoryStore) -> None:
    own = means(memory, store.database)
    for first in (0, 5, 10):
        memory.work.ingest(batch(events(first, first + 4, "quiet")), own)
    calls = [span.attributes[names.STORE_CALLS] for span in memory.spans if span.attributes]
    assert calls[-1] == 1
    reads = {told[names.DATABASE_OPERATION] for told, _ in memory.points()["db.client.operation.duration"]}
    assert reads == {"read", "commit"}


def test_a_fault_has_its_class_and_not_its_text(memory: Memory, store: MemoryStore) -> None:
    faulty = FaultyDatabase(store.database, on_commit=[Fault.NOT_REACHED])
    with pytest.raises(StoreUnavailable):
        memory.work.ingest(replace(batch(events(0, 4, "quiet")), retries=3), means(memory, faulty))
    (span,) = memory.spans
    assert (span.status.status_code, span.status.description, span.events) == (StatusCode.ERROR, None, ())
    assert span.attributes is not None
    assert (span.attributes[names.ERROR], span.attributes[names.RETRIES]) == ("StoreUnavailable", 3)
    points = memory.points()
    assert [told for told, _ in points["messaging.process.duration"]] == [{**PROCESS, names.ERROR: "StoreUnavailable"}]
    assert points["hubledger.batch.retries"] == [(HUB, 1)]
    assert "hubledger.commits" not in points


def test_each_transient_fault_is_counted_that_patience_hides(memory: Memory, store: MemoryStore) -> None:
    faulty = FaultyDatabase(store.database, on_commit=[Fault.NOT_REACHED] * 3)
    fake = FakeClock()
    waiting = Waiting(fake.monotonic, fake.sleep, lambda: 0.0)
    patient = PatientDatabase(seen_by(memory, faulty), PATIENCE, waiting)
    memory.work.ingest(batch(events(0, 4, "quiet")), Means(Store(patient), PLAIN, clock()))
    told = {names.DATABASE: "sqlite", names.ERROR: "StoreUnavailable"}
    assert memory.points()["hubledger.store.transient_faults"] == [(told, 3)]


def test_a_conflict_is_counted_and_the_batch_goes_on(memory: Memory, store: MemoryStore) -> None:
    own = means(memory, store.database)
    memory.work.ingest(batch(events(0, 4, "quiet")), own)
    ingest_batch(batch(events(5, 9, "quiet")), Means(Store(store.database), PLAIN, clock(1)))
    memory.work.ingest(batch(events(5, 12, "quiet")), own)
    told = {names.DATABASE: "sqlite", names.ERROR: "CheckpointConflict"}
    assert memory.points()["hubledger.store.conflicts"] == [(told, 1)]


def test_a_gap_that_the_timer_healed_is_counted_as_one_of_a_batch_is(memory: Memory) -> None:
    state = MemoryStore().read_partition(partition())
    healing = commit(state, 3, 7, settled({}, filtered=4))
    gap = Span(SequenceNumber(3), SequenceNumber(7))
    memory.work.healed(Healed(partition(), gap, (replace(healing, absent=1),)))
    points = memory.points()
    assert points["hubledger.gaps"] == [(HUB, 1)]
    outcomes = {told[names.OUTCOME]: count for told, count in points["hubledger.events"]}
    assert outcomes == {"filtered": 4, "healed": 4, "absent": 1}
    assert points["hubledger.commits"] == [(ZERO, 1)]


def test_a_chunk_of_letters_is_a_span_and_its_letters_are_counted(memory: Memory, store: MemoryStore) -> None:
    keep_letters(store, {0: "reading home-1", 1: "poison"})
    at = clock()
    keeper = Keeper(STREAM, store, PLAIN, MemoryHub({}).find_event, replace(at, now=lambda: NOON))
    (chunk,) = claim_due(keeper)
    report = memory.work.retry(chunk, keeper, "i-1")
    (span,) = memory.spans
    assert (span.name, report.resolved, report.exhausted) == ("retry letters", 1, 1)
    assert span.attributes is not None and set(span.attributes) <= set(names.RETRY_SPAN.attributes)
    tried = {told[names.LETTER_STATUS]: count for told, count in memory.points()["hubledger.letters.retried"]}
    assert tried == {"resolved": 1, "exhausted": 1}


def test_a_slice_of_a_replay_is_a_span_and_is_timed(memory: Memory, store: MemoryStore) -> None:
    replaying = ReplayKind(STREAM, Replays(store.database), MemoryHub({}), PLAIN, clock())
    job_id = UUID(int=7)
    report = memory.work.task(job_id, partition().partition_id, replaying, NOON)
    (span,) = memory.spans
    assert report.is_over
    assert span.attributes == {
        **ZERO,
        names.REPLAY: str(job_id),
        names.PIECES: 0,
        names.EVENTS: 0,
        names.STORE_CALLS: 0,  # this store is not observed
    }
    assert [told for told, _ in memory.points()["hubledger.replay.duration"]] == [HUB]


def test_a_run_is_timed_once_from_its_plan_to_the_step_that_closes_it(memory: Memory, tmp_path: Path) -> None:
    world = World(tmp_path)
    ingest(world.store, [reading()])
    memory.work.aggregate(world.own, HOME_ACTIVITY)
    world.finish()
    world.clock.advance(90)
    assert "hubledger.aggregation.run.duration" not in memory.points()
    for _ in range(2):
        memory.work.aggregate(world.own, HOME_ACTIVITY)
    assert memory.points()["hubledger.aggregation.run.duration"] == [({names.JOB: HOME_ACTIVITY}, 90)]
    steps = [span.attributes[names.STEPS] for span in memory.spans if span.attributes]
    assert steps == ["submitted", "committed; has nothing new", "has nothing new"]
    world.store.close()


def test_the_steps_of_a_tick_are_sent_without_the_text_of_a_fault() -> None:
    assert steps_of(("waits: https://engine/?sig=abc refused", "has nothing new")) == "waits; has nothing new"


class TornMeter(NoOpMeter):
    """A meter whose counters and histograms raise."""

    def create_counter(self, *_: Any, **__: Any) -> Any:
        return SimpleNamespace(add=lambda *_: 1 / 0)

    def create_histogram(self, *_: Any, **__: Any) -> Any:
        return SimpleNamespace(record=lambda *_: 1 / 0)


def test_a_fault_of_the_telemetry_itself_does_not_fail_the_batch(
    store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    instruments = Instruments(TornMeter("torn"))
    signals = Signals(NoOpTracer(), instruments)
    own = Means(Store(ObservedDatabase(store.database, CallNotes("sqlite", instruments).note)), PLAIN, clock())
    assert len(signals.ingest(batch(events(0, 4, "quiet")), own).commits) == 1
    assert len(signals.ingest(batch(events(5, 9, "quiet")), own).commits) == 1
    assert [record.getMessage() for record in caplog.records] == ["telemetry not recorded"]


def test_nothing_that_is_sent_holds_a_body_a_key_or_the_text_of_an_error(memory: Memory, store: MemoryStore) -> None:
    given = (event(0, "reading home-1", key="home-1"), event(1, "poison", key="home-1"), event(2, "bug"))
    memory.work.ingest(batch(given), means(memory, store.database))
    sent = " ".join(span.to_json() for span in memory.spans) + repr(memory.points())
    assert [secret for secret in SECRETS if secret in sent] == []


def test_attributes_and_metrics_are_those_of_the_catalogue(memory: Memory, store: MemoryStore) -> None:
    memory.work.ingest(batch(events(0, 4, "poison")), means(memory, store.database))
    catalogue = {one.name: set(one.attributes) for one in names.METRICS}
    sent = {name: {key for told, _ in points for key in told} for name, points in memory.points().items()}
    assert {name: keys - catalogue[name] for name, keys in sent.items() if keys - catalogue[name]} == {}
