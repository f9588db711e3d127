"""Release letters that were claimed and not tried."""

from dataclasses import replace

from core.errors import CommitOutcomeUnknown
from core.letters.keeper import Keeper
from core.model.letters import TRANSACTION_LIMIT, LetterChunk, LetterMove


def release(chunk: LetterChunk, keeper: Keeper) -> int:
    """Give back the letters of a chunk that its claim still holds and that were not settled; return their number.

    No attempt is counted. These letters are due after a short pause, so that the fault may pass.
    """
    numbers, clock = tuple(sorted(set(chunk.sequence_numbers))), keeper.clock
    now, pause = clock.now(), keeper.letters.backoff.pause(1, clock.chance())
    place, claim = keeper.stream.partition(chunk.partition_id), chunk.claimed_by
    move = LetterMove("release", place, (), str(clock.new_id()), now, now + pause, "keeper", "it was not tried", claim)
    moved = 0
    for start in range(0, len(numbers), TRANSACTION_LIMIT):
        part = replace(move, sequence_numbers=numbers[start : start + TRANSACTION_LIMIT])
        try:
            found = keeper.store.move_letters(part)
        except CommitOutcomeUnknown:  # the second time only reports
            found = keeper.store.move_letters(part)
        moved += sum(letter.touched_by == move.move_id for letter in found)
    return moved
