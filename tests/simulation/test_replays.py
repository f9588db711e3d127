"""In every small world a replay of everything leaves the rows of one pass: repeat one with `pytest -k seed17`."""

from itertools import pairwise
from pathlib import Path

import pytest

from core.model.events import PartitionId
from core.transforms.home_security import HomeAlert, SensorReading
from tests.fakes.builders import STREAM
from tests.fakes.engines import SqliteEngine
from tests.fakes.kept import Engine, KeptRow
from tests.fakes.memory_store import MemoryStore
from tests.simulation.replay_world import ReplayWorld
from tests.simulation.seeds import seeds

APPENDED = (SensorReading, HomeAlert)


def run(seed: int, engine: Engine) -> ReplayWorld:
    store = engine.open()
    world = ReplayWorld(seed, store)
    world.run()
    assert_one_pass(world, engine)
    assert_nothing_is_lost_of_what_was_written(world, engine)
    assert_balanced(world, engine)
    store.close()
    return world


def assert_one_pass(world: ReplayWorld, engine: Engine) -> None:
    assert world.last is not None
    job = world.record.find_replay(world.last)
    assert job is not None
    assert (job.status, job.fault) == ("done", None)
    letters = {(one.partition_id, one.sequence_number): one for one in engine.letters()}
    rows = by_event(engine)
    for id in world.logs:
        progress = job.progress_of(PartitionId(id))
        assert progress is not None
        gone = {n for span in progress.gone_ranges for n in range(span.first, span.last + 1)}
        kept = {number for partition_id, number in letters if partition_id == id}
        expired = set(range(world.begins[id], world.expired[id]))
        assert gone <= expired - (kept - gone)
        assert expired - kept <= gone
        assert progress.counts.gone == len(gone)
        if gone or world.begins[id]:
            continue  # what an event saw of the states that are gone is unknown
        for event, expected, error_class in world.expected(id):
            place = (id, event.sequence_number)
            assert [(one.ordinal, one.row) for one in rows.get(place, [])] == [
                (one.ordinal, one.row) for one in sorted(expected, key=lambda one: one.ordinal or 0)
            ], place
            if error_class is None:
                assert place not in letters or letters[place].status == "resolved"
            elif letters[place].status != "discarded":  # that stays as it was given up
                assert (letters[place].error_class, letters[place].transform_version) == (
                    error_class,
                    world.transform.version,
                )
                assert letters[place].status in ("waiting", "exhausted")


def by_event(engine: Engine) -> dict[tuple[str, int], list[KeptRow]]:
    rows: dict[tuple[str, int], list[KeptRow]] = {}
    for one in sorted((one for each in APPENDED for one in engine.rows(each)), key=lambda one: one.ordinal or 0):
        rows.setdefault((one.partition_id, one.sequence_number), []).append(one)
    return rows


def assert_nothing_is_lost_of_what_was_written(world: ReplayWorld, engine: Engine) -> None:
    """Every appended row that any commit wrote is there, or was taken away by one replay and kept."""
    live = [(one.commit_number, one.partition_id, one.sequence_number, one.ordinal, one.row)
            for each in APPENDED for one in engine.rows(each)]  # fmt: skip
    taken = [(one.row_commit_number, one.partition_id, one.sequence_number, one.ordinal, one.row)
             for one in engine.retracted() if one.table_name != "home"]  # fmt: skip
    written = [(one.commit_number, one.partition_id, one.sequence_number, one.ordinal, one.row)
               for _, one in world.recording.written]  # fmt: skip
    assert sorted(map(repr, [*live, *taken])) == sorted(map(repr, written))


def assert_balanced(world: ReplayWorld, engine: Engine) -> None:
    books = world.record.read_ledgers()
    assert all(one.balanced for one in books)
    assert [one.accounted for one in books] == [len(log) for log in world.logs.values()]
    assert_replays_add_up(world, engine)


def assert_replays_add_up(world: ReplayWorld, engine: Engine) -> None:
    """What each job counts is what its commits did, they follow each other, and only what the hub let go is gone."""
    books, replays = world.record.read_ledgers(), engine.replays()
    jobs = {str(job.request.job_id): job for job in world.record.read_replays(books[0].partition.stream, 1_000, None)}
    for job in jobs.values():
        own = [one for one in replays if one.invocation_id == str(job.request.job_id)]
        if not job.request.is_dry_run:
            for name in ("written", "filtered", "dead_lettered", "rows_written"):
                assert getattr(job.counts, name) == sum(getattr(one, name) for one in own), name
        assert not (own and job.request.is_dry_run)
        for progress in job.partitions:
            gone = {number for span in progress.gone_ranges for number in range(span.first, span.last + 1)}
            assert gone <= set(range(world.expired[progress.range.partition_id])), job.request.job_id
        for id in world.logs:
            spans = [(one.first, one.last) for one in own if one.partition_id == id]
            assert all(after[0] == before[1] + 1 for before, after in pairwise(spans))


@pytest.mark.parametrize("seed", seeds(range(150), 10), ids="seed{}".format)
def test_a_world_of_replays_in_memory_ends_as_one_pass(seed: int) -> None:
    run(seed, MemoryStore())


@pytest.mark.parametrize("seed", seeds(range(1_000, 1_025), 5), ids="seed{}".format)
def test_a_world_of_replays_over_a_database_ends_as_one_pass(seed: int, tmp_path: Path) -> None:
    run(seed, SqliteEngine(tmp_path / "store.db"))


@pytest.mark.slow
def test_the_worlds_do_meet_trouble() -> None:
    worlds = [_ended(seed) for seed in range(60)]
    jobs = [job for world in worlds for job in world.record.read_replays(STREAM, 1_000, None)]
    assert {"done", "cancelled"} <= {job.status for job in jobs}
    assert {job.request.is_dry_run for job in jobs} == {True, False}
    for name in ("letters_added", "letters_resolved", "gone", "rows_added", "rows_removed", "rows_retracted"):
        assert sum(getattr(job.counts, name) for job in jobs) > 20, name
    assert any('"move": "pause"' in job.history for job in jobs)
    assert sum(world.retried for world in worlds) > 20


def _ended(seed: int) -> ReplayWorld:
    world = ReplayWorld(seed, MemoryStore().open())
    world.run()
    return world
