"""Histories of batches, gaps, retries, replays and moves by hand audit balanced; each planted damage is told by name.

Repeat one with `pytest -k seed7`.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.ingest.gaps import Healing
from core.ingest.ingest import Means, ingest_batch
from core.ledger.audit import Audit, LedgerFault, audit
from core.ledger.books import read_books
from core.ledger.explain import Explanation, explain
from core.ledger.recount import MOST_NUMBERS, recount_hub, recount_rows, window
from core.letters.moves import Mover, discard, requeue
from core.letters.port import Keeper
from core.letters.retry import claim_due, retry_chunk
from core.model.events import PartitionId
from core.model.letters import LetterPosition
from core.model.spans import SequenceNumber
from core.replay.run import ReplayMeans, open_partitions, replay_slice, request_replay
from core.store.connect import OperatorStores, operator_stores
from core.transforms.home_security import Home, HomeAlert, SensorReading
from tests.fakes.builders import STREAM, batch, event, partition, stamps
from tests.fakes.engines import SqliteEngine
from tests.fakes.plain_transform import PLAIN
from tests.fakes.replaying import order
from tests.fakes.store import Store
from tests.simulation.deployments import TRANSFORMS
from tests.simulation.replay_world import ReplayWorld
from tests.simulation.seeds import seeds

NOW = datetime(2026, 6, 1, tzinfo=UTC)
ROW_CLASSES = (Home, SensorReading, HomeAlert)
MORE = 40  # events at the end of each partition, of which the host skips most and retention takes some


@dataclass
class History:
    """A world that has ended, then went on with gaps, and the desk that looks at it."""

    world: ReplayWorld
    engine: SqliteEngine
    desk: OperatorStores

    def audit(self) -> list[LedgerFault]:
        """What the audit, and the recount of rows and hub, tell."""
        done = audit(self.desk.ledger, None)
        return [*done.faults, *self._recounted(done)]

    def _recounted(self, done: Audit) -> Iterator[LedgerFault]:
        for one in done.partitions:
            span = window(one.ledger, None, None, MOST_NUMBERS)
            assert span is not None
            yield from recount_rows(one, span, self.desk.ledger).faults
            yield from recount_hub(one, span, self.world.hub, self.desk.ledger, NOW).faults

    def kinds(self) -> set[str]:
        return {fault.kind for fault in self.audit()}

    def explain(self, id: str, number: int) -> Explanation:
        found = explain(PartitionId(id), SequenceNumber(number), self.desk.explanations)
        assert found is not None
        return found

    def outcomes(self, id: str) -> list[tuple[int, str]]:
        (last,) = self.engine.sql("SELECT sequence_number FROM event_hub_checkpoint WHERE partition_id = ?", id)
        return [(number, self.explain(id, number).outcome) for number in range(last[0] + 1)]


def history(seed: int, path: Path) -> History:
    engine = SqliteEngine(path)
    store = engine.open()
    assert isinstance(store, Store)
    world = ReplayWorld(seed, store)
    world.run()
    made = History(world, engine, operator_stores(store.database, STREAM, ROW_CLASSES))
    go_on_with_gaps(world)
    settle_by_hand(world)
    replay_some(world)
    return made


def go_on_with_gaps(world: ReplayWorld) -> None:
    """The host hands over the last events only; the rest is fetched back, but for what retention took meanwhile."""
    own = stamps(5, world.clock)
    for id, log in world.logs.items():
        begin = len(log)
        verbs = ["home {} 1", "reading {}", "look {}", "poison", "bug", "quiet", "double {}", "home {} 0"]
        more = [event(begin + at, verbs[at % len(verbs)].format(f"home-{id}-0")) for at in range(MORE)]
        world.hub.publish(id, more)
        world.hub.expire_before(id, begin + 5)
        world.hub.lose(id, begin + 12, begin + 13)
        ingest_batch(batch(more[30:], partition(id)), Means(world.record, PLAIN, own, Healing(world.hub)))


def settle_by_hand(world: ReplayWorld) -> None:
    """Of the letters that a person can move some are discarded and some retried with the newest transform."""
    own = stamps(6, world.clock)
    keeper = Keeper(STREAM, world.record, TRANSFORMS[1], world.hub.find_event, own)
    exhausted = [
        LetterPosition(PartitionId(id), SequenceNumber(len(log) + 27)) for id, log in world.logs.items()
    ]  # one that was fetched back and is poison
    asked = Mover("somebody", "because")
    assert len(discard(exhausted, keeper, asked).moved) == len(exhausted)
    again = [LetterPosition(one.partition_id, SequenceNumber(one.sequence_number + 1)) for one in exhausted]
    assert len(requeue(again, keeper, asked).moved) == len(again)  # a bug that the newest transform mends
    world.clock.advance(60.0)
    while chunks := claim_due(keeper):
        for chunk in chunks:
            world.retried += retry_chunk(chunk, keeper, "a retry").resolved


def replay_some(world: ReplayWorld) -> None:
    """Some of it once more, over the gaps, over what was discarded, and over what the transform of today refuses."""
    means = ReplayMeans(STREAM, world.record, world.hub, TRANSFORMS[1], stamps(8, world.clock), piece=7)
    for asked in (order(dry_run=True), order()):
        job = request_replay(asked, means, 10**9).request.job_id
        while ids := open_partitions(job, means):
            for id in ids:
                replay_slice(job, id, means, world.clock.now() + timedelta(minutes=1))


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> History:
    """One with all that there is: two partitions at least, letters that replays made, gaps."""
    return history(34, tmp_path_factory.mktemp("history") / "store.db")


@pytest.fixture
def made(ended: History, tmp_path: Path) -> History:
    """Its world with a copy of its database, which a test may damage."""
    path = tmp_path / "store.db"
    with closing(sqlite3.connect(ended.engine.path)) as source, closing(sqlite3.connect(path)) as copy:
        source.backup(copy)
    engine = SqliteEngine(path)
    return History(ended.world, engine, operator_stores(engine.open().database, STREAM, ROW_CLASSES))


@pytest.mark.parametrize("seed", seeds(range(20), 3), ids="seed{}".format)
def test_a_history_audits_balanced_and_explains_every_number(seed: int, tmp_path: Path) -> None:
    made = history(seed, tmp_path / "store.db")
    assert made.audit() == []
    books = read_books(made.desk.ledger)
    assert books.balanced
    sums = {"absent": 0, "dead_lettered": 0}
    for id in made.world.logs:
        outcomes = made.outcomes(id)
        assert not {outcome for _, outcome in outcomes} & {"missing", "not_yet", "before_first"}
        for name in sums:
            sums[name] += sum(outcome == name for _, outcome in outcomes)
    open_letters = sum(count for status, count in books.letters.counts.items() if status != "resolved")
    assert sums == {"absent": sum(one.absent for one in books.partitions), "dead_lettered": open_letters}


def test_the_histories_hold_all_kinds_of_commits_letters_and_gaps(made: History) -> None:
    assert len(made.engine.retries()) > 1
    assert len(made.engine.replays()) > 5
    assert made.world.retried > 2
    assert made.engine.sql("SELECT COUNT(*) > 0 FROM event_hub_dead_letter WHERE replay_commit_number IS NOT NULL") == [
        (1,)
    ]
    assert {one.status for one in made.engine.letters()} >= {"discarded", "resolved", "exhausted"}
    assert made.engine.sql("SELECT COUNT(*) > 1 FROM sequence_gap WHERE status = 'absent'") == [(1,)]
    assert made.engine.sql("SELECT COUNT(*) > 2 FROM retracted_row WHERE table_name = 'sensor_reading'") == [(1,)]


DAMAGE = {
    "a row deleted": (
        "DELETE FROM sensor_reading WHERE (partition_id, sequence_number, ordinal) IN"
        " (SELECT partition_id, sequence_number, ordinal FROM sensor_reading LIMIT 1)",
        {"rows_missing"},
    ),
    "a row added": (
        "INSERT INTO sensor_reading SELECT stream_id, partition_id, sequence_number, 99, commit_number, home_id,"
        " sensor_id, kind, state, ppm, observed_at FROM sensor_reading LIMIT 1",
        {"rows_added"},
    ),
    "a row of no commit": (
        "INSERT INTO sensor_reading SELECT stream_id, partition_id, 100000, 0, commit_number, home_id,"
        " sensor_id, kind, state, ppm, observed_at FROM sensor_reading LIMIT 1",
        {"rows", "rows_added"},
    ),
    "a retracted row forgotten": (
        "DELETE FROM retracted_row WHERE table_name = 'sensor_reading' AND row_commit_number ="
        " (SELECT MAX(row_commit_number) FROM retracted_row WHERE table_name = 'sensor_reading')",
        {"rows_missing"},
    ),
    "a range deleted": (
        "DELETE FROM batch_ledger WHERE partition_id = '0' AND commit_number = (SELECT MAX(commit_number) - 1 FROM"
        " (SELECT commit_number FROM batch_ledger WHERE partition_id = '0' AND kind = 'batch'))",
        {"hole", "commits"},
    ),
    "a replay deleted": (
        "DELETE FROM batch_ledger WHERE partition_id = '0' AND commit_number ="
        " (SELECT MAX(commit_number) FROM batch_ledger WHERE partition_id = '0' AND kind = 'replay')",
        {"commits"},
    ),
    "a range twice": (
        "INSERT INTO batch_ledger SELECT stream_id, partition_id, 100000, kind, first_sequence_number + 1,"
        " last_sequence_number, 0, last_sequence_number - first_sequence_number, 0, 0, 0, 0, transform_version,"
        " invocation_id, committed_at, 0 FROM batch_ledger WHERE partition_id = '0' AND kind = 'batch'"
        " AND last_sequence_number > first_sequence_number + 1 LIMIT 1",
        {"overlap"},
    ),
    "a letter removed": (
        "DELETE FROM event_hub_dead_letter WHERE (partition_id, sequence_number) IN (SELECT partition_id,"
        " sequence_number FROM event_hub_dead_letter WHERE replay_commit_number IS NULL LIMIT 1)",
        {"letters"},
    ),
    "a letter of a replay removed": (
        "DELETE FROM event_hub_dead_letter WHERE (partition_id, sequence_number) IN (SELECT partition_id,"
        " sequence_number FROM event_hub_dead_letter WHERE replay_commit_number IS NOT NULL LIMIT 1)",
        {"replay_letters"},
    ),
    "a count changed": (
        "UPDATE batch_ledger SET written = written + 1, filtered = filtered - 1, dead_lettered = dead_lettered"
        " WHERE (partition_id, commit_number) IN (SELECT partition_id, commit_number FROM batch_ledger"
        " WHERE kind = 'batch' AND dead_lettered > 0 AND filtered > 0 LIMIT 1)",
        set(),
    ),
    "a letter too many in the ledger": (
        "UPDATE batch_ledger SET dead_lettered = dead_lettered + 1, written = written - 1"
        " WHERE (partition_id, commit_number) IN (SELECT partition_id, commit_number FROM batch_ledger"
        " WHERE kind = 'batch' AND written > 0 LIMIT 1)",
        {"letters"},
    ),
    "a checkpoint moved on": (
        "UPDATE event_hub_checkpoint SET sequence_number = sequence_number + 3 WHERE partition_id = '0'",
        {"short", "hub"},
    ),
    "a checkpoint moved back": (
        "UPDATE event_hub_checkpoint SET sequence_number = sequence_number - 3 WHERE partition_id = '0'",
        {"beyond"},
    ),
    "numbers called absent that are there": (
        "UPDATE sequence_gap SET last_sequence_number = last_sequence_number + 2 WHERE partition_id = '0'"
        " AND first_sequence_number = (SELECT MAX(first_sequence_number) FROM sequence_gap WHERE status = 'absent'"
        " AND partition_id = '0')",
        {"hub"},
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_told_by_its_name(made: History, damage: str) -> None:
    statement, told = DAMAGE[damage]
    assert made.kinds() == set()
    made.engine.sql(statement)
    assert told <= made.kinds()
    assert bool(told) == bool(made.kinds())


def test_a_deleted_row_is_told_with_its_commit_and_its_numbers(made: History) -> None:
    place = "SELECT partition_id, sequence_number, commit_number FROM sensor_reading ORDER BY 1, 2 LIMIT 1"
    ((id, number, commit_number),) = made.engine.sql(place)
    made.engine.sql("DELETE FROM sensor_reading WHERE partition_id = ? AND sequence_number = ?", id, number)
    (fault,) = made.audit()
    assert (fault.kind, fault.partition_id) == ("rows_missing", id)
    assert fault.first <= number <= fault.last
    assert fault.detail.startswith(f"commit {commit_number} (")


def test_a_number_tells_its_commit_its_letter_and_the_replays_that_touched_it(made: History) -> None:
    first = len(made.world.logs["0"])
    expected = {2: "absent", 12: "absent", 27: "dead_lettered", 28: "written", 29: "written"}
    found = {at: made.explain("0", first + at) for at in expected}
    assert {at: one.outcome for at, one in found.items()} == expected
    discarded, mended = found[27].found, found[28].found
    assert discarded.letter is not None
    assert mended.letter is not None
    assert (discarded.letter.letter.status, mended.letter.letter.status) == ("discarded", "resolved")
    assert [change.kind for change in mended.changes] == ["replay", "retry"]
    assert [attempt.kind for attempt in mended.letter.attempts][:2] == ["requeue", "retry"]
    (job_id,) = made.engine.sql("SELECT job_id FROM replay_job WHERE is_dry_run = 0 ORDER BY requested_at DESC LIMIT 1")
    assert mended.changes[0].invocation_id == job_id[0]
    assert mended.range is not None
    assert mended.range.kind == "batch"
