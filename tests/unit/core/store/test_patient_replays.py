"""core/store/patient_replays.py: whatever a replay asks of its store is asked again while the store is away."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest

from core.errors import CommitOutcomeUnknown, ReplayOverlap, StoreUnavailable
from core.replay.job import JobMove
from core.replay.port import ReplayStore
from core.replay.run import ReplayMeans, note_fault, open_partitions, replay_slice, request_replay
from core.store.patient import Waiting
from core.store.patient_replays import PatientReplays
from tests.fakes.builders import STREAM
from tests.fakes.memory_store import MemoryStore
from tests.fakes.replaying import MOST, World, log_of, order

LOG = {"0": log_of("home a 1", "look a", "poison", "reading a")}
AWAY = 3  # calls of each verb's that fail before one succeeds


class Away:
    """A store that is away for some calls of each verb, over and over."""

    def __init__(self, store: MemoryStore, fault: type[Exception] = StoreUnavailable, times: int = AWAY) -> None:
        self._store, self._fault, self._times = store, fault, times
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            self.calls[name] += 1
            if self.calls[name] % (self._times + 1):
                raise self._fault("the database does not answer")
            return getattr(self._store, name)(*given)

        return call


def patient(world: World, away: Away, patience: float = 20.0) -> ReplayMeans:
    waiting = Waiting(world.clock.monotonic, world.clock.sleep, lambda: 1.0)
    store = PatientReplays(cast(ReplayStore, away), timedelta(seconds=patience), waiting)
    return ReplayMeans(STREAM, store, world.hub, world.transform, world.own)


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_job_is_asked_for_worked_through_and_listed_while_the_store_comes_and_goes(dry_run: bool) -> None:
    world = World(MemoryStore(), LOG)
    away = Away(cast(MemoryStore, world.store))
    means = patient(world, away)
    job_id = request_replay(order(dry_run=dry_run), means, MOST).request.job_id
    assert means.store.read_open_replays(STREAM) == (job_id,)
    (id,) = open_partitions(job_id, means)
    assert replay_slice(job_id, id, means, world.clock.now() + timedelta(hours=1)).events == 4
    note_fault(job_id, None, means)
    (job,) = means.store.read_replays(STREAM, 10, None)
    assert (job.status, job.counts.events, job.counts.dead_lettered) == ("done", 4, 1)
    assert means.store.read_replay_diffs(job_id, None, 10) == ()  # it would change nothing
    settled = {"rehearse_replay", "note_rehearsal"} if dry_run else {"commit_replay"}
    verbs = {name for name in vars(ReplayStore) if not name.startswith("_")}
    assert set(away.calls) == verbs - ({"commit_replay", "rehearse_replay", "note_rehearsal"} - settled)
    assert all(calls % (AWAY + 1) == 0 for calls in away.calls.values()), away.calls


def test_patience_ends() -> None:
    world = World(MemoryStore(), LOG)
    away = Away(cast(MemoryStore, world.store), times=10**6)
    with pytest.raises(StoreUnavailable):
        patient(world, away, patience=5).store.find_replay(world.own.new_id())
    assert 3 <= world.clock.seconds <= 5


def test_a_lost_answer_is_not_asked_for_again() -> None:
    world = World(MemoryStore(), LOG)
    job = world.ask()
    away = Away(cast(MemoryStore, world.store), CommitOutcomeUnknown)
    move = JobMove(job.request.job_id, "pause", "somebody", "", world.clock.now())
    with pytest.raises(CommitOutcomeUnknown):
        patient(world, away).store.move_replay(move)
    assert away.calls == {"move_replay": 1}


def test_a_refusal_goes_on_at_once() -> None:
    world = World(MemoryStore(), LOG)
    world.ask()
    with pytest.raises(ReplayOverlap):
        request_replay(order(), patient(world, Away(cast(MemoryStore, world.store), times=0)), MOST)
    assert world.clock.slept == []
