"""Whatever happens during a purge, what stays and what the checkpoints say still account for every number.

Repeat one with `pytest -k seed7`.
"""

from collections import Counter
from pathlib import Path

import pytest

from core.audit.audit import audit, recount_rows
from core.ledger.explain import explain
from core.ledger.store import read_books
from core.model.events import PartitionId, SequenceNumber, Span
from core.purge.purge import purge_of
from tests.fakes.engines import SqliteEngine
from tests.simulation.purge_world import COPIED, READINGS, UNCHAINED, PurgeWorld
from tests.simulation.seeds import seeds


def purged(seed: int, path: Path) -> PurgeWorld:
    print(f"seed {seed}")
    world = PurgeWorld(seed, SqliteEngine(path))
    world.run()
    return world


@pytest.mark.parametrize("seed", seeds(range(30), 4), ids="seed{}".format)
def test_a_purged_world_balances_and_every_purged_number_says_so(seed: int, tmp_path: Path) -> None:
    world = purged(seed, tmp_path / "store.db")
    assert_balanced(world)
    assert_explained(world)
    assert_counted(world)
    assert_nothing_old_is_left(world)
    world.assert_checkpoints_count_the_copies()
    assert world.windows == {(home, kind): (count, ppm) for home, kind, count, ppm in world.sql(READINGS)}


REPLAYED = (
    "SELECT t.task_id FROM task_part AS p JOIN task AS t ON t.task_id = p.task_id JOIN event_hub_checkpoint AS c"
    " ON c.stream_id = t.stream_id AND c.partition_id = p.part WHERE t.kind = 'replay' AND t.is_dry_run = 0"
    " AND c.purged_commit > 0 AND p.part = task_part.part AND t.task_id = task_part.task_id AND t.requested_at {} ("
    "SELECT l.committed_at FROM batch_ledger AS l WHERE l.stream_id = t.stream_id AND l.partition_id = p.part"
    " ORDER BY l.commit_number LIMIT 1)"
)  # the replays of a purged partition before or after its oldest ledger row


def test_changed_counts_of_a_replay_are_named_unless_a_purge_may_have_taken_its_commits(tmp_path: Path) -> None:
    world = purged(9, tmp_path / "store.db")
    change = "UPDATE task_part SET report = json_set(report, '$.rows_written', 31337) WHERE EXISTS ({})"
    found = "SELECT COUNT(*) FROM task_part WHERE EXISTS ({})"
    assert world.sql(found.format(REPLAYED.format("<="))) != [(0,)] != world.sql(found.format(REPLAYED.format(">")))
    world.sql(change.format(REPLAYED.format("<=")))
    assert audit(world.desk.audits, None).faults == ()
    world.sql(change.format(REPLAYED.format(">")))
    assert audit(world.desk.audits, None).faults != ()


def assert_balanced(world: PurgeWorld) -> None:
    done = audit(world.desk.audits, None)
    assert done.faults == ()
    for one in done.partitions:
        whole = Span(SequenceNumber(0), one.ledger.checkpoint)
        assert recount_rows(one, whole, world.desk.audits).faults == ()
    assert read_books(world.desk.ledger).balanced


def assert_explained(world: PurgeWorld) -> None:
    gone = {
        (id, number)
        for id, first, last in world.sql(
            "SELECT partition_id, first_sequence_number, last_sequence_number FROM gone_batch_ledger"
            " WHERE purged > 0 AND kind = 'batch'"
        )
        for number in range(first, last + 1)
    }
    for id, last in world.sql("SELECT partition_id, sequence_number FROM event_hub_checkpoint"):
        for number in range(last + 1):
            found = explain(PartitionId(id), SequenceNumber(number), world.desk.explanations)
            assert found is not None
            assert found.outcome not in ("missing", "not_yet", "before_first"), (id, number)
            assert ("Its ledger row was purged" in found.sentence) == ((id, number) in gone), (
                id,
                number,
                found.sentence,
            )


def assert_counted(world: PurgeWorld) -> None:
    """Check that exactly the rows are gone that the jobs list as purged, and that none went too early."""
    said: Counter[str] = Counter()
    for task in world.desk.tasks.read(world.stream_id, 1_000, kind="purge"):
        if not task.is_dry_run:
            said.update({table: found.rows for table, found in purge_of(task).found.items()})
    for table in ("batch_ledger", "event_hub_dead_letter", "retracted_row", *UNCHAINED):
        assert said[table] == world.gone(table), table


def assert_nothing_old_is_left(world: PurgeWorld) -> None:
    left = {table: world.sql(f"SELECT COUNT(*) FROM {table}")[0][0] for table in UNCHAINED}
    assert left == dict.fromkeys(UNCHAINED, 0)


@pytest.mark.slow
def test_the_worlds_meet_deaths_cancels_redrives_cuts_and_purge_rows_of_each_table(tmp_path: Path) -> None:
    met: Counter[str] = Counter()
    for seed in range(40, 46):
        world = purged(seed, tmp_path / f"{seed}.db")
        met += world.met
        met.update({table: world.gone(table) for table in COPIED})
        met.update(
            {"letters were redriven": world.sql("SELECT COALESCE(SUM(report ->> 'moved'), 0) FROM task_part")[0][0]}
        )
        met.update({"pieces": world.sql("SELECT SUM(step) FROM task_part WHERE part LIKE 'batch_ledger/%'")[0][0]})
    assert min(met[name] for name in (*met, "a worker died", "letters were redriven", "the cut moved")) > 0, met
    assert met["pieces"] > 20, met
