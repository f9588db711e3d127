"""Settle a chunk of letters in as few transactions as it takes: one, unless something stands in the way.

A commit that the database refuses is halved until the bad letters stand alone; those become class `refused` with the
database's words. Letters that were taken from the claim are left out, and the others go again. A commit whose answer
was lost is settled by looking at the letters: what it touched carries the claim and is not `retrying` any more.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from core.errors import CommitOutcomeUnknown, DataRefused, InfrastructureFault, LetterConflict, StoreFault
from core.letters.plan import Trial, is_to_run, plan_retry
from core.letters.port import LetterStore
from core.model.events import Event
from core.model.letters import (
    ClaimedLetter,
    EventFinder,
    LetterHold,
    LetterOutcome,
    RetryCommit,
    RetryReport,
)
from core.model.rows import References
from core.model.spans import SequenceNumber
from core.settle.isolate import Isolation
from core.settle.settle import reference_keys

TURNS = 5  # in a row in which nothing came of a part; after them the fault goes to the caller

Part = tuple[ClaimedLetter, ...]


@dataclass(slots=True)
class ChunkRetry:
    """What a chunk has come to so far: its report, the parts that are still to be settled, the refused letters, and
    those that are `left`: they could not be tried, and are for the caller to release."""

    store: LetterStore
    hold: LetterHold
    trial: Trial
    find_event: EventFinder
    report: RetryReport = field(init=False)
    parts: list[Part] = field(default_factory=list)
    isolation: Isolation = field(default_factory=Isolation)
    left: list[SequenceNumber] = field(default_factory=list)
    idle_turns: int = 0

    def __post_init__(self) -> None:
        self.report = RetryReport(self.hold.partition.partition_id)

    def run(self) -> None:
        """Settle all that the claim still holds."""
        letters = self.store.read_claimed(self.hold)
        self.count(lost=len(set(self.hold.sequence_numbers)) - len(letters))
        self.parts = _parts(self._made_whole(letters))
        while self.parts:
            self._settle(self.parts.pop(0))

    def count(self, **more: int) -> None:
        """Add to the report."""
        self.report = replace(self.report, **{name: getattr(self.report, name) + by for name, by in more.items()})

    def _made_whole(self, letters: Sequence[ClaimedLetter]) -> list[ClaimedLetter]:
        """Letters without a body get their event from the hub, if it has it. After its first fault it is let alone."""
        whole: list[ClaimedLetter] = []
        for letter in letters:
            if letter.body_kept:
                whole.append(letter)
            elif self.left:
                self.left.append(letter.sequence_number)
            else:
                try:
                    event = self.find_event(self.hold.partition, letter.sequence_number)
                except InfrastructureFault:
                    self.left.append(letter.sequence_number)
                else:
                    whole.append(_with_event(letter, event))
        return whole

    def _settle(self, part: Part) -> None:
        commit = self._plan(part)
        try:
            self.store.commit_retry(commit)
        except (DataRefused, LetterConflict, CommitOutcomeUnknown) as fault:
            self._look_again(part, commit, fault)
        else:
            self._note_commit(commit, commit.outcomes)

    def _plan(self, part: Part) -> RetryCommit:
        """READ what the events refer to, and DECIDE. A letter that may kill the process is marked before it is run."""
        if part[0].lost_claims and is_to_run(part[0]):
            now = self.trial.clock.now()
            self.store.begin_lone_try(self._held(part), now, now + self.trial.letters.lease)
        trial = replace(self.trial, transform=self.isolation.around(self.trial.transform))
        keys = reference_keys([letter.event for letter in part if is_to_run(letter)], trial.transform)
        references = References(self.store.read_references(keys) if keys else {})
        return plan_retry(self.hold, part, references, trial)

    def _note_refusal(self, part: Part, fault: DataRefused) -> None:
        half, number = len(part) // 2, part[0].sequence_number
        if half:
            self.parts[:0] = [part[:half], part[half:]]
        elif number in self.isolation.refused:  # its outcome is refused as well: not the rows' fault
            self.left.append(number)
        else:
            self.isolation.refused[number] = str(fault)
            self.parts.insert(0, part)

    def _note_commit(self, commit: RetryCommit, outcomes: Sequence[LetterOutcome]) -> None:
        self.idle_turns = 0
        self.count(commits=1, rows_written=commit.settled.rows_written)
        for outcome in outcomes:
            self.count(**{outcome.status: 1})

    def _look_again(self, part: Part, commit: RetryCommit, fault: StoreFault) -> None:
        """Who is not held any more is told, who is goes again; after a lost answer, what the commit touched stands."""
        found = {letter.sequence_number: letter for letter in self.store.find_letters(self._held(part))}
        touched = {number for number, letter in found.items() if letter.touched_by == self.hold.claimed_by}
        held = {number for number in touched if found[number].status == "retrying"}
        stands = touched - held if isinstance(fault, CommitOutcomeUnknown) else set()
        if stands:
            self._note_commit(commit, [one for one in commit.outcomes if one.sequence_number in stands])
        self.count(lost=len(part) - len(held) - len(stands))
        left = tuple(letter for letter in part if letter.sequence_number in held)
        if len(left) == len(part):
            self._try_otherwise(part, fault)
        elif left:
            self.parts.insert(0, left)

    def _try_otherwise(self, part: Part, fault: StoreFault) -> None:
        """All of them are still held: refused ones in halves, the others once more, as long as it is worth it."""
        if isinstance(fault, DataRefused):
            self._note_refusal(part, fault)
            return
        self.idle_turns += 1
        if self.idle_turns >= TURNS:
            raise fault
        self.parts.insert(0, part)

    def _held(self, part: Part) -> LetterHold:
        return replace(self.hold, sequence_numbers=tuple(letter.sequence_number for letter in part))


def _parts(letters: Sequence[ClaimedLetter]) -> list[Part]:
    """All that never lost a claim together, and each of the others by itself, behind them."""
    ordinary = tuple(letter for letter in letters if not letter.lost_claims)
    suspects: list[Part] = [(letter,) for letter in letters if letter.lost_claims]
    return [ordinary, *suspects] if ordinary else suspects


def _with_event(letter: ClaimedLetter, event: Event | None) -> ClaimedLetter:
    """The letter with the body of its own event: another one under its number is that of another hub."""
    own = letter.event
    if event is None or (event.sequence_number, event.enqueued_at) != (own.sequence_number, own.enqueued_at):
        return letter
    return replace(letter, event=event, body_kept=True)
