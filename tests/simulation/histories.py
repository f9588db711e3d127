"""Histories that an audit reads: batches, gaps, retries, replays, and moves by hand, with the hub and the store."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

from core.audit.audit import MOST_NUMBERS, Audit, Reading, audit, recount_rows, window
from core.audit.faults import LedgerFault
from core.ingest.gaps import GapReading
from core.ingest.ingest import Ingestion, ingest_batch
from core.ledger.explain import Explanation, explain
from core.letters.retry import Keeper, claim_due, retry_chunk
from core.model.events import PartitionId, SequenceNumber
from core.model.letters import LetterPosition
from core.replay.task import ReplayKind
from core.tasks.run import open_parts, work_on
from examples.home_security.transform import Home, HomeAlert, SensorReading
from tests.fakes.builders import STREAM, batch, event, partition, stamps
from tests.fakes.engines import SqliteEngine
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.moving import discard, requeue
from tests.fakes.operator_stores import OperatorStores, operator_stores
from tests.fakes.plain_transform import PLAIN
from tests.fakes.replaying import order, request_replay
from tests.fakes.store import Store
from tests.simulation.deployments import TRANSFORMS
from tests.simulation.replay_world import ReplayWorld

NOW = datetime(2026, 6, 1, tzinfo=UTC)
ROW_CLASSES = (Home, SensorReading, HomeAlert)
MORE = 40  # events at the end of each partition, of which the host skips most and retention removes some


@dataclass
class History:
    """A world that has ended and then got gaps, and the stores through which an operator reads it."""

    world: ReplayWorld
    hub: MemoryHub
    engine: SqliteEngine
    desk: OperatorStores

    def copied(self, path: Path) -> Self:
        """Return a copy of the store and of the hub."""
        with closing(sqlite3.connect(self.engine.path)) as connection:
            connection.execute("VACUUM INTO ?", (str(path),))
        hub = MemoryHub({})
        hub.held = {id: {**held} for id, held in self.hub.held.items()}
        hub.last, hub.last_at = {**self.hub.last}, {**self.hub.last_at}
        return replace(self, hub=hub, **_opened(path))

    def audit(self) -> list[LedgerFault]:
        """Return the faults that the audit and the recounts of rows report."""
        done = audit(self.desk.audits, None)
        return [*done.faults, *self._recounted(done)]

    def _recounted(self, done: Audit) -> Iterator[LedgerFault]:
        for one in done.partitions:
            span = window(one.ledger, None, None, MOST_NUMBERS)
            if span is not None:
                yield from recount_rows(one, span, self.desk.audits).faults

    def explain(self, id: str, number: int) -> Explanation:
        found = explain(PartitionId(id), SequenceNumber(number), self.desk.explanations)
        assert found is not None
        return found

    def outcomes(self, id: str) -> list[tuple[int, str]]:
        (last,) = self.engine.sql("SELECT sequence_number FROM event_hub_checkpoint WHERE partition_id = ?", id)
        return [(number, self.explain(id, number).outcome) for number in range(last[0] + 1)]


def _opened(path: Path) -> dict[str, Any]:
    engine = SqliteEngine(path)
    return {"engine": engine, "desk": operator_stores(engine.open().database, STREAM, ROW_CLASSES)}


def history(
    seed: int, path: Path, look: Callable[[OperatorStores], None] = lambda desk: None, *, by_key: bool = False
) -> History:
    """Make a history, with replays by key or without; an operator has a look at it from time to time."""
    opened = _opened(path)
    desk: OperatorStores = opened["desk"]
    world = ReplayWorld(seed, Store(desk.stream.database), by_key=by_key)
    world.run()
    made = History(world, world.hub, **opened)
    for change in (go_on_with_gaps, settle_by_hand, replay_some):
        look(desk)
        change(world)
    return made


def audit_now(desk: OperatorStores) -> None:
    """Audit the ranges in pieces, which must be balanced."""
    assert audit(desk.audits, None, Reading(piece=3)).faults == ()


def go_on_with_gaps(world: ReplayWorld) -> None:
    """Deliver only the last events; the gap is healed, except for the events that retention removed."""
    own = stamps(5, world.clock)
    for id, log in world.logs.items():
        begin = len(log)
        verbs = ["home {} 1", "reading {}", "look {}", "poison", "bug", "quiet", "double {}", "home {} 0"]
        more = [event(begin + at, verbs[at % len(verbs)].format(f"home-{id}-0")) for at in range(MORE)]
        world.hub.publish(id, more)
        world.hub.expire_before(id, begin + 5)
        world.hub.lose(id, begin + 12, begin + 13)
        ingest_batch(batch(more[30:], partition(id)), Ingestion(world.record, PLAIN, own, GapReading(world.hub)))


def settle_by_hand(world: ReplayWorld) -> None:
    """Discard some of the letters that a person can move, and retry others with the newest transform."""
    own = stamps(6, world.clock)
    keeper = Keeper(STREAM, world.record, TRANSFORMS[1], world.hub.find_event, own)
    exhausted = [
        LetterPosition(PartitionId(id), SequenceNumber(len(log) + 27)) for id, log in world.logs.items()
    ]  # one that was fetched back and is poison
    assert len(discard(exhausted, keeper)) == len(exhausted)
    again = [LetterPosition(one.partition_id, SequenceNumber(one.sequence_number + 1)) for one in exhausted]
    assert len(requeue(again, keeper)) == len(again)  # a bug that the newest transform mends
    world.clock.advance(60.0)
    while chunks := claim_due(keeper):
        for chunk in chunks:
            world.retried += retry_chunk(chunk, keeper, "a retry").resolved


def replay_some(world: ReplayWorld) -> None:
    """Replay some ranges: over gaps, over discarded letters, and over events that the current transform refuses."""
    means = ReplayKind(STREAM, world.record, world.hub, TRANSFORMS[1], stamps(8, world.clock), piece=7)
    for asked in (order(dry_run=True), order()):
        job = request_replay(asked, means, 10**9).task.task_id
        while ids := open_parts(job, means):
            for id in ids:
                work_on(job, id, means, world.clock.now() + timedelta(minutes=1))
