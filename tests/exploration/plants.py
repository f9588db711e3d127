"""Planted bugs. The search must find each of them, and returns the shortest schedule that shows it."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from pytest import MonkeyPatch

from core.model.commits import BatchCommit, PartitionState, Settled
from core.settle.partition_store import Partitions, batch_script
from core.store.memory import Memory
from core.store.script import OfRows, Script
from tests.exploration.configurations import CONFIGURATIONS
from tests.exploration.explorer import NestedDatabase, Search, Violation, shortest


class Plant(NamedTuple):
    """A bug, and the configuration that shows it with so many faults."""

    configuration: str
    faults: int
    plant: Callable[[NestedDatabase, MonkeyPatch], object]


def _text(statement: str, text: str, instead: str = "") -> Callable[[NestedDatabase, MonkeyPatch], object]:
    return lambda database, _: database.plant(statement, text, instead)


def _fence_late(_: NestedDatabase, patch: MonkeyPatch) -> None:
    """Write the rows of a batch first, in a transaction without the fence."""

    def write(self: Partitions, script: Script, settled: Settled) -> int:
        rows = [step for step in script.steps if isinstance(step.statement, OfRows)]
        if rows and script.steps[0].statement == "advance_checkpoint":
            place = {name: rows[0].values[name] for name in ("stream_id", "partition_id")}
            number = {"commit_number": self._database.ask("read_checkpoint", **place)[0][3] + 1}
            early = tuple(replace(step, values={**step.values, **number}) for step in rows)
            self._database.run(Script(script.subject, early))
            script = replace(script, steps=tuple(step for step in script.steps if step not in rows))
        return self._database.run(script).kept["commit_number"]

    patch.setattr(Partitions, "write", write)


def _guard_off_by_one(_: NestedDatabase, patch: MonkeyPatch) -> None:
    """Take the event of the checkpoint for a new one."""

    def next_number(state: PartitionState) -> int:
        return 0 if state.checkpoint is None else int(state.checkpoint.sequence_number)

    patch.setattr(PartitionState, "next_number", property(next_number))


def _keep_after_conflict(_: NestedDatabase, patch: MonkeyPatch) -> None:
    """Remember the state of a partition although its commit was refused."""

    def commit_batch(self: Partitions, commit: BatchCommit) -> int:
        number = self.write(batch_script(commit), commit.settled)
        if self._memory:
            self._memory.remember(commit.state_after(number))
        return number

    patch.setattr(Partitions, "commit_batch", commit_batch)


def _free_all(database: NestedDatabase, _: MonkeyPatch) -> None:
    """Free every held letter with the first."""
    database.plant(
        "free_letters", "AND h.held_behind IN (SELECT s.value ->> 0 FROM json_each(:sequence_numbers) AS s)", ""
    )
    database.plant("free_letters", "status = CASE WHEN n.earlier IS NULL THEN", "status = CASE WHEN TRUE THEN")


def _keep_states(_: NestedDatabase, patch: MonkeyPatch) -> None:
    """Remember the states that a commit overwrites."""
    patch.setattr(Memory, "forget_states_of", lambda memory, settled: None)


OWNERS, KEEPERS = "two owners with an overlap", "two keepers, and a lease that ends"
ORDERED = "batch beside retry, in the order of keys"
PLANTS = {
    "the compare-and-set is left out": Plant(
        OWNERS, 0, _text("advance_checkpoint", " AND sequence_number = :expected")
    ),
    "the fence comes after the write": Plant(OWNERS, 0, _fence_late),
    "the guard is off by one": Plant(OWNERS, 0, _guard_off_by_one),
    "the totals are added twice": Plant(OWNERS, 0, _text("advance_checkpoint", "+ :written", "+ 2 * :written")),
    "a state of a partition is remembered after a conflict": Plant(
        "an owner that remembers, and a second one", 0, _keep_after_conflict
    ),
    "a state is remembered that a commit overwrites": Plant(
        "an owner that remembers states, and a second one", 0, _keep_states
    ),
    "a batch does not see that a replay opened a letter": Plant(
        "batch beside replay, in the order of keys", 0, _text("stay_in_order", "l.kind = 'replay'", "l.kind = ''")
    ),
    "letters are never freed": Plant(ORDERED, 0, _text("free_letters", "h.status = 'held'", "h.status = ''")),
    "a letter is freed although an earlier one is open": Plant(ORDERED, 0, _free_all),
    "a held letter is claimed": Plant(
        ORDERED, 0, _text("claim_letters", "'retrying') AND d.due_at <= :claimed_at", "'retrying', 'held')")
    ),
    "a replay leaves the letters after it as they were": Plant(
        "batch beside replay, in the order of keys",
        0,
        _text(
            "order_letters",
            "AND CASE WHEN n.earlier IS NULL THEN d",
            "AND FALSE AND CASE WHEN n.earlier IS NULL THEN d",
        ),
    ),
    "a lease is not looked at": Plant(KEEPERS, 0, _text("claim_letters", "d.due_at <= :claimed_at", "d.due_at >= ''")),
    "a claim begins twice": Plant(KEEPERS, 0, _text("begin_chunk", " AND claimed_by IN (:claimed_by, :run)")),
    "a retry settles letters that its claim has lost": Plant(
        KEEPERS, 0, _text("settle_letters", " AND claimed_by = :claimed_by")
    ),
    "an erasure is known in one stream only": Plant(
        "erasure beside the batch of another stream",
        0,
        _text("refuse_former_plans", "erasures + 1", "erasures + (consumer_group <> 'other')"),
    ),
    "a retry is committed that does not know an erasure": Plant(
        "erasure beside batch and retry", 0, _text("count_commit", " OR e.erasures > :known_erasures")
    ),
    "a second driver repeats a piece": Plant(
        "two drivers of a replay of one piece", 0, _text("advance_replay", " AND step = :expected")
    ),
    "a commit goes to a closed stream": Plant(
        "next incarnation beside the batches of both hubs",
        0,
        _text("advance_checkpoint", "e.closed_at IS NOT NULL OR "),
    ),
}


def story(name: str) -> Violation | None:
    """Return the shortest schedule in which a planted bug breaks the promise, or None where none does."""
    plant = PLANTS[name]
    one = CONFIGURATIONS[plant.configuration]
    with MonkeyPatch.context() as patch:
        world = one.prepare()
        plant.plant(world.database, patch)
        return shortest(Search(world.database, one.actors(world), world.promise, plant.faults))
