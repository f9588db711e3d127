"""Promises of every store about anchors, absent numbers and gaps."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.errors import CheckpointConflict, DataRefused
from core.ingest.stalled_partitions import HubEnd
from core.model.commits import BatchCommit, GapStatus, PartitionState, SequenceGap
from core.model.events import SequenceNumber, Span
from core.model.letters import LetterOutcome, RetryCommit
from tests.fakes.builders import EPOCH, claim, commit, event, keep_letters, letter, partition, reading, settled
from tests.fakes.faulty_database import NotedDatabase
from tests.fakes.incarnations import open_next
from tests.fakes.kept import Engine
from tests.fakes.store import Store

P = partition()
LATER = EPOCH + timedelta(days=1)  # when the builders' commits are made


def number(value: int) -> SequenceNumber:
    return SequenceNumber(value)


def gap(first: int, last: int) -> Span:
    return Span(number(first), number(last))


def part(first: int, last: int, status: GapStatus) -> SequenceGap:
    return SequenceGap(number(first), number(last), status)


def with_absent(
    state: PartitionState, first: int, last: int, absent: int, gaps: Sequence[SequenceGap] = ()
) -> BatchCommit:
    """A commit of which so many numbers are absent; the events were filtered."""
    filtered = settled({}, filtered=last - first + 1 - absent)
    return replace(commit(state, first, last, filtered), absent=absent, gaps=gaps)


def rows(engine: Engine) -> list[tuple[int, int, str, int]]:
    return [(kept.first, kept.last, kept.status, kept.attempts) for kept in engine.gaps()]


def begun(store: Store, of: str = "0") -> PartitionState:
    """A partition that begins at 0."""
    return store.anchor_partition(store.read_partition(partition(of)), number(0), LATER)


class TestAnchors:
    def test_a_new_partition_has_no_anchor_and_knows_when_its_stream_was_opened(self, store: Store) -> None:
        before = datetime.now(UTC)
        state = store.read_partition(P)
        assert state.anchor is None
        assert state.opened_at is not None
        assert before - timedelta(seconds=5) <= state.opened_at <= datetime.now(UTC) + timedelta(seconds=5)
        assert store.read_partition(partition("7")).opened_at == state.opened_at

    def test_an_anchor_stays_whoever_asks(self, make_store: Callable[[], Store]) -> None:
        one, other = make_store(), make_store()
        early = other.read_partition(P)
        state = one.anchor_partition(one.read_partition(P), number(2**62), LATER)
        assert (state.anchor, state.next_number, state.checkpoint) == (2**62, 2**62, None)
        assert other.read_partition(P) == state
        assert other.anchor_partition(early, number(5), LATER) == state

    def test_threads_that_anchor_one_partition_agree(self, make_store: Callable[[], Store]) -> None:
        stores = [make_store() for _ in range(4)]
        state = stores[0].read_partition(P)
        with ThreadPoolExecutor(4) as pool:
            found = pool.map(lambda at: stores[at].anchor_partition(state, number(at), LATER).anchor, range(4))
            assert len(set(found)) == 1

    def test_a_first_range_that_does_not_begin_at_the_anchor_is_a_hole(self, store: Store) -> None:
        for id, first in (("0", 3), ("1", 4)):
            state = store.anchor_partition(store.read_partition(partition(id)), number(3), LATER)
            store.commit_batch(commit(state, first, 9))
        assert [books.balanced for books in store.read_books()] == [True, False]


class TestAbsentNumbers:
    def test_absent_numbers_belong_to_the_range_and_are_counted(self, store: Store, engine: Engine) -> None:
        outcome = settled({7: [reading()]}, letters=[letter(event(8))], filtered=1)
        store.commit_batch(replace(commit(store.read_partition(P), 4, 9, outcome), absent=3))
        (kept,) = engine.ledger()
        assert (kept.first, kept.last, kept.written, kept.filtered, kept.dead_lettered, kept.absent) == (
            4,
            9,
            1,
            1,
            1,
            3,
        )
        (books,) = store.read_ledgers()
        assert (books.accounted, books.absent, books.balanced) == (6, 3, True)

    def test_a_range_may_be_absent_altogether_and_the_next_one_follows(self, store: Store) -> None:
        store.commit_batch(commit(store.read_partition(P), 0, 4))
        state = store.read_partition(P)
        end = HubEnd(number(2**40), "256", EPOCH + timedelta(days=3))
        gone = replace(with_absent(state, 5, 2**40, 2**40 - 4), last=end)
        assert store.commit_batch(gone) == 2
        checkpoint = store.read_partition(P).checkpoint
        assert checkpoint is not None
        assert (checkpoint.sequence_number, checkpoint.offset) == (2**40, "256")
        assert checkpoint.enqueued_at == end.enqueued_at
        store.commit_batch(commit(store.read_partition(P), 2**40 + 1, 2**40 + 1))
        assert [(books.absent, books.balanced) for books in store.read_ledgers()] == [(2**40 - 4, True)]

    @pytest.mark.parametrize("absent", [0, 1, 3, -1])
    def test_absent_numbers_must_make_the_sum_right(self, store: Store, engine: Engine, absent: int) -> None:
        wrong = replace(commit(store.read_partition(P), 0, 4, settled({}, filtered=3)), absent=absent)
        with pytest.raises(DataRefused):
            store.commit_batch(wrong)
        assert engine.ledger() == []


class TestGaps:
    def test_a_gap_that_was_found_is_open_and_each_further_try_counts(self, store: Store, engine: Engine) -> None:
        state = begun(store)
        for at in range(3):
            store.note_gap(state, gap(5, 9 + at), EPOCH + timedelta(hours=at))
        assert rows(engine) == [(5, 11, "open", 3)]
        (kept,) = engine.gaps()
        assert kept.found_at == EPOCH
        assert (kept.stream_id, kept.partition_id) == (state.stream_id, "0")

    def test_a_gap_found_from_a_stale_state_is_none(self, make_store: Callable[[], Store], engine: Engine) -> None:
        one, other = make_store(), make_store()
        stale = begun(one)
        other.commit_batch(commit(other.read_partition(P), 0, 4))
        with pytest.raises(CheckpointConflict):
            one.note_gap(stale, gap(0, 4), EPOCH)
        committed = one.read_partition(P)
        other.commit_batch(commit(committed, 5, 9))
        with pytest.raises(CheckpointConflict):
            one.note_gap(committed, gap(5, 9), EPOCH)
        assert rows(engine) == []

    @pytest.mark.parametrize("is_first", [True, False])
    def test_a_gap_that_another_owner_has_just_settled_stays_settled(
        self, store: Store, engine: Engine, is_first: bool
    ) -> None:
        """The note compares the checkpoint itself, so there is no moment between a look and the note."""
        state, begin = begun(store), 0
        if not is_first:
            store.commit_batch(commit(state, 0, 4))
            state, begin = store.read_partition(P), 5
        store.commit_batch(with_absent(state, begin, begin + 4, 5, [part(begin, begin + 4, "absent")]))
        for first in (begin, begin + 2):  # a row begins at the first of them, and none at the other
            with pytest.raises(CheckpointConflict):
                store.note_gap(state, gap(first, begin + 4), LATER)
        with pytest.raises(CheckpointConflict):
            store.note_gap(state, gap(begin + 5, begin + 9), LATER)  # it begins later, but its state is stale too
        assert rows(engine) == [(begin, begin + 4, "absent", 1)]

    def test_a_note_is_one_call_that_reads_nothing_before(self, store: Store) -> None:
        state, noted = begun(store), NotedDatabase(store.database)
        Store(noted).note_gap(state, gap(0, 4), EPOCH)
        assert noted.calls == ["lock_partition"]

    def test_a_gap_of_a_closed_stream_is_not_noted(self, store: Store, engine: Engine) -> None:
        state = begun(store)
        open_next(store)
        with pytest.raises(CheckpointConflict):
            store.note_gap(state, gap(0, 4), EPOCH)
        assert rows(engine) == []

    def test_a_retry_of_letters_makes_no_state_stale(self, store: Store, engine: Engine) -> None:
        keep_letters(store, {4: "a"})
        state = store.read_partition(P)
        store.claim_letters(claim())
        filtered = (LetterOutcome(number(4), "resolved", why="it was filtered"),)
        store.commit_retry(RetryCommit(state, "claim-1", filtered, settled({}, filtered=1), "test/2", "i-2", LATER))
        store.note_gap(state, gap(5, 9), EPOCH)
        assert store.commit_batch(with_absent(state, 5, 9, 5, [part(5, 9, "absent")])) == 3
        assert rows(engine) == [(5, 9, "absent", 1)]
        assert [books.balanced for books in store.read_ledgers()] == [True]

    def test_the_parts_of_a_gap_take_its_place_within_the_commit(self, store: Store, engine: Engine) -> None:
        store.commit_batch(commit(store.read_partition(P), 0, 4))
        state = store.read_partition(P)
        store.note_gap(state, gap(5, 20), EPOCH)
        parts = [part(5, 6, "absent"), part(7, 9, "healed"), part(10, 20, "open")]
        store.commit_batch(with_absent(state, 5, 9, 2, parts))
        assert rows(engine) == [(5, 6, "absent", 1), (7, 9, "healed", 1), (10, 20, "open", 1)]
        assert [kept.found_at for kept in engine.gaps()] == [EPOCH, LATER, LATER]

    def test_many_parts_are_kept(self, store: Store, engine: Engine) -> None:
        parts = [part(at, at, "absent" if at % 2 else "healed") for at in range(500)]
        store.commit_batch(with_absent(store.read_partition(P), 0, 499, 250, parts))
        assert [row[:3] for row in rows(engine)] == [(one.first, one.last, one.status) for one in parts]

    def test_a_conflict_leaves_the_gap_as_it_was(self, store: Store, engine: Engine) -> None:
        stale = begun(store)
        store.note_gap(stale, gap(0, 4), EPOCH)
        store.commit_batch(commit(stale, 0, 1))
        with pytest.raises(CheckpointConflict):
            store.commit_batch(with_absent(stale, 0, 4, 5, [part(0, 4, "absent")]))
        assert rows(engine) == [(0, 4, "open", 1)]

    def test_a_gap_that_ends_before_it_begins_is_refused(self, store: Store, engine: Engine) -> None:
        with pytest.raises(DataRefused):
            store.commit_batch(with_absent(store.read_partition(P), 0, 4, 5, [part(3, 2, "absent")]))
        assert (engine.ledger(), engine.gaps()) == ([], [])

    def test_open_gaps_up_to_the_checkpoint_are_closed_and_no_others(self, store: Store, engine: Engine) -> None:
        for id in ("0", "1"):
            state = begun(store, id)
            for first, last in ((0, 4), (5, 9), (10, 15)):
                store.note_gap(state, gap(first, last), EPOCH)
            store.commit_batch(with_absent(state, 0, 11, 3, [part(0, 2, "absent")]))
        store.close_gaps(P)
        here = [(0, 2, "absent", 1), (5, 9, "healed", 1), (10, 15, "open", 1)]
        assert rows(engine) == [*here, (0, 2, "absent", 1), (5, 9, "open", 1), (10, 15, "open", 1)]
