"""The open letters of partition keys in SQL: later events of a key wait for them."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from core.model.commits import BatchCommit, OpenKeys, PartitionState
from core.model.spans import SequenceNumber
from core.settle.erased import Erased, ErasureKeyMissing, SubjectKey
from core.settle.order import OpenLetter
from core.store.columns import numbers_json, place_of, texts_json
from core.store.database import Database
from core.store.memory import Memory
from core.store.script import Step

MOST_OPEN_KEYS = 50_000  # open keys of a partition that are remembered; with more, each batch reads only its own keys


class HeldLetters:
    """The part of the partitions that keeps the events of a partition key in order."""

    def __init__(self, database: Database, memory: Memory | None = None) -> None:
        self._database = database
        self._memory = memory

    def read_open_keys(self, state: PartitionState) -> PartitionState:
        """Return the state with the partition keys that have an open letter; keys that the state has already stay."""
        if state.open_keys is not None:
            return state
        found = self._database.ask("read_open_keys", **place_of(state), most=MOST_OPEN_KEYS + 1)
        keys = frozenset([key for (key,) in found]) if len(found) <= MOST_OPEN_KEYS else None
        known = replace(state, open_keys=OpenKeys(keys))
        return self._memory.remember(known) if self._memory else known

    def find_open_letters(
        self, state: PartitionState, keys: AbstractSet[str], before: SequenceNumber
    ) -> Mapping[str, OpenLetter]:
        """Return the last open letter before a number of each of these partition keys that has one."""
        asked = {"partition_keys": texts_json(keys), "before": before}
        found = self._database.ask("find_open_letters", **place_of(state), **asked)
        return {key: OpenLetter(SequenceNumber(number), error_class) for key, number, error_class in found}

    def read_erased(self, state: PartitionState, key: SubjectKey) -> Erased:
        """Return the subjects that were erased in a partition. Raises ErasureKeyMissing for those of another key."""
        found = self._database.ask("read_erased_subjects", **place_of(state))
        if any(key_hash != key.name for _, _, key_hash in found):
            raise ErasureKeyMissing
        return Erased({subject: until for subject, until, _ in found}, key)

    def count_held(self, state: PartitionState) -> int:
        """Count the held letters of a partition."""
        ((held,),) = self._database.ask("count_held", **place_of(state))
        return int(held)


def order_steps(
    state: PartitionState, invocation_id: str, otherwise: Callable[[], Exception], clears: bool = True
) -> list[Step]:
    """Return the step that refuses a commit whose open letters were read before a different replay committed.

    A commit that `clears` is refused too when its state does not know that the partition is stopped.
    """
    if state.open_keys is None or state.checkpoint is None:
        return []
    values = {
        **place_of(state),
        "read_at_commit": state.checkpoint.commit_number,
        "invocation_id": invocation_id,
        "knows_stop": int(not clears or state.stop_for("held") is not None),
    }
    return [Step("stay_in_order", values, expect=1, otherwise=otherwise)]


def freeing_steps(commit: BatchCommit, freed_at: str) -> list[Step]:
    """Return the step that frees held letters of this commit whose earlier letter was settled since it was read."""
    waited_for = {letter.held_behind for letter in commit.settled.letters if letter.status == "held"}
    before = sorted(number for number in waited_for if number is not None and number < commit.first)
    freed = {"freed_by": freed_by(commit.commit_id), "freed_at": freed_at, "sequence_numbers": numbers_json(before)}
    return [Step("free_letters", {**place_of(commit.state), **freed})] if before else []


def freed_by(token: object) -> str:
    """Return the name of a commit, a claim or a move in the letters that it frees."""
    return f"freed-{token}"
