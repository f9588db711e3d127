"""Promises of every store about a replay where the events of a key are kept in order."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta

import pytest

from core.errors import TaskConflict
from core.ingest.ingest import Ingestion, ingest_batch
from core.letters.retry import Keeper, claim_due, retry_chunk
from core.model.events import Event, PartitionId, SequenceNumber
from core.model.letters import LetterPosition
from core.model.rows import References, Row
from core.model.transforms import Transform
from core.replay.pieces import ReplayCommit, ReplayCounts, ReplayJob
from core.replay.task import ReplayKind
from core.tasks.run import open_parts, work_on
from examples.home_security.transform import SensorReading
from tests.core.letters.test_held import HOLDING, statuses, written
from tests.fakes.builders import STREAM, batch, event
from tests.fakes.kept import Engine
from tests.fakes.moving import discard
from tests.fakes.plain_transform import PLAIN, transform
from tests.fakes.replaying import World, changed, order
from tests.fakes.store import Store


def log_of(*bodies: str, first: int = 0) -> list[Event]:
    return [event(first + place, body, key="k") for place, body in enumerate(bodies)]


def breaking(*numbers: int) -> Transform:
    """A deployment that breaks these events, and mends bugs."""

    def rows_of(given: Event, references: References) -> Iterable[Row]:
        if given.sequence_number in numbers:
            raise KeyError("broken")
        if given.body == b"bug":
            return [SensorReading("mended", "sensor", "bug", None, 1, given.enqueued_at)]
        return transform(given, references)

    return changed(rows_of)


@pytest.fixture
def of(store: Store) -> Callable[..., World]:
    return lambda *bodies: World(store, {"0": log_of(*bodies)}, letters=HOLDING)


def replay(world: World, first: int, last: int, *, dry_run: bool = False, piece: int = 500) -> ReplayJob:
    """Replay in pieces of so many events."""
    job, means = world.ask(order(["0"], first, last, dry_run=dry_run)), replace(world.means, piece=piece)
    while ids := open_parts(job.task.task_id, means):
        for id in ids:
            work_on(job.task.task_id, id, means, world.clock.now() + timedelta(minutes=1))
    return world.find(job.task.task_id)


def outcomes(counts: ReplayCounts) -> tuple[int, int, int]:
    return counts.written, counts.dead_lettered, counts.held


def retry(world: World) -> None:
    world.clock.advance(3_600)
    keeper = Keeper(STREAM, world.store, world.transform, world.hub.find_event, world.own, world.letters)
    for chunk in claim_due(keeper):
        retry_chunk(chunk, keeper, "retry-1")


def test_letters_that_a_replay_resolves_free_the_one_after_its_range(of: Callable[..., World], engine: Engine) -> None:
    world = of("bug", "reading a", "reading b", "reading c")
    world.transform = breaking()
    assert outcomes(replay(world, 0, 1).counts) == (2, 0, 0)
    assert statuses(engine) == {0: "resolved", 1: "resolved", 2: "waiting", 3: "held"}
    retry(world)
    assert written(engine) == [0, 1, 2, 3]


@pytest.mark.parametrize("piece", [1, 500])
def test_events_after_an_open_letter_before_the_range_stay_held(
    of: Callable[..., World], engine: Engine, piece: int
) -> None:
    world = of("bug", "reading a", "reading b", "reading c")
    world.transform = breaking(0)
    assert outcomes(replay(world, 1, 2, piece=piece).counts) == (0, 0, 2)
    assert statuses(engine) == {0: "waiting", 1: "held", 2: "held", 3: "held"}
    assert written(engine) == []
    world.transform = breaking()
    retry(world)
    assert written(engine) == [0, 1, 2, 3]


@pytest.mark.parametrize("piece", [1, 2, 500])
def test_events_after_one_that_fails_in_the_range_are_held_and_their_rows_taken_away(
    of: Callable[..., World], engine: Engine, piece: int
) -> None:
    world = of(*["reading a"] * 5)
    world.transform = breaking(1)
    job = replay(world, 0, 3, piece=piece)
    assert (outcomes(job.counts), job.counts.letters_added) == ((1, 1, 2), 3)
    assert statuses(engine) == {1: "waiting", 2: "held", 3: "held"}
    assert written(engine) == [0, 4]
    (ledger,) = world.store.read_ledgers()
    assert ledger.balanced
    assert sum(kept.dead_lettered for kept in engine.replays()) == 1
    world.transform = breaking()
    retry(world)
    assert written(engine) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("piece", [1, 2, 500])
def test_a_dry_run_says_what_would_be_held(of: Callable[..., World], engine: Engine, piece: int) -> None:
    world = of("reading a", "reading a", "reading a", "bug", "reading a", "reading b")
    world.transform = breaking(1)
    job = replay(world, 0, 5, dry_run=True, piece=piece)
    assert outcomes(job.counts) == (1, 1, 4)
    assert statuses(engine) == {3: "waiting", 4: "held", 5: "held"}
    diffs = world.store.read_replay_diffs(job.task.task_id, None, 10)
    assert {int(one.sequence_number): json.loads(one.diff)["outcome"] for one in diffs} == {
        1: "dead_lettered", 2: "held",
    }  # fmt: skip
    assert outcomes(replay(world, 0, 5, piece=piece).counts) == (1, 1, 4)


def test_a_letter_that_is_opened_again_takes_the_place_of_the_first(of: Callable[..., World], engine: Engine) -> None:
    world = of("reading a", "reading a", "bug", "reading a")
    world.transform = breaking(0, 2)
    keeper = Keeper(STREAM, world.store, world.transform, world.hub.find_event, world.own, world.letters)
    world.clock.advance(60)
    (chunk,) = claim_due(keeper)
    replay(world, 0, 0)
    assert statuses(engine) == {0: "waiting", 2: "held", 3: "held"}
    assert retry_chunk(chunk, keeper, "late").lost == 1
    world.transform = breaking()
    retry(world)
    assert written(engine) == [0, 1, 2, 3]


def test_events_do_not_wait_for_one_that_stays_discarded(of: Callable[..., World], engine: Engine) -> None:
    world = of("reading a", "poison", "reading a")
    keeper = Keeper(STREAM, world.store, PLAIN, world.hub.find_event, world.own, world.letters)
    discard([LetterPosition(PartitionId("0"), SequenceNumber(1))], keeper, "somebody", "it is poison")
    retry(world)
    assert outcomes(replay(world, 0, 2).counts) == (2, 1, 0)
    assert statuses(engine) == {1: "discarded", 2: "resolved"}


def test_a_batch_that_remembers_no_open_letter_sees_one_that_a_replay_opened(
    of: Callable[..., World], engine: Engine
) -> None:
    world = of("reading a", "reading a")
    remembering = world.store.remembering(timedelta(minutes=1))
    means = Ingestion(remembering, PLAIN, world.own, letters=HOLDING)
    ingest_batch(batch(log_of("reading a", first=2)), means)
    world.transform = breaking(1)
    replay(world, 1, 1)
    ingest_batch(batch(log_of("reading a", first=3)), means)
    assert statuses(engine) == {1: "waiting", 3: "held"}


def test_a_replay_that_does_not_know_of_a_different_one_is_refused(of: Callable[..., World], engine: Engine) -> None:
    world = of(*["reading a"] * 4)

    class Overtaken(Store):
        """A store in which a different replay commits between the reading and the writing of a piece."""

        def commit_replay(self, commit: object) -> ReplayCounts:
            world.transform = breaking(0)
            overtaking = world.ask(order(["0"], 0, 0))
            world.work(overtaking)
            return super().commit_replay(commit)  # type: ignore[arg-type]

    job = world.ask(order(["0"], 2, 3))
    means = replace(world.means, store=Overtaken(world.store.database))
    open_parts(job.task.task_id, means)
    with pytest.raises(TaskConflict):
        means.store.commit_replay(_planned(job, means))
    assert written(engine) == [1, 2, 3]


def _planned(job: ReplayJob, means: ReplayKind) -> ReplayCommit:
    """Return the commit of the first piece of a job, as it is planned before a different replay commits."""
    planned: list[ReplayCommit] = []

    class Noting(Store):
        def commit_replay(self, commit: ReplayCommit) -> ReplayCounts:
            planned.append(commit)
            raise KeyboardInterrupt

    assert isinstance(means.store, Store)
    store = Noting(means.store.database)
    with pytest.raises(KeyboardInterrupt):
        work_on(job.task.task_id, PartitionId("0"), replace(means, store=store), means.clock.now())
    return planned[0]


@pytest.mark.parametrize("is_dry_run", [True, False])
@pytest.mark.parametrize("piece", [1, 2, 500])
def test_events_after_an_open_letter_whose_event_is_gone_stay_held(
    store: Store, engine: Engine, piece: int, is_dry_run: bool
) -> None:
    log = log_of("reading a", "bug", "reading a", "reading b")
    world = World(store, {"0": log}, letters=replace(HOLDING, keep_bodies=False))
    world.transform = breaking()
    world.hub.lose("0", 1)
    assert outcomes(replay(world, 0, 3, dry_run=is_dry_run, piece=piece).counts) == (1, 0, 2)
    assert statuses(engine) == {1: "waiting", 2: "held", 3: "held"}
    assert written(engine) == [0]
