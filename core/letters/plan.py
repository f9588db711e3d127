"""Decide the outcome of each letter: run the transform again, and apply the policy of each class of error."""

from collections.abc import Sequence
from dataclasses import dataclass

from core.errors import ProcessDied
from core.model.commits import DeadLetter, error_type
from core.model.letters import (
    AFTER_FAILURE,
    LOST_CLAIMS,
    MOVES,
    ClaimedLetter,
    LetterHold,
    LetterOutcome,
    LetterPolicy,
    RetryCommit,
)
from core.model.ports import Clock
from core.model.rows import References
from core.model.transforms import Transform
from core.settle.settle import settle

GONE = "the event left the hub, and its body was not stored"
CRASHED = (  # a dead holder and one slower than its lease look the same, so the words name both
    "the process died, or took longer than the lease of {lease:g} s (DEAD_LETTER_LEASE_SECONDS), each of the"
    " {times} times that it tried this letter alone"
)


@dataclass(frozen=True, slots=True)
class RetryRules:
    """The transform, the clock and the policy of letters, which decide what a retry does."""

    transform: Transform
    clock: Clock
    letters: LetterPolicy


def is_to_run(letter: ClaimedLetter) -> bool:
    """Return False for a letter without its body, and for one that has killed its process too often."""
    return letter.body_kept and letter.lost_claims < LOST_CLAIMS


def plan_retry(
    hold: LetterHold, letters: Sequence[ClaimedLetter], references: References, rules: RetryRules, invocation_id: str
) -> RetryCommit:
    """Return the outcome of every letter, as one value. The letters must be in order of sequence number."""
    settled = settle(
        [letter.event for letter in letters if is_to_run(letter)], references, rules.transform, of=hold.partition
    )
    failures = {failure.event.sequence_number: failure for failure in settled.letters}
    written = {placed[0] for rows in settled.rows.values() for placed in rows}

    def outcome_of(letter: ClaimedLetter) -> LetterOutcome:
        number = letter.sequence_number
        if not is_to_run(letter):
            if letter.lost_claims < LOST_CLAIMS:
                return LetterOutcome(number, MOVES["exhaust"].target, why=GONE, attempted=False)
            crashed = CRASHED.format(lease=rules.letters.lease.total_seconds(), times=LOST_CLAIMS)
            exhausted = MOVES["exhaust"].target
            crash = DeadLetter(letter.event, "crash", error_type(ProcessDied), crashed, "crash", exhausted)
            return LetterOutcome(number, exhausted, crash, why=crashed)
        if number in failures:
            return _of_failure(letter, failures[number], rules)
        why = "its rows were written" if number in written else "it was filtered"
        return LetterOutcome(number, MOVES["resolve"].target, why=why)

    return RetryCommit(
        state=hold.state,
        claimed_by=hold.claimed_by,
        outcomes=tuple([outcome_of(letter) for letter in letters]),
        settled=settled,
        transform_version=rules.transform.version,
        invocation_id=invocation_id,
        committed_at=rules.clock.now(),
    )


def _of_failure(letter: ClaimedLetter, failure: DeadLetter, rules: RetryRules) -> LetterOutcome:
    attempts, backoff = letter.attempts + 1, rules.letters.backoff
    status = AFTER_FAILURE[failure.error_class]
    if status == "exhausted":
        return LetterOutcome(letter.sequence_number, status, failure, why=f"{failure.error_class}: not tried again")
    if backoff.is_spent(attempts):
        exhausted = MOVES["exhaust"].target
        return LetterOutcome(letter.sequence_number, exhausted, failure, why=f"it failed {attempts} times")
    due_at = rules.clock.now() + backoff.pause(attempts, rules.clock.chance())
    return LetterOutcome(letter.sequence_number, status, failure, due_at)
