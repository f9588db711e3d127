import asyncio
import json
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta

import pytest

from core.errors import HubUnreachable, SchemaMismatch
from core.incarnations.hub_check import HubVerification
from core.ingest.batch_log import BatchLog
from core.ingest.gaps import GapReading
from core.ingest.ingest import Ingestion
from core.ingest.stalled_partitions import SilenceCheck
from core.letters.retry import Keeper
from core.model.commits import BatchCommit
from core.model.events import Event, Partition, SequenceNumber, stream_of
from core.model.letters import LetterPolicy
from core.model.transforms import Transform
from core.settings import OWN_LINES
from core.settle.isolate import Attempt, AttemptRequest, Journal
from core.worker import work as worker_work
from core.worker.__main__ import JsonLines
from core.worker.ownership import SqlCheckpointStore
from core.worker.work import CLOCK, LETTER_PAUSE, Receiver, Terms, Timing, check_gaps, end, keep_round, work
from tests.fakes.builders import NOON, STREAM, FakeClock, batch, events, stamps
from tests.fakes.builders import keep_letters as given_letters
from tests.fakes.engines import SqliteEngine
from tests.fakes.faulty_database import Fault, FaultyStore
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.plain_transform import PLAIN
from tests.fakes.store import MemoryStore, Store
from tests.patience import MOMENT, allowed, until

LOOK = timedelta(seconds=60)
SETTINGS = {
    "EVENTHUB": "Endpoint=sb://localhost:1;SharedAccessKeyName=n;SharedAccessKey=azE=;UseDevelopmentEmulator=true",
    "EVENTHUB_NAME": "telemetry",
    "EVENTHUB_CONSUMER_GROUP": "cg",
}
GIVEN = batch(events(0, 4, "reading a"))


def receiver(
    means: Ingestion, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep, chance: float = 1.0
) -> Receiver:
    timing = Timing(replace(CLOCK, chance=lambda: chance), sleep=sleep)
    return Receiver(means, BatchLog(OWN_LINES, CLOCK.now), timing)


def take(store: Store, chance: float = 1.0) -> list[float]:
    """Ingest the batch, and return the pauses in seconds."""
    slept, noting = list[float](), Noting()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await asyncio.sleep(0)

    asyncio.run(receiver(Ingestion(store, PLAIN, CLOCK, journal=noting), sleep, chance).take(GIVEN))
    assert noting.tries == [False, *[True] * (len(noting.tries) - 1)], "a held batch is retried as a retry"
    return slept


class Noting(Journal):
    def __init__(self) -> None:
        self.tries: list[bool] = []

    def attempt(self, asked: AttemptRequest, transform: Transform) -> AbstractContextManager[Attempt]:
        self.tries.append(asked.comes_again)
        return super().attempt(asked, transform)


def ranges(store: MemoryStore) -> list[tuple[int, int]]:
    return [(kept.first, kept.last) for kept in store.ledger()]


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    return [json.loads(JsonLines().format(record)) for record in caplog.records]


def test_a_client_that_fails_to_close_leaves_neither_sums_nor_partitions(caplog: pytest.LogCaptureFixture) -> None:
    class FailingClient:
        async def close(self) -> None:
            raise OSError("the link is gone")

    async def ended() -> None:
        owners = SqlCheckpointStore(store)
        names = {"fully_qualified_namespace": "ns", "eventhub_name": "telemetry", "consumer_group": "hubledger"}
        await owners.claim_ownership([{**names, "partition_id": "0", "owner_id": "a"}])
        await end(FailingClient(), summing, owners)

    caplog.set_level(logging.INFO)
    store, summing = MemoryStore(), BatchLog(0, CLOCK.now)
    asyncio.run(Receiver(Ingestion(store, PLAIN, CLOCK), summing).take(GIVEN))
    with pytest.raises(OSError, match="the link is gone"):
        asyncio.run(ended())
    assert [(line["message"], line["events"]) for line in lines(caplog)] == [("batches ingested", 5)]
    assert [one.owner_id for one in store.read_ownerships(stream_of("ns", "telemetry", "hubledger"))] == [""]


@pytest.mark.parametrize(("held", "chance"), [(1, 1.0), (3, 1.0), (9, 1.0), (2, 0.0)])
def test_an_infrastructure_fault_holds_the_batch(held: int, chance: float, caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    slept = take(FaultyStore(store, on_commit=[Fault.NOT_REACHED] * held), chance)
    found = lines(caplog)
    assert {(line["level"], line["partition"]) for line in found} == {("WARNING", "telemetry/hubledger/0")}
    assert "reading" not in json.dumps(found), "no bodies"
    assert slept == [min(2.0**turn, worker_work.LONGEST_PAUSE) * (0.5 + chance / 2) for turn in range(held)]
    assert ranges(store) == [(0, 4)]


def test_a_worker_over_a_store_without_a_table_of_its_transform_does_not_start(
    sqlite: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**SETTINGS, **sqlite.environment()}.items():
        monkeypatch.setenv(name, value)
    sqlite.sql("DROP TABLE home_alert")
    with pytest.raises(SchemaMismatch, match="there is no table home_alert"):
        asyncio.run(work(Terms(LOOK, LOOK, None)))


def test_a_batch_that_is_held_can_be_cancelled_and_writes_nothing() -> None:
    async def cancelled() -> None:
        holding = asyncio.Event()

        async def sleep(_: float) -> None:
            holding.set()
            await asyncio.Event().wait()

        faulty = FaultyStore(store, on_read=[Fault.NOT_REACHED])
        taking = asyncio.ensure_future(receiver(Ingestion(faulty, PLAIN, CLOCK), sleep).take(GIVEN))
        await asyncio.wait_for(holding.wait(), 10)
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking

    store = MemoryStore()
    asyncio.run(cancelled())
    assert store.ledger() == []


@pytest.mark.parametrize("fault", [None, RuntimeError("out of paper")])
def test_a_commit_on_its_way_is_finished_before_a_cancellation_takes_effect_and_its_fault_is_logged(
    caplog: pytest.LogCaptureFixture, fault: Exception | None
) -> None:
    committing, go_on = threading.Event(), threading.Event()

    class SlowStore(MemoryStore):
        def commit_batch(self, commit: BatchCommit) -> int:
            committing.set()
            assert go_on.wait(allowed(10))
            if fault:
                raise fault
            return super().commit_batch(commit)

    async def cancel_while_committing() -> None:
        taking = asyncio.ensure_future(receiver(Ingestion(store, PLAIN, CLOCK)).take(GIVEN))
        await asyncio.to_thread(until, committing.is_set, 10)
        taking.cancel()
        done, _ = await asyncio.wait([taking], timeout=2 * MOMENT)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await taking
        assert not done, "the cancellation waits for the commit"

    store = SlowStore()
    asyncio.run(cancel_while_committing())
    assert ranges(store) == ([] if fault else [(0, 4)])
    assert [line["error"] for line in lines(caplog)] == ["out of paper"] * bool(fault)


def test_a_batch_has_one_line_and_a_gap_that_is_healed_one_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert take(MemoryStore()) == []
    (line,) = lines(caplog)
    assert (line["action"], line["written"], line["redelivered"]) == ("ingest", 5, 0)
    caplog.clear()
    store, hub = MemoryStore(), MemoryHub({"0": events(0, 9, "reading a")})
    hub.expire_before("0", 2)
    asyncio.run(receiver(Ingestion(store, PLAIN, CLOCK, GapReading(hub))).take(batch(events(5, 9, "reading a"))))
    assert ranges(store) == [(2, 4), (5, 9)]
    gap, ingested = lines(caplog)
    assert (gap["action"], gap["level"], gap["first"], gap["last"], gap["healed"]) == ("gap", "WARNING", 2, 4, 3)
    assert (ingested["action"], ingested["healed"], ingested["gaps"]) == ("ingest", 3, [[2, 4]])


def test_a_batch_of_a_different_hub_is_passed_with_a_line(caplog: pytest.LogCaptureFixture) -> None:
    store, hub = MemoryStore(), MemoryHub({"0": events(0, 1, "reading a")})
    verified = HubVerification(hub, FakeClock().monotonic, threading.RLock())

    async def wait(seconds: float) -> None:
        raise AssertionError("the batch is held")

    ingestion = receiver(Ingestion(store, PLAIN, CLOCK, GapReading(hub), incarnations=verified), wait)
    asyncio.run(ingestion.take(replace(GIVEN, retries=1)))
    assert store.ledger() == []
    assert [(line["level"], line["message"]) for line in lines(caplog)] == [
        ("ERROR", "batch passed; what the hub has of its numbers is read back")
    ]
    hub.publish("0", events(2, 9, "reading a"))
    asyncio.run(ingestion.take(batch(events(5, 9, "reading a"))))
    assert ranges(store) == [(0, 4), (5, 9)]


def test_a_look_for_gaps_logs_what_it_healed_and_what_it_could_not(caplog: pytest.LogCaptureFixture) -> None:
    store, hub = MemoryStore(), MemoryHub({"0": events(0, 9, "reading a"), "1": []})
    verified = HubVerification(hub, FakeClock().monotonic, threading.RLock())
    check = SilenceCheck(Ingestion(store, PLAIN, stamps(), GapReading(hub), incarnations=verified), timedelta(0))
    check_gaps(check)
    hub.recreate("0")
    check_gaps(check)
    hub.fails = lambda: True
    check_gaps(check)
    healed, unhealed, unlooked = lines(caplog)
    assert (healed["message"], healed["healed"], healed["partition"]) == ("gap healed", 10, "telemetry/hubledger/0")
    assert unhealed["message"] == "gap not healed"
    assert "recreated" in str(unhealed["error"])
    assert unlooked["message"] == "gap check failed; will retry"


def refuse(_: Partition, number: SequenceNumber) -> Event | None:
    raise HubUnreachable(f"nobody asks for {number}")


@pytest.fixture
def kept() -> MemoryStore:
    return MemoryStore()


def keeper_of(store: Store, clock: FakeClock | None = None) -> Keeper:
    return Keeper(STREAM, store, PLAIN, refuse, stamps(1, clock), LetterPolicy(chunk=2))


def test_a_round_with_nothing_due_sleeps_until_something_is_and_never_longer_than_a_look(kept: MemoryStore) -> None:
    clock = FakeClock()
    keeper = keeper_of(kept, clock)
    assert keep_round(keeper, LOOK) == LOOK
    given_letters(kept, {0: "quiet"}, due_at=NOON + timedelta(seconds=20))
    assert keep_round(keeper, LOOK) == timedelta(seconds=20)
    given_letters(kept, {1: "quiet"}, due_at=NOON + timedelta(hours=1))
    clock.advance(20)
    keep_round(keeper, LOOK)
    assert keep_round(keeper, LOOK) == LOOK


def test_a_round_that_finds_due_letters_and_gets_none_pauses() -> None:
    class Rival(MemoryStore):
        def claim_letters(self, claim: object) -> tuple[()]:
            return ()

    rival = Rival()
    given_letters(rival, {0: "quiet"})
    assert keep_round(keeper_of(rival), LOOK) == LETTER_PAUSE


def test_rounds_retry_what_is_due_and_follow_each_other_after_a_fault_too_until_they_are_cancelled(
    kept: MemoryStore,
) -> None:
    slept, keeper = list[float](), keeper_of(FaultyStore(kept, on_letters=[Fault.NOT_REACHED]))
    given_letters(kept, dict.fromkeys(range(5), "quiet"))

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            raise asyncio.CancelledError

    async def cancelled() -> None:
        with pytest.raises(asyncio.CancelledError):
            await worker_work.keep_letters(keeper, LOOK, sleep)

    asyncio.run(cancelled())
    assert slept == [60, 0, 60]
    assert [one.status for one in kept.letters()] == ["resolved"] * 5
