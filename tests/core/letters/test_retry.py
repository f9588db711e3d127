"""core/letters/retry.py: letters are claimed, retried and settled, each for its own reason."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from msgspec import structs

from core.errors import DataRefused
from core.letters.retry import claim_due, next_due_at, retry_chunk
from core.model.commits import ROWS_AT_ONCE
from core.model.events import Event
from core.model.rows import References, Row
from core.model.transforms import Transform
from core.settle.attempts import StoredJournal
from core.settle.settle import EventKilled
from tests.core.letters.world import LEASE, World, at, counts
from tests.fakes.builders import NOON, commit, event, home, keep_letters, partition, settled
from tests.fakes.faulty_database import Fault, Killed
from tests.fakes.memory_store import MemoryStore
from tests.fakes.moving import requeue
from tests.fakes.plain_transform import PLAIN


class TestClaiming:
    def test_gives_chunks_of_ids_and_holds_them_for_a_lease(self) -> None:
        world = World()
        keep_letters(world.inner, dict.fromkeys((1, 5), "quiet"), "0")
        keep_letters(world.inner, {3: "quiet"}, "1")
        chunks = claim_due(world.keeper)
        assert [(one.partition_id, one.sequence_numbers) for one in chunks] == [("0", (1, 5)), ("1", (3,))]
        assert len({one.claimed_by for one in chunks}) == 1
        assert {kept.claimed_until for kept in world.letters()} == {NOON + LEASE}

    def test_takes_no_more_than_the_fan_out_holds(self) -> None:
        world = World()
        keep_letters(world.inner, dict.fromkeys(range(100), "quiet"))
        assert [len(one.sequence_numbers) for one in claim_due(world.keeper)] == [10, 10, 10]

    def test_takes_no_more_than_one_statement_may_lock(self) -> None:
        world = World()
        keeper = replace(world.keeper, letters=replace(world.policy, chunk=1_000, fan_out=3))
        keep_letters(world.inner, dict.fromkeys(range(ROWS_AT_ONCE + 1), "quiet"))
        assert sum(len(one.sequence_numbers) for one in claim_due(keeper)) == ROWS_AT_ONCE

    def test_of_nothing_due_is_nothing(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "quiet"}, due_at=NOON + timedelta(seconds=1))
        assert claim_due(world.keeper) == ()
        assert next_due_at(world.keeper) == NOON + timedelta(seconds=1)

    def test_an_idle_round_is_one_call(self) -> None:
        world = World()
        assert next_due_at(world.keeper) is None
        assert world.faulty.calls == ["next_due_at"]


class TestAChunk:
    def test_is_read_decided_and_written_once(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "double a", 1: "quiet", 2: "bug", 3: "poison", 4: "home b 1"})
        (report,) = world.round()
        assert counts(report) == {"resolved": 3, "waiting": 1, "exhausted": 1}
        assert (report.commits, report.rows_written) == (1, 3)
        assert world.statuses() == ["resolved", "resolved", "waiting", "exhausted", "resolved"]
        assert world.faulty.calls == ["claim_letters", "read_partition", "begin_chunk", "commit_retry"]

    def test_asks_for_its_references_in_one_call(self) -> None:
        world = World()
        world.inner.commit_batch(commit(world.inner.read_partition(partition("1")), 0, 0, settled({0: [home("a")]})))
        keep_letters(world.inner, {0: "look a", 1: "look a", 2: "look nobody"})
        (report,) = world.round()
        assert counts(report) == {"resolved": 2, "waiting": 1}
        assert world.faulty.calls.count("read_references") == 1
        assert world.letter(2).error_class == "reference"

    def test_a_letter_sees_what_an_earlier_one_of_the_chunk_writes(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "home a 1", 1: "look a"})
        (report,) = world.round()
        assert counts(report) == {"resolved": 2}

    def test_says_why_a_letter_is_settled(self) -> None:
        world = World(attempts=2)
        keep_letters(world.inner, {0: "reading a", 1: "quiet", 2: "poison", 3: "bug"})
        world.round()
        assert [kept.settled_why for kept in world.letters()] == [
            "its rows were written",
            "it was filtered",
            "poison: not tried again",
            "it failed 2 times",
        ]

    def test_is_tried_with_the_deployment_of_now(self) -> None:
        world = World(transform=Transform("mended/2", lambda event, references: ()))
        keep_letters(world.inner, {0: "bug"})
        world.round()
        assert (world.letter().status, world.letter().transform_version) == ("resolved", "mended/2")

    def test_pauses_grow_until_the_attempts_are_spent(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "bug"})
        pauses = []
        while (due := next_due_at(world.keeper)) is not None:
            pauses.append((due - world.clock.now()).total_seconds())
            world.clock.advance(pauses[-1])
            world.round()
        assert pauses == [0, 60, 120, 240, 480, 960, 1920]
        assert (world.letter().status, world.letter().attempts) == ("exhausted", 8)
        assert [kept.attempt for kept in world.inner.attempts()] == list(range(1, 8))

    def test_that_is_run_twice_finds_no_letter_the_second_time(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "reading a", 1: "bug"})
        (chunk,) = claim_due(world.keeper)
        assert counts(retry_chunk(chunk, world.keeper, "one")) == {"resolved": 1, "waiting": 1}
        before = world.letters(), world.inner.attempts(), world.inner.retries()
        assert counts(retry_chunk(chunk, world.keeper, "two")) == {"lost": 2}
        assert before == (world.letters(), world.inner.attempts(), world.inner.retries())

    def test_memory_that_runs_out_is_no_letters_fault(self) -> None:
        def rows_of(event: Event, references: References) -> Iterable[Row]:
            raise MemoryError

        world = World(transform=Transform("huge/1", rows_of))
        keep_letters(world.inner, {0: "reading a"})
        with pytest.raises(MemoryError):
            world.round()
        assert world.statuses() == ["retrying"]


class TestRefusedRows:
    @pytest.mark.parametrize("bad", [{0}, {9}, {4}, {2, 3}, {0, 9}, set(range(10)), set()])
    def test_are_halved_until_the_bad_letters_stand_alone(self, bad: set[int]) -> None:
        world = World()
        bodies = {number: f"huge {number}" if number in bad else f"reading {number}" for number in range(10)}
        keep_letters(world.inner, bodies)
        (report,) = world.round()
        assert (report.resolved, report.waiting) == (10 - len(bad), len(bad))
        assert world.readings() == [number for number in range(10) if number not in bad]
        for number in bad:
            kept = world.letter(number)
            assert (kept.error_class, kept.attempts) == ("refused", 2)
            assert "too large" in kept.error

    def test_cost_two_calls_more_for_each_halving(self) -> None:
        world = World()
        keep_letters(world.inner, {number: "huge a" if number == 9 else f"reading {number}" for number in range(10)})
        world.round()
        assert world.faulty.calls.count("commit_retry") <= 10

    def test_that_are_refused_without_rows_too_are_released(self) -> None:
        class Refusing(MemoryStore):
            def commit_retry(self, commit: object) -> int:
                raise DataRefused("no letter can be written")

        store = Refusing()
        keep_letters(store, {0: "reading a", 1: "reading b", 2: "reading c"})
        world = World()
        (report,) = world.round(world.another(store))
        assert counts(report) == {"released": 3}
        assert [kept.status for kept in store.letters()] == ["waiting"] * 3


class TestProcessKillers:
    """Letters whose claims are lost are tried alone, and after three lone tries for a person."""

    def world(self, kills: int = 99) -> World:
        self.deaths = 0

        def rows_of(event: Event, references: References) -> Iterable[Row]:
            if event.body == b"kill" and self.deaths < kills:
                self.deaths += 1
                raise Killed
            return PLAIN.rows_of(structs.replace(event, body=b"reading a"), references)

        world = World(transform=Transform("killing/1", rows_of))
        keep_letters(world.inner, {0: "reading a", 1: "kill", 2: "reading a"})
        return world

    def keep(self, world: World) -> None:
        """Run one process after the other until no letter waits."""
        for turn in range(30):
            due = next_due_at(world.keeper)
            if due is None:
                return
            world.clock.advance(max(0.0, (due - world.clock.now()).total_seconds()))
            own = world.another(world.faulty, world.keeper.transform, seed=turn)
            try:
                world.round(own)
            except Killed:
                continue
        raise AssertionError("it never ends")

    def test_are_set_aside_for_a_person_after_three_tries_alone_and_take_no_other_letter_with_them(self) -> None:
        world = self.world()
        self.keep(world)
        killer = world.letter(1)
        assert (killer.status, killer.error_class, killer.attempts) == ("exhausted", "crash", 2)
        slow_too = r"^the process died, or took longer than the lease of \d+ s \(DEAD_LETTER_LEASE_SECONDS\), each"
        assert re.match(slow_too, killer.error)
        assert killer.settled_why == killer.error
        assert self.deaths == 3
        assert (world.statuses()[0], world.statuses()[2], world.readings()) == ("resolved", "resolved", [0, 2])

    def test_that_were_held_until_now_count_what_was_tried(self) -> None:
        world = self.world()
        keep_letters(world.inner, {3: "kill"}, status="held", due_at=None)
        self.keep(world)
        killer = world.letter(3)
        assert (killer.status, killer.error_class, killer.attempts) == ("exhausted", "crash", 1)

    def test_are_not_taken_up_again_under_a_claim_that_died(self) -> None:
        world = self.world()
        (chunk,) = claim_due(world.keeper)
        with pytest.raises(Killed):
            retry_chunk(chunk, world.keeper, "retry-1")
        try:
            again = retry_chunk(chunk, world.another(world.faulty, world.keeper.transform, seed=1), "retry-1")
        except Killed:
            pytest.fail("the letters were tried again")
        assert counts(again) == {"lost": 3}
        assert self.deaths == 1
        self.keep(world)
        assert (world.letter(1).error_class, self.deaths) == ("crash", 3)

    def test_that_stop_killing_are_settled_and_forgiven(self) -> None:
        world = self.world(kills=2)
        self.keep(world)
        assert world.statuses() == ["resolved"] * 3
        assert world.letter(1).lost_claims == 0

    def test_are_tried_again_when_a_person_asks(self) -> None:
        world = self.world(kills=3)
        self.keep(world)
        assert world.letter(1).status == "exhausted"
        assert requeue(at(1), world.keeper) == tuple(at(1))
        self.keep(world)
        assert world.letter(1).status == "resolved"

    def test_are_marked_before_they_run_and_each_when_its_turn_comes(self) -> None:
        world = self.world()
        with pytest.raises(Killed):
            world.round()
        world.clock.advance(LEASE.total_seconds())
        world.faulty.calls.clear()
        with pytest.raises(Killed):
            world.round()
        calls = [call for call in world.faulty.calls if call in ("begin_lone_try", "commit_retry")]
        assert calls == ["begin_lone_try", "commit_retry", "begin_lone_try"]
        assert [kept.lost_claims for kept in world.letters()] == [0, 1, 1]
        assert [kept.began_at is not None for kept in world.letters()] == [False, True, False]


class TestLettersThatRunInAChild:
    """Here a child is a transform that names the event which killed it."""

    def world(self) -> World:
        world = World()
        keep_letters(world.inner, {0: "reading a", 1: "kill", 2: "reading c", 3: "bug"})
        self.alone: list[int] = []
        self.marked: list[int] = []  # how many tries were marked when each got its child

        @contextmanager
        def in_child(transform: Transform, look_again: object) -> Iterator[Transform]:
            self.marked.append(world.faulty.calls.count("begin_lone_try"))
            yield self.child(transform)

        journal = StoredJournal(world.faulty, world.keeper.clock, in_child)
        world.keeper = replace(world.keeper, journal=journal)
        return world

    def child(self, transform: Transform) -> Transform:
        def rows_of(event: Event, references: References) -> Iterable[Row]:
            self.alone.append(event.sequence_number)
            if event.body == b"kill":
                raise EventKilled(event.sequence_number, "its process ended by SIGSEGV")
            return transform.rows_of(event, references)

        return replace(transform, rows_of=rows_of)

    def test_have_their_lease_from_the_moment_when_the_child_is_there(self) -> None:
        world = self.world()
        claim_due(world.keeper)
        world.clock.advance(LEASE.total_seconds())
        world.round()
        assert self.marked[0] == 0

    def test_are_those_that_have_lost_a_claim_and_one_that_kills_is_exhausted_at_once(self) -> None:
        world = self.world()
        claim_due(world.keeper)
        assert self.alone == []
        world.clock.advance(LEASE.total_seconds())
        for report in world.round():
            assert sum(counts(report).values()) >= 1
        assert self.alone == [0, 1, 2, 3]
        assert world.statuses() == ["resolved", "exhausted", "resolved", "waiting"]
        killer = world.letter(1)
        assert (killer.error_class, killer.error_type, killer.error) == (
            "crash", "core.errors.ProcessDied", "its process ended by SIGSEGV",
        )  # fmt: skip

    def test_are_those_of_class_crash_when_a_person_asks(self) -> None:
        world = self.world()
        claim_due(world.keeper)
        world.clock.advance(LEASE.total_seconds())
        world.round()
        self.alone.clear()
        requeue(at(1), world.keeper)
        world.round()
        assert (self.alone, world.letter(1).status) == ([1], "exhausted")


class TestBodiesThatWereNotKept:
    def world(self, *faults: Fault | None) -> World:
        world = World(*faults)
        bodies = {0: "reading a", 1: "bug", 2: "reading c"}
        keep_letters(world.inner, bodies, keeps_body=False)
        world.hub.events = {number: event(number, body) for number, body in bodies.items()}
        return world

    def test_are_asked_of_the_hub(self) -> None:
        world = self.world()
        assert counts(world.round()[0]) == {"resolved": 2, "waiting": 1}
        assert (world.hub.asked, world.readings()) == ([0, 1, 2], [0, 2])

    def test_are_not_asked_for_where_they_were_kept(self) -> None:
        world = World()
        keep_letters(world.inner, {0: "reading a"})
        world.round()
        assert world.hub.asked == []

    def test_that_left_the_hub_end_their_letter_with_a_reason(self) -> None:
        world = self.world()
        del world.hub.events[1]
        assert counts(world.round()[0]) == {"resolved": 2, "exhausted": 1}
        kept = world.letter(1)
        assert (kept.status, kept.attempts, kept.error_class) == ("exhausted", 1, "unknown")
        assert kept.settled_why == "the event left the hub, and its body was not stored"

    def test_of_another_hub_are_not_theirs_so_they_wait_uncounted(self) -> None:
        world = self.world()
        world.hub.events[1] = event(1, "reading b", at=NOON)
        assert counts(world.round()[0]) == {"resolved": 1, "released": 2}
        assert [(kept.status, kept.attempts) for kept in world.letters()[1:]] == [("waiting", 1)] * 2

    def test_wait_uncounted_while_the_hub_is_down(self) -> None:
        world = self.world()
        world.hub.down = True
        assert counts(world.round()[0]) == {"released": 3}
        assert world.hub.asked == [0]
        for kept in world.letters():
            assert (kept.status, kept.attempts, kept.due_at) == ("waiting", 1, NOON + timedelta(seconds=30))
        assert world.inner.attempts() == []

    def test_are_left_for_the_next_round_when_the_time_of_the_chunk_is_up(self) -> None:
        world = self.world()
        world.hub.takes = partial(world.clock.advance, 9.0)
        assert counts(world.round()[0]) == {"resolved": 1, "waiting": 1, "released": 1}
        assert world.hub.asked == [0, 1]

    def test_of_a_released_letter_do_not_hold_up_those_that_were_kept(self) -> None:
        world = self.world()
        keep_letters(world.inner, {3: "reading d"})
        world.hub.down = True
        assert counts(world.round()[0]) == {"resolved": 1, "released": 3}
