"""core/ingest/ingest.py: the queries that keep keys in order, and the stop when too many events are held."""

from dataclasses import replace
from datetime import timedelta

import pytest

from core.errors import HeldLettersFull
from core.ingest.batch_log import BatchLines
from core.ingest.ingest import Ingestion, IngestReport, ingest_batch
from core.letters.retry import Keeper
from core.model.events import Event, PartitionId, SequenceNumber
from core.model.letters import LetterPolicy, LetterPosition
from core.settle.partition_store import MOST_OPEN_KEYS
from examples.home_security.transform import SensorReading
from tests.fakes.builders import NOON, STREAM, batch, event, partition, stamps
from tests.fakes.faulty_database import NotedDatabase
from tests.fakes.memory_store import MemoryStore
from tests.fakes.moving import discard
from tests.fakes.plain_transform import PLAIN
from tests.fakes.store import Store

HOLDING = LetterPolicy(order="hold_key")


class World:
    """A process that remembers, over a database that notes its calls."""

    def __init__(self, policy: LetterPolicy = HOLDING) -> None:
        self.engine = MemoryStore()
        self.noted = NotedDatabase(self.engine.database)
        self.store = Store(self.noted).remembering(timedelta(minutes=1))
        self.policy = policy
        self.own = stamps(5)

    def ingest(self, *given: Event) -> IngestReport:
        self.noted.calls.clear()
        return ingest_batch(batch(given), Ingestion(self.store, PLAIN, self.own, letters=self.policy))

    def discard(self, *numbers: int) -> None:
        positions = [LetterPosition(PartitionId("0"), SequenceNumber(number)) for number in numbers]
        keeper = Keeper(STREAM, self.engine, PLAIN, lambda *_: None, self.own, self.policy)
        assert len(discard(positions, keeper, "somebody", "why")) == len(numbers)

    @property
    def stops(self) -> list[str]:
        return [stop.reason for stop in self.engine.read_partition(partition()).stops]

    @property
    def checkpoint(self) -> int:
        checkpoint = self.engine.read_partition(partition()).checkpoint
        return -1 if checkpoint is None else checkpoint.sequence_number


def of_key(first: int, last: int, body: str = "reading a", key: str | None = "k") -> list[Event]:
    return [event(number, body, key=key) for number in range(first, last + 1)]


class TestCalls:
    def test_are_none_more_while_no_letter_is_open(self) -> None:
        world = World()
        world.ingest(*of_key(0, 4))
        world.ingest(*of_key(5, 9))
        assert world.noted.calls == ["advance_checkpoint"]

    def test_are_none_more_for_keys_without_an_open_letter(self) -> None:
        world = World()
        world.ingest(event(0, "poison", key="k"))
        world.ingest(*of_key(1, 4, key="other"), *of_key(5, 6, key=None))
        assert world.noted.calls == ["advance_checkpoint"]

    def test_ask_once_for_the_keys_that_may_have_one(self) -> None:
        world = World()
        world.ingest(event(0, "poison", key="k"))
        report = world.ingest(*of_key(1, 4))
        assert world.noted.calls == ["find_open_letters", "count_held", "advance_checkpoint"]
        assert [commit.settled.held for commit in report.commits] == [4]

    def test_end_when_the_letters_of_a_key_are_settled(self) -> None:
        world = World()
        world.ingest(event(0, "poison", key="k"))
        world.discard(0)
        assert world.ingest(*of_key(1, 2)).commits[0].settled.held == 0
        world.ingest(*of_key(3, 4))
        assert world.noted.calls == ["advance_checkpoint"]

    def test_read_the_open_keys_when_the_process_begins(self) -> None:
        world = World()
        world.ingest(event(0, "poison", key="k"))
        world.store = world.store.remembering(timedelta(minutes=1))
        assert world.ingest(*of_key(1, 1)).commits[0].settled.held == 1

    @pytest.mark.slow
    def test_ask_for_every_key_when_too_many_are_open_to_remember(self) -> None:
        world = World()
        world.ingest(event(0, "poison", key="k"))
        columns = "stream_id, partition_id, offset_token, enqueued_at, properties, body, error_class, error_type, error"
        columns += ", fingerprint, cause, transform_version, status, attempts, failed_at"
        world.engine.sql(
            "WITH RECURSIVE n (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM n WHERE number <= ?)"
            f" INSERT INTO event_hub_dead_letter (sequence_number, partition_key, {columns})"
            f" SELECT -number, 'key ' || number, {columns} FROM n, event_hub_dead_letter",
            MOST_OPEN_KEYS,
        )
        world.store = world.store.remembering(timedelta(minutes=1))
        assert world.ingest(*of_key(1, 1), event(2, "reading a", key="new")).commits[0].settled.held == 1
        world.ingest(event(3, "reading a", key="new"))
        assert world.noted.calls == ["find_open_letters", "advance_checkpoint"]

    def test_are_unchanged_without_the_policy(self) -> None:
        world = World(LetterPolicy())
        world.ingest(event(0, "poison", key="k"))
        report = world.ingest(*of_key(1, 4))
        assert world.noted.calls == ["advance_checkpoint"]
        assert report.commits[0].settled.held == 0


class TestTheLimit:
    def test_commits_the_events_before_it_and_stops_the_partition(self) -> None:
        world = World(replace(HOLDING, held_limit=3))
        with pytest.raises(HeldLettersFull, match=r"event 5 .* 3 letters are held already \(HELD_LIMIT\)"):
            world.ingest(*of_key(0, 0), *of_key(1, 1, "poison"), *of_key(2, 9))
        assert (world.checkpoint, world.stops) == (4, ["held"])
        assert all(ledger.balanced for ledger in world.engine.read_ledgers())

    def test_is_no_limit_for_other_keys_before_it(self) -> None:
        world = World(replace(HOLDING, held_limit=1))
        with pytest.raises(HeldLettersFull):
            world.ingest(
                *of_key(0, 0, "poison"), *of_key(1, 1), *of_key(2, 3, key="q"), *of_key(4, 4), *of_key(5, 5, key="q")
            )
        assert world.checkpoint == 3

    def test_lets_the_partition_go_on_by_itself_and_clears_the_stop(self) -> None:
        world = World(replace(HOLDING, held_limit=2))
        log = [*of_key(0, 0, "poison"), *of_key(1, 4)]
        with pytest.raises(HeldLettersFull):
            world.ingest(*log)
        world.discard(0)
        with pytest.raises(HeldLettersFull):
            world.ingest(*log)
        (stop,) = world.engine.read_partition(partition()).stops
        assert (world.checkpoint, stop.reason, stop.attempts) == (3, "held", 2)
        world.discard(1, 2)
        assert world.ingest(*log).redelivered == 4
        assert (world.checkpoint, world.stops) == (4, [])


def test_runs_that_are_cut_for_a_refused_row_keep_the_order() -> None:
    world = World()
    log = [*of_key(0, 3), *of_key(4, 4, "huge a"), *of_key(5, 9), *of_key(10, 12, key="q")]
    report = world.ingest(*log)
    assert len(report.commits) > 1
    assert [one.status for one in world.engine.letters()] == ["waiting", *["held"] * 5]
    assert sum(commit.settled.written for commit in report.commits) == 7


def test_the_log_line_counts_held_events() -> None:
    report = World().ingest(*of_key(0, 0, "poison"), *of_key(1, 4))
    facts = BatchLines(1).add(report, 0.0, NOON)[0].facts
    assert (facts["dead_lettered"], facts["held"]) == (1, 4)


def test_a_batch_that_is_cut_shows_no_event_the_state_that_a_later_event_writes() -> None:
    world = World(replace(HOLDING, held_limit=1))
    world.ingest(event(0, "home h 0", key="h"), event(1, "bug", key="a"))
    bodies = {2: ("look h", "b"), 3: ("quiet", "a"), 4: ("home h 1", "h"), 5: ("quiet", "a")}
    given = [event(number, body, key=key) for number, (body, key) in bodies.items()]
    with pytest.raises(HeldLettersFull):
        world.ingest(*given)
    (seen,) = [kept.row for kept in world.engine.rows(SensorReading) if kept.sequence_number == 2]
    assert isinstance(seen, SensorReading)
    assert seen.sensor_id == "sensorFalse"
