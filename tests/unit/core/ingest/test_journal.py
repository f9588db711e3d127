"""core/ingest/journal.py: which attempts leave a mark, when it counts as a death, and what it costs."""

from collections.abc import Iterable
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from core.errors import StoreUnavailable
from core.ingest.gaps import Healing
from core.ingest.ingest import Means, ingest_batch
from core.ingest.journal import RACES, UNFINISHED, StoredJournal
from core.ingest.port import AttemptMark
from core.model.events import BATCH_EVENTS, Event, EventBatch
from core.model.rows import References, Row
from core.model.spans import SequenceNumber
from core.model.transform import Transform
from core.store.memory import Memory
from core.store.script import Outcome, Script
from tests.fakes.builders import EPOCH, batch, commit, events, partition, reading, stamps
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.memory_store import MemoryStore
from tests.fakes.noted_database import NotedDatabase
from tests.fakes.plain_transform import PLAIN
from tests.fakes.store import Store

P = partition()


class World:
    """A store, and one process with a journal and a memory over it."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.store = store or MemoryStore()
        self.noted = NotedDatabase(self.store.database)
        self.means = Means(
            Store(self.noted, Memory(timedelta(seconds=60))),
            PLAIN,
            stamps(),
            Healing(MemoryHub({"0": events(0, 599, "reading a")})),
            journal=StoredJournal(Store(self.noted), stamps(7), nullcontext()),
        )

    def ingest(self, first: int, last: int, *, is_retry: bool = False, rows_of: Any = None) -> None:
        own = replace(batch(events(first, last, "reading a")), retries=int(is_retry))
        transform = PLAIN if rows_of is None else Transform("test/1", rows_of)
        ingest_batch(own, replace(self.means, transform=transform))

    def prove(self) -> None:
        """Commit as many events as one batch may hold, 0 to 499."""
        for first in range(0, BATCH_EVENTS, 250):
            self.ingest(first, first + 249)

    def calls(self) -> list[str]:
        """Return the calls since this was last asked."""
        made = list(self.noted.calls)
        self.noted.calls.clear()
        return made

    @property
    def mark(self) -> AttemptMark | None:
        return self.store.read_attempt(self.store.read_partition(P))

    @property
    def ranges(self) -> list[tuple[int, int]]:
        return [(one.first, one.last) for one in self.store.ledger()]


def raising(error: BaseException) -> Any:
    def rows_of(event: Event, references: References) -> Iterable[Row]:
        raise error

    return rows_of


def begun(world: World) -> Any:
    """Note the mark that stands while the transform runs."""
    seen: list[AttemptMark | None] = []

    def rows_of(event: Event, references: References) -> Iterable[Row]:
        seen.append(world.mark)
        return (reading(),)

    return seen, rows_of


def die(world: World, first: int, last: int) -> None:
    """Begin an attempt in a process that ends without a word."""
    world.noted.out = {"end_attempt"}
    with pytest.raises(KeyboardInterrupt):
        world.ingest(first, last, rows_of=raising(KeyboardInterrupt()))


class TestASuspiciousBatch:
    def test_leaves_a_mark_of_its_numbers_before_the_transform_and_its_commit_deletes_it(self) -> None:
        world = World()
        seen, rows_of = begun(world)
        world.ingest(0, 4, rows_of=rows_of)
        assert seen[0] is not None
        assert (seen[0].first, seen[0].last, seen[0].attempts, seen[0].is_narrowed) == (0, 4, 1, False)
        assert (seen[0].invocation_id, world.mark) == ("invocation-1", None)

    def test_is_one_of_the_first_of_its_partition_a_retry_and_each_piece_of_a_gap(self) -> None:
        world = World()
        for first in range(0, BATCH_EVENTS, 100):
            seen, rows_of = begun(world)
            world.ingest(first, first + 99, rows_of=rows_of)
            assert seen[0] is not None and seen[0].last == first + 99
        for first, is_retry, marked in [
            (500, False, False),
            (505, True, True),
            (510, False, False),
            (515, False, False),
        ]:
            seen, rows_of = begun(world)
            world.ingest(first, first + 4, is_retry=is_retry, rows_of=rows_of)
            assert [one is not None for one in seen] == [marked] * 5, first
        seen, rows_of = begun(world)
        world.ingest(525, 529, rows_of=rows_of)  # 520 to 524 are read back
        assert [one and (one.first, one.last) for one in seen] == [(520, 524)] * 5 + [(525, 529)] * 5

    def test_is_marked_before_its_references_are_asked_for(self) -> None:
        world = World()

        def references(event: Event) -> Iterable[Any]:
            assert world.mark is not None
            return ()

        ingest_batch(batch(events(0, 4)), replace(world.means, transform=replace(PLAIN, references_of=references)))
        assert world.ranges == [(0, 4)]

    def test_costs_two_calls_and_the_others_cost_none(self) -> None:
        world = World()
        world.ingest(0, 499)
        first = world.calls()
        for number in range(100, 110):
            world.ingest(number * 5, number * 5 + 4)
        assert world.calls() == ["advance_checkpoint"] * 10
        without = World()
        without.means = replace(without.means, journal=Means(without.store, PLAIN, stamps()).journal)
        without.ingest(0, 499)
        assert [call for call in first if call not in ("read_attempt", "open_attempt")] == without.calls()
        assert len([call for call in first if "attempt" in call]) == 2


class TestAnAttemptThatEndsByAnException:
    def test_takes_its_mark_back(self) -> None:
        world = World()
        with pytest.raises(KeyboardInterrupt):
            world.ingest(0, 4, rows_of=raising(KeyboardInterrupt()))
        assert world.mark is not None and world.mark.attempts == 0

    def test_is_remembered_while_the_store_cannot_be_reached(self) -> None:
        world = World()
        world.noted.out = {"open_checkpoint", "end_attempt"}
        for _ in range(10):
            with pytest.raises(StoreUnavailable):
                world.ingest(0, 4, is_retry=True)
        assert world.mark is not None and world.mark.attempts == 1
        world.noted.out = set()
        world.ingest(0, 9)
        assert (world.ranges, world.store.letters()) == ([(0, 9)], [])
        assert world.store.read_attempt(world.store.read_partition(P)) is None

    def test_does_not_count_when_the_answer_to_its_mark_was_lost(self) -> None:
        world = World()
        lost, database = [True], world.store.database

        class LosingAnswers(NotedDatabase):
            def run(self, script: Script, rehearse: bool = False) -> Outcome:
                outcome = super().run(script, rehearse)
                if script.steps[0].statement == "open_attempt" and lost.pop():
                    raise StoreUnavailable("it was not answered")
                return outcome

        journal = StoredJournal(Store(LosingAnswers(database)), stamps(3), nullcontext())
        world.means = replace(world.means, journal=journal)
        with pytest.raises(StoreUnavailable):
            world.ingest(0, 4)
        seen, rows_of = begun(world)
        world.ingest(0, 4, rows_of=rows_of)
        assert seen[0] is not None and seen[0].attempts == 1

    def test_counts_as_a_death_when_memory_ran_out(self) -> None:
        world = World()
        world.prove()
        ends = [(509, 1, 0), (509, 2, 0), (509, 3, 0), (501, 1, 510), (500, 1, 510), (500, 2, 510), (500, 3, 510)]
        for attempt in range(8):
            with pytest.raises(MemoryError):
                world.ingest(500, 509, rows_of=raising(MemoryError()))
            mark = world.mark
            assert (mark and (mark.last, mark.attempts, mark.suspects_end)) == (ends[attempt - 1] if attempt else None)
        world.ingest(500, 509)
        assert [(kept.sequence_number, kept.error_class) for kept in world.store.letters()] == [(500, "crash")]
        assert world.ranges[2:] == [(500, 500), (501, 501), (502, 503), (504, 507), (508, 509)]


class TestAMark:
    def test_of_a_process_that_died_counts_in_the_next_process(self) -> None:
        store = MemoryStore()
        for number in range(1, UNFINISHED + 1):
            world = World(store)
            die(world, 0, 0)
            assert world.mark is not None and world.mark.attempts == number
        world = World(store)
        seen, rows_of = begun(world)
        world.ingest(0, 0, rows_of=rows_of)
        assert seen == []
        (letter,) = store.letters()
        assert (letter.error_class, letter.status, letter.error_type) == (
            "crash", "exhausted", "core.errors.ProcessDied",
        )  # fmt: skip

    def test_of_numbers_that_were_committed_meanwhile_says_nothing(self) -> None:
        store = MemoryStore()
        for _ in range(UNFINISHED):
            die(World(store), 0, 9)
        store.commit_batch(commit(store.read_partition(P), 0, 4))
        world = World(store)
        seen, rows_of = begun(world)
        world.ingest(5, 9, rows_of=rows_of)
        assert seen[0] is not None
        assert (seen[0].first, seen[0].last, seen[0].attempts) == (5, 9, 1)

    def test_that_others_set_at_the_same_time_is_read_again_and_not_for_ever(self) -> None:
        class Racing(Store):
            races = 0

            def begin_attempt(self, *given: Any) -> bool:
                state = self.read_partition(P)
                rival = AttemptMark(
                    SequenceNumber(0), SequenceNumber(4), 0, 1, UUID(int=self.races + 1), EPOCH, "rival"
                )
                if self.races < limit:
                    super().begin_attempt(state, rival, self.read_attempt(state))
                    self.races += 1
                return super().begin_attempt(*given)

        for limit in (RACES - 1, RACES):
            world = World()
            own = Racing(world.store.database)
            journal = StoredJournal(own, stamps(3), nullcontext())
            world.means = replace(world.means, journal=journal)
            with suppress(StoreUnavailable):
                world.ingest(0, 4)
            assert (own.races, world.ranges) == (limit, [(0, 4)] if limit < RACES else [])


def test_only_attempts_at_numbers_that_have_died_take_turns() -> None:
    held: list[str] = []

    class Turns:
        def __enter__(self) -> None:
            held.append("taken")

        def __exit__(self, *fault: object) -> None:
            held.append("given")

    store = MemoryStore()
    die(World(store), 0, 9)
    world = World(store)
    world.means = replace(world.means, journal=StoredJournal(Store(world.noted), stamps(), Turns()))
    world.ingest(0, 9)
    assert held == ["taken", "given"]
    world.ingest(10, 19, is_retry=True)
    ingest_batch(EventBatch(partition("1"), events(0, 4), "call"), replace(world.means, healing=Healing(MemoryHub({}))))
    assert held == ["taken", "given"]
