"""Hold the events of a batch whose partition key has an open letter, and stop a partition that holds too many."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from core.errors import HeldLettersFull
from core.model.commits import BatchCommit, PartitionState
from core.model.events import Event, order_key
from core.model.letters import LetterPolicy
from core.settle.order import OpenLetter
from core.settle.store.partitions import Partitions

OpenLetters = Mapping[str, OpenLetter]  # by partition key, the last one of each


def read_open_letters(
    state: PartitionState, run: Sequence[Event], store: Partitions, policy: LetterPolicy
) -> tuple[PartitionState, OpenLetters | None]:
    """READ the open letters that the events of a run have to wait for; None where no event waits.

    Calls the store only for keys that may have an open letter; the returned state remembers the keys that have none.
    """
    if policy.order != "hold_key" or not run:
        return state, None
    state = store.read_open_keys(state)
    asked = state.open_keys.among(map(order_key, run)) if state.open_keys else frozenset()
    if not asked:
        return state, {}
    found = store.find_open_letters(state, asked, run[0].sequence_number)
    known = state.open_keys.minus(asked - found.keys()) if state.open_keys else None
    return replace(state, open_keys=known), found


def events_that_fit(commit: BatchCommit, run: Sequence[Event], store: Partitions, policy: LetterPolicy) -> int:
    """Return how many events of a run can be committed without holding too many letters.

    Raises HeldLettersFull when not even the first one can.
    """
    held = [letter.event.sequence_number for letter in commit.settled.letters if letter.status == "held"]
    if not held:
        return len(run)
    room = max(0, policy.held_limit - store.count_held(commit.state))
    if len(held) <= room:
        return len(run)
    fitting = sum(event.sequence_number < held[room] for event in run)
    if fitting == 0:
        raise HeldLettersFull(commit.partition, held[room], policy.held_limit)
    return fitting
