"""Letters in SQL: claims, retries and moves."""

import time
from collections.abc import Callable
from datetime import datetime
from functools import partial

from core.errors import LetterConflict
from core.model.commits import ROWS_AT_ONCE
from core.model.events import Stream, number_of
from core.model.letters import (
    MOVES,
    ClaimedLetter,
    ClaimedPosition,
    FoundLetter,
    LetterClaim,
    LetterHold,
    LetterMove,
    LetterOutcome,
    RetryCommit,
)
from core.model.ports import Clock
from core.settle.partition_store import Partitions, Values, counts_of, freed_by, known_erasures, settled_row_steps
from core.store.columns import (
    WHO_LENGTH,
    WHY_LENGTH,
    cut,
    decoded,
    instant_or_none,
    instant_text,
    numbers_json,
    place_of,
    storable,
)
from core.store.database import OF_LETTERS, Database, store_clock, write
from core.store.script import Script, Step

NOT_RECORDED = ("claim", "release")  # moves that try nothing and add no attempt


class Letters:
    """The letters in a database. `MOVES` has the changes of status that are allowed."""

    def __init__(self, database: Database, partitions: Partitions) -> None:
        self._database = database
        self.partitions = partitions

    def keepers_clock(self, own: Clock, monotonic: Callable[[], float] = time.monotonic) -> Clock:
        """Return the clock of a keeper: the time of the database, with the ids and the chance of `own`."""
        return store_clock(self._database, own, OF_LETTERS, monotonic)

    def claim_letters(self, claim: LetterClaim) -> tuple[ClaimedPosition, ...]:
        """Claim letters that wait and are due, and letters whose lease has ended. No letter is ever held twice.

        A letter whose lease ended counts one more lost claim, if its lone try had begun or if it never lost a claim
        before. When the answer is lost (StoreUnavailable), letters may stay claimed until the lease ends.
        """
        script = claim_script(claim, self.partitions.open_stream(claim.stream))
        return decoded(ClaimedPosition, self._database.run(script).rows)

    def begin_chunk(self, hold: LetterHold, run: str) -> tuple[ClaimedLetter, ...]:
        """Take over the letters that the claim still holds, and return them whole, in order of sequence number.

        From then on the run holds them, so nothing can begin under this claim again. The same call repeated has no
        further effect.
        """
        values = {**_hold_values(hold), "claimed_by": hold.claimed_by, "run": run}
        begun = decoded(ClaimedLetter, write(self._database, str(hold.partition), "begin_chunk", **values))
        return tuple(sorted(begun, key=number_of))

    def begin_lone_try(self, hold: LetterHold, began_at: datetime, until: datetime) -> None:
        """Note that these letters are about to be tried, each alone, and extend their lease if the claim holds them."""
        values = {**_hold_values(hold), "claimed_by": hold.claimed_by}
        times = {"began_at": instant_text(began_at), "claimed_until": instant_text(until)}
        write(self._database, str(hold.partition), "begin_lone_try", **values, **times)

    def commit_retry(self, commit: RetryCommit) -> int:
        """Write rows, outcomes, attempts and a ledger row in one transaction, and return its commit number.

        For each settled letter, the next held letter of its key is freed: it waits and is due.

        The partition's checkpoint row is locked and its commit number raised. The checkpoint does not move, so the
        remembered one is still right. Raises LetterConflict (the claim does not hold all letters) and DataRefused (also
        for rows that the new holder of a letter wrote), with nothing written. Raises CommitOutcomeUnknown when the
        answer was lost.
        """
        return self.partitions.write(retry_script(commit), commit.settled)

    def free_letters(self, stream: Stream, by: str, at: datetime) -> None:
        """Free the first held letter of each key that has no earlier letter waiting or being retried.

        Of many, a part is freed, and the next call continues.
        """
        values = {"freed_by": freed_by(by), "freed_at": instant_text(at), "most": ROWS_AT_ONCE}
        write(
            self._database, str(stream), "free_without_order", stream_id=self.partitions.open_stream(stream), **values
        )

    def take_freed(self, commit: RetryCommit, until: datetime) -> tuple[ClaimedLetter, ...]:
        """Claim the letters that this commit has freed, and return those that no other claim took first."""
        taken = decoded(ClaimedLetter, self._database.run(taking_script(commit, until)).rows)
        return tuple(sorted(taken, key=number_of))

    def find_letters(self, hold: LetterHold) -> tuple[FoundLetter, ...]:
        """Return these letters as they are now, under any claim. Letters that do not exist are left out."""
        return decoded(FoundLetter, self._database.ask("find_letters", **_hold_values(hold)))

    def move_letters(self, move: LetterMove) -> tuple[FoundLetter, ...]:
        """Move the letters whose status allows it, add an attempt to each, and return all of them as they are then.

        A discard frees the next held letter of the key of each.

        The moved ones carry the move's id in `touched_by`. A release adds no attempt. After CommitOutcomeUnknown, send
        the move again.
        """
        script = move_script(move, self.partitions.open_stream(move.partition.stream))
        return decoded(FoundLetter, self._database.run(script).rows)

    def next_due_at(self, stream: Stream, latest: datetime, frees_held: bool = False) -> datetime | None:
        """Return the time when the first letter is due or its lease ends. None: no letter waits or is being retried.

        The time is in the past when a letter waits for a time after `latest`: a clock that was ahead set that time.
        With `frees_held`, held letters are due too. An idle round is one call.
        """
        values = {"latest": instant_text(latest), "frees_held": int(frees_held)}
        found = self.partitions.ask_of_open(stream, "next_due_at", **values)
        return instant_or_none(found[0][0]) if found else None


def claim_script(claim: LetterClaim, stream_id: int) -> Script:
    """Return the transaction of a claim. It answers with the letters that the claim holds, also when sent again."""
    held = {"stream_id": stream_id, "claimed_by": claim.claimed_by, "claimed_until": instant_text(claim.claimed_until)}
    values = {
        **held,
        "claimed_at": instant_text(claim.claimed_at),
        "latest": instant_text(claim.latest),
        "most": claim.most,
    }
    steps = (Step("claim_letters", values), Step("read_claimed", held, answers=True))
    return Script(str(claim.stream), steps, may_repeat=True)


def taking_script(commit: RetryCommit, until: datetime) -> Script:
    """Return the transaction that claims the letters that a retry has freed. Sent again, it answers alike."""
    held = {**place_of(commit.state), "claimed_by": commit.claimed_by, "claimed_until": instant_text(until)}
    freed = {"freed_by": freed_by(commit.claimed_by), "freed_at": instant_text(commit.committed_at)}
    read = {**held, "sequence_numbers": numbers_json(commit.sequence_numbers)}
    steps = (Step("take_freed_letters", {**held, **freed}), Step("read_taken", read, answers=True))
    return Script(str(commit.partition), steps, may_repeat=True)


def retry_script(commit: RetryCommit) -> Script:
    """Return the transaction of a retry, in lock order: partition, rows, letters, attempts, ledger.

    It frees the letters that were held after those it settles.
    """
    place, taken = place_of(commit.state), partial(LetterConflict, commit.partition, commit.claimed_by)
    at = instant_text(commit.committed_at)
    shared = {**place, "transform_version": commit.transform_version, "committed_at": at}
    numbers = numbers_json(commit.sequence_numbers)
    freed = {**place, "sequence_numbers": numbers, "freed_by": freed_by(commit.claimed_by), "freed_at": at}
    attempt = {
        "touched_by": commit.claimed_by,
        "kind": "retry",
        "done_by": commit.invocation_id,
        "why": "",
        "done_at": at,
    }
    settled, known = commit.settled, known_erasures(commit.state)
    change = {
        "first_sequence_number": commit.sequence_numbers[0],
        "last_sequence_number": commit.sequence_numbers[-1],
        **counts_of(settled, 0),
        "dead_lettered": len(commit.sequence_numbers) - settled.written - settled.filtered,
        "held": 0,
        "invocation_id": commit.invocation_id,
    }
    return Script(
        str(commit.partition),
        (
            Step("count_commit", {**place, **known}, expect=1, otherwise=taken, keeps="commit_number"),
            *settled_row_steps(commit.settled, place),
            Step(
                "settle_letters",
                {**shared, "claimed_by": commit.claimed_by},
                many=[_outcome_values(outcome) for outcome in commit.outcomes],
                expect=len(commit.outcomes),
                otherwise=taken,
            ),
            Step("free_letters", freed),
            Step("record_attempts", {**freed, **attempt}),
            Step("record_freed", {**freed, "done_by": commit.invocation_id}),
            Step("record_change", {**shared, **change, "kind": "retry"}),
        ),
    )


def move_script(move: LetterMove, stream_id: int) -> Script:
    """Return the transaction of a move. It answers with the letters as they are after the move."""
    place = {"stream_id": stream_id, "partition_id": move.partition.partition_id}
    found = {**place, "sequence_numbers": numbers_json(move.sequence_numbers), "move_id": move.move_id}
    steps = (*move_steps(move, stream_id), Step("find_moved", found, answers=True))
    return Script(str(move.partition), steps, may_repeat=True)


def move_steps(move: LetterMove, stream_id: int, counts: str | None = None) -> tuple[Step, ...]:
    """Return the steps of a move, in lock order. `counts` names the kept number of the moved letters.

    A discard frees the letters that were held after those it settles, and locks the partition for that.
    """
    allowed, at = MOVES[move.move], instant_text(move.moved_at)
    numbers = numbers_json(move.sequence_numbers)
    moved = {"stream_id": stream_id, "partition_id": move.partition.partition_id, "sequence_numbers": numbers}
    values = {
        **moved,
        "sources": f",{','.join(allowed.sources)},",
        "claimed_by": move.claimed_by or "",
        "move_id": move.move_id,
        "kind": move.move,
        "status": allowed.target,
        "due_at": instant_text(move.due_at),
        "moved_at": at,
        "why": cut(move.why, WHY_LENGTH),
    }
    done_by = cut(move.by, WHO_LENGTH)
    attempt = {**moved, "touched_by": move.move_id, "kind": move.move, "done_by": done_by, "done_at": at}
    recorded = [Step("record_attempts", {**attempt, "why": values["why"], "commit_number": 0})]
    made = Step("move_letters", values, counts=counts)
    if move.move != "discard":
        return (made, *(recorded if move.move not in NOT_RECORDED else []))
    freed = {**attempt, "freed_by": freed_by(move.move_id), "freed_at": at, "commit_number": 0}
    return (
        Step("lock_partition", moved),
        made,
        Step("free_letters", freed),
        *recorded,
        Step("record_freed", freed),
    )


def _hold_values(hold: LetterHold) -> Values:
    return {**place_of(hold.state), "sequence_numbers": numbers_json(hold.sequence_numbers)}


def _outcome_values(outcome: LetterOutcome) -> Values:
    """Return the parameters of `settle_letters` that differ by letter. Texts lose what UTF-8 cannot hold."""
    failure = outcome.failure
    return {
        "sequence_number": outcome.sequence_number,
        "status": outcome.status,
        "attempted": int(outcome.attempted),
        "due_at": None if outcome.due_at is None else instant_text(outcome.due_at),
        "error_class": failure and failure.error_class,
        "error_type": failure and failure.error_type,
        "error": failure and storable(failure.error),
        "fingerprint": failure and failure.fingerprint,
        "why": outcome.why,
        "error_at": failure and failure.error_at,
    }
