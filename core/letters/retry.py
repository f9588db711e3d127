"""Retry dead letters: claim those that are due, and settle them chunk by chunk.

SQL is the schedule (`due_at`), and the caller is only an alarm clock. If it calls too often, too late, twice at once or
never again, nothing is lost and nothing is applied twice.

A chunk takes one transaction, unless a fault needs more. A run that the database refuses is halved until the bad
letters are alone. They get class `refused` and the database's error. Letters that the claim lost are left out, and the
others are retried. When the answer to a transaction is lost, its letters are read: the letters that it settled carry
the claim and are no longer `retrying`.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from core.errors import (
    CommitOutcomeUnknown,
    DataRefused,
    ErasureKeyMissing,
    InfrastructureFault,
    LetterConflict,
    StoreFault,
    StreamIncarnationChanged,
)
from core.letters.plan import RetryRules, is_to_run, plan_retry
from core.letters.store import Letters
from core.measured import measured
from core.model.commits import ROWS_AT_ONCE, PartitionState
from core.model.events import Event, Partition, SequenceNumber, Span, Stream, is_same_instant, number_of
from core.model.letters import (
    TRANSACTION_LIMIT,
    ClaimedLetter,
    EventFinder,
    LetterChunk,
    LetterClaim,
    LetterHold,
    LetterMove,
    LetterOutcome,
    LetterPolicy,
    RetryCommit,
    RetryReport,
    chunks_of,
)
from core.model.ports import Clock
from core.model.rows import References
from core.model.transforms import Transform
from core.settle.erased_subjects import Erased
from core.settle.isolate import NOT_JOURNALED, AttemptRequest, Isolation, Journal, RunChanged
from core.settle.partition_store import UNORDERED
from core.settle.settle import reference_keys

Claimed = tuple[ClaimedLetter, ...]


@dataclass(frozen=True, slots=True)
class Keeper:
    """The means to retry and move the letters of one stream."""

    stream: Stream
    store: Letters
    transform: Transform
    find_event: EventFinder
    clock: Clock
    letters: LetterPolicy = LetterPolicy()  # noqa: RUF009 - it is frozen
    journal: Journal = NOT_JOURNALED

    def read_erased(self, state: PartitionState, letters: Sequence[ClaimedLetter]) -> Erased:
        """Return the subjects that were erased: a retry makes nothing of their events."""
        return self.store.partitions.read_erased(state, min(one.event.enqueued_at for one in letters))

    @property
    def rules(self) -> RetryRules:
        """The part that decides the outcome of a retry."""
        return RetryRules(self.transform, self.clock, self.letters)


def release(chunk: LetterChunk, keeper: Keeper) -> int:
    """Give back the letters of a chunk that its claim still holds and that were not settled, and return their number.

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


LONGEST_CHAIN = timedelta(seconds=14)  # for the letters that a chunk frees or fetches; the next round continues
IDLE_TURNS = 5  # turns in a row that settle no letter of a run; then the fault goes to the caller


def next_due_at(keeper: Keeper) -> datetime | None:
    """Return the time when the next letter is due or a lease ends, or None. It is past for letters that are due now."""
    latest = keeper.clock.now() + keeper.letters.longest_wait
    return keeper.store.next_due_at(keeper.stream, latest, frees_held=keeper.letters.order == "none")


def wait_for_due(keeper: Keeper, look: timedelta) -> timedelta:
    """Return the time until the next letter is due or a lease ends. It is nothing when letters are due now.

    At most `look`, because letters that fail later may be due sooner.
    """
    due_at = next_due_at(keeper)
    return look if due_at is None else max(timedelta(), min(look, due_at - keeper.clock.now()))


def claim_due(keeper: Keeper) -> tuple[LetterChunk, ...]:
    """Claim the letters that are due, and return their ids.

    One claim has as many letters as `fan_out` chunks hold, but no more than one statement may lock. It holds until the
    lease ends, so retry every chunk before that. Chunks marked `alone` come last. Run them one after another, because
    each of their letters may have killed a process. Letters that are still held although keys are no longer kept in
    order are freed.
    """
    policy, now = keeper.letters, keeper.clock.now()
    token = str(keeper.clock.new_id())
    if policy.order == "none":
        keeper.store.free_letters(keeper.stream, token, now)
    until, latest = now + policy.lease, now + policy.longest_wait
    claim = LetterClaim(keeper.stream, token, now, until, latest, min(policy.chunk * policy.fan_out, ROWS_AT_ONCE))
    return chunks_of(keeper.store.claim_letters(claim), token, policy.chunk)


@measured("retry letters")
def retry_chunk(chunk: LetterChunk, keeper: Keeper, invocation_id: str) -> RetryReport:
    """Try the letters of a chunk that its claim still holds, commit their outcomes, and report them.

    Never raises for the content of a letter. Raises InfrastructureFault: the outcomes committed before the fault
    remain. The other letters are released if the store can be reached, or else freed when the lease ends.

    A chunk begins once: if its process dies, the chunk is not tried again under this claim. Its letters count a lost
    claim when the lease ends. The held letters that it frees are tried at once, for a part of the lease.
    """
    begun = replace(chunk, claimed_by=str(keeper.clock.new_id()))
    taken: list[SequenceNumber] = []
    try:
        hold, letters = _begin_chunk(chunk, begun.claimed_by, keeper)
        retry = _ChunkRetry(keeper, hold, invocation_id, taken)
        retry.run(letters)
        if retry.left:
            released = release(replace(begun, sequence_numbers=tuple(retry.left)), keeper)
            retry.count(released=released, lost=len(retry.left) - released)
    except InfrastructureFault:
        with suppress(InfrastructureFault):
            begun = replace(begun, sequence_numbers=(*chunk.sequence_numbers, *taken))
            for held in (begun, chunk):  # the fault may have come before the chunk began
                release(held, keeper)
        raise
    return retry.report


def _begin_chunk(chunk: LetterChunk, run: str, keeper: Keeper) -> tuple[LetterHold, Claimed]:
    """Begin a chunk, and return its letters and the run's hold on them.

    A remembered state may be of an incarnation that is closed. The claim then holds no letter of its stream, so the
    state is read again.
    """
    partition = keeper.stream.partition(chunk.partition_id)
    for _ in range(2):
        hold = LetterHold(keeper.store.partitions.read_partition(partition), chunk.sequence_numbers, chunk.claimed_by)
        letters = keeper.store.begin_chunk(hold, run)
        if letters:
            break
        keeper.store.partitions.forget_partition(partition)
    return replace(hold, claimed_by=run), letters


@dataclass(slots=True)
class _ChunkRetry:
    """The retry of one chunk: its report, the refused letters, and the letters `left`, which could not be tried.

    `taken` are all letters that it freed and claimed, `freed` those of them that are not tried yet.
    """

    keeper: Keeper
    hold: LetterHold
    invocation_id: str
    taken: list[SequenceNumber]
    report: RetryReport = field(init=False)
    until: datetime = field(init=False)
    freed: list[ClaimedLetter] = field(default_factory=list)
    isolation: Isolation = field(default_factory=Isolation)
    left: list[SequenceNumber] = field(default_factory=list)
    idle_turns: int = 0

    def __post_init__(self) -> None:
        self.report = RetryReport(self.hold.partition.partition_id)
        policy = self.keeper.letters  # one process may have to try all chunks of a claim before its lease ends
        self.until = self.keeper.clock.now() + min(policy.lease / (2 * policy.fan_out), LONGEST_CHAIN)

    def run(self, letters: Claimed) -> None:
        self.count(lost=len(set(self.hold.sequence_numbers)) - len(letters))
        self._settle_all(letters)
        while self.freed:
            letters, self.freed = tuple(sorted(self.freed, key=number_of)), []
            self._settle_all(letters)

    def count(self, **more: int) -> None:
        self.report = replace(self.report, **{name: getattr(self.report, name) + by for name, by in more.items()})

    def _settle_all(self, letters: Claimed) -> None:
        whole = self._made_whole(self._not_waiting(letters))
        ordinary = tuple(letter for letter in whole if not letter.lost_claims)
        for part in (ordinary, *((letter,) for letter in whole if letter.lost_claims)):  # one that lost a claim alone
            while part:
                run = self.isolation.next_run(part)
                part = (*self._settle(run), *part[len(run) :])

    def _not_waiting(self, letters: Claimed) -> Claimed:
        """Return the letters that can be tried. Without the key of erased subjects, these are the ones after the newest
        erasure: the others are `left`, and the partition shows why."""
        state, partitions = self.hold.state, self.keeper.store.partitions
        try:
            if letters:
                self.keeper.read_erased(state, letters)
        except ErasureKeyMissing as stop:
            partitions.note_stop(state, stop.reason, str(stop), self.keeper.clock.now())
            assert state.erased_at is not None  # a key is missing only after an erasure
            newest = state.erased_at + UNORDERED
            self.left += [one.sequence_number for one in letters if one.event.enqueued_at <= newest]
            return tuple([one for one in letters if one.event.enqueued_at > newest])
        return letters

    def _made_whole(self, letters: Sequence[ClaimedLetter]) -> list[ClaimedLetter]:
        """Fetch the events of letters without a body from the hub.

        After its first fault, or when the time is up, other letters are `left`.
        """
        whole: list[ClaimedLetter] = []
        for letter in letters:
            if letter.body_kept:
                whole.append(letter)
            elif self.left or (whole and self.keeper.clock.now() >= self.until):
                self.left.append(letter.sequence_number)
            else:
                try:
                    event = self.keeper.find_event(self.hold.partition, letter.sequence_number)
                    whole.append(letter if event is None else _with_event(letter, event, self.hold.partition))
                except InfrastructureFault:
                    self.left.append(letter.sequence_number)
        return whole

    def _settle(self, run: Claimed) -> Claimed:
        """Settle a run in one transaction, and return the letters that have to be tried again."""
        keeper, asked = self.keeper, self._request(run)
        erased = keeper.read_erased(self.hold.state, run)
        try:
            with keeper.journal.attempt(asked, keeper.transform) as attempt:
                commit = self._plan(run, erased.around(self.isolation.around(attempt.transform)))
                keeper.store.commit_retry(commit)
                attempt.done_to = asked.tried.last
        except RunChanged:
            return run
        except (DataRefused, LetterConflict, CommitOutcomeUnknown) as fault:
            return self._after_fault(run, commit, fault)
        self._note_commit(run, commit, commit.outcomes)
        resolved = {outcome.sequence_number for outcome in commit.outcomes if outcome.status == "resolved"}
        keyed = any(one.event.key is not None and one.sequence_number in resolved for one in run)
        if keeper.letters.order == "hold_key" and keyed and keeper.clock.now() < self.until:
            # The letters that this commit has freed: a key with many held letters needs only one round.
            freed = keeper.store.take_freed(commit, keeper.clock.now() + keeper.letters.lease)
            self.freed += freed
            self.taken += [letter.sequence_number for letter in freed]
        return ()

    def _request(self, run: Claimed) -> AttemptRequest:
        """Return the attempt that a run needs. A letter that lost a claim may kill."""

        def begin_lone_try() -> None:
            now = self.keeper.clock.now()
            self.keeper.store.begin_lone_try(self._held(run), now, now + self.keeper.letters.lease)

        return AttemptRequest(
            "retry",
            self.hold.state,
            Span(run[0].sequence_number, run[-1].sequence_number),
            self.isolation,
            self.invocation_id,
            is_suspect=bool(run[0].lost_claims) and is_to_run(run[0]),
            look_again=begin_lone_try,
        )

    def _plan(self, run: Claimed, transform: Transform) -> RetryCommit:
        """READ the references of the events, and DECIDE."""
        keeper = replace(self.keeper, transform=transform)
        keys = reference_keys(
            [letter.event for letter in run if is_to_run(letter)], keeper.transform, self.hold.partition
        )
        references = References(keeper.store.partitions.read_references(keys) if keys else {})
        return plan_retry(self.hold, run, references, keeper.rules, self.invocation_id)

    def _note_commit(self, run: Claimed, commit: RetryCommit, outcomes: Sequence[LetterOutcome]) -> None:
        self.idle_turns = 0
        self.isolation.note_commit(run)
        self.count(commits=1, rows_written=commit.settled.rows_written)
        for outcome in outcomes:
            self.count(**{outcome.status: 1})

    def _after_fault(self, run: Claimed, commit: RetryCommit, fault: StoreFault) -> Claimed:
        """Report the letters that the claim lost, and return the letters to try again, which it holds.

        After a lost answer, letters that the commit touched count as settled. Letters that the database refuses even
        without rows are `left`.
        """
        found = {letter.sequence_number: letter for letter in self.keeper.store.find_letters(self._held(run))}
        touched = {number for number, letter in found.items() if letter.touched_by == self.hold.claimed_by}
        held = {number for number in touched if found[number].status == "retrying"}
        if isinstance(fault, LetterConflict):  # an erasure that the state does not know may have refused the commit
            self.keeper.store.partitions.forget_partition(self.hold.partition)
            state = self.keeper.store.partitions.read_partition(self.hold.partition)
            self.hold = replace(self.hold, state=state)
        stands = touched - held if isinstance(fault, CommitOutcomeUnknown) else set()
        if stands:
            self._note_commit(run, commit, [one for one in commit.outcomes if one.sequence_number in stands])
        self.count(lost=len(run) - len(held) - len(stands))
        again = tuple(letter for letter in run if letter.sequence_number in held)
        if len(again) < len(run):
            return again
        if not isinstance(fault, DataRefused):
            self.idle_turns += 1
            if self.idle_turns >= IDLE_TURNS:
                raise fault
            return run
        try:
            self.isolation.note_refusal(run, fault)
        except DataRefused:  # the database refuses this letter even without rows
            self.left += [letter.sequence_number for letter in run]
            return ()
        return run

    def _held(self, run: Claimed) -> LetterHold:
        return replace(self.hold, sequence_numbers=tuple(letter.sequence_number for letter in run))


def _with_event(letter: ClaimedLetter, event: Event, partition: Partition) -> ClaimedLetter:
    """Return the letter with the body of its event. Raises StreamIncarnationChanged for a different event."""
    if not is_same_instant(event.enqueued_at, letter.event.enqueued_at):
        evidence = f"event {event.sequence_number} was not enqueued at the time of its letter"
        raise StreamIncarnationChanged(partition, evidence)
    return replace(letter, event=event, body_kept=True)
