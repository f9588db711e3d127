import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from msgspec import structs

from core.errors import DataRefused, HubUnreachable, InfrastructureFault, LetterConflict
from core.letters.retry import Keeper, claim_due, next_due_at, release, retry_chunk
from core.model.commits import ROWS_AT_ONCE
from core.model.events import Event, Partition, PartitionId, SequenceNumber
from core.model.letters import Backoff, LetterPolicy, LetterPosition, RetryReport
from core.model.ports import Clock
from core.model.rows import References, Row
from core.model.transforms import Transform
from core.settle.attempts import StoredJournal
from core.settle.settle import EventKilled
from examples.home_security.transform import SensorReading
from tests.fakes.builders import NOON, STREAM, FakeClock, commit, event, home, ids, keep_letters, partition, settled
from tests.fakes.faulty_database import Fault, FaultyStore, Killed
from tests.fakes.kept import KeptLetter
from tests.fakes.plain_transform import PLAIN
from tests.fakes.replaying import requeue
from tests.fakes.store import MemoryStore, Store

LEASE = timedelta(seconds=300)
CALLS = ["claim_letters", "begin_chunk", "commit_retry"]


def at(*numbers: int) -> list[LetterPosition]:
    return [LetterPosition(PartitionId("0"), SequenceNumber(number)) for number in numbers]


def counts(report: RetryReport) -> dict[str, int]:
    names = ("resolved", "waiting", "exhausted", "released", "lost")
    return {name: getattr(report, name) for name in names if getattr(report, name)}


class World:
    """Keepers over one database in memory, on a fake clock, with a hub that may be `down` or slow."""

    def __init__(self, *faults: Fault | None, transform: Transform = PLAIN, attempts: int = 8) -> None:
        self.clock = FakeClock()
        self.inner = MemoryStore()
        self.events: dict[int, Event] = {}
        self.asked: list[int] = []
        self.down = False
        self.takes: Callable[[], None] = lambda: None  # time, for an answer of the hub
        self.faulty = FaultyStore(self.inner, on_letters=faults)
        self.policy = LetterPolicy(Backoff(attempts=attempts), chunk=10, fan_out=3)
        self.keeper = self.another(self.faulty, transform)

    def find_event(self, _: Partition, number: SequenceNumber) -> Event | None:
        self.asked.append(number)
        self.takes()
        if self.down:
            raise HubUnreachable("the hub does not answer")
        return self.events.get(number)

    def another(self, store: Store | None = None, transform: Transform = PLAIN, seed: int = 0) -> Keeper:
        source = iter(ids(seed + 100))
        stamps = Clock(self.clock.now, lambda: next(source))
        return Keeper(STREAM, store or self.inner, transform, self.find_event, stamps, self.policy)

    def round(self, keeper: Keeper | None = None) -> list[RetryReport]:
        own = keeper or self.keeper
        return [retry_chunk(chunk, own, "retry-1") for chunk in claim_due(own)]

    def run_until_settled(self, transform: Transform = PLAIN, store: Store | None = None) -> None:
        """Run one process after the other until no letter waits."""
        for turn in range(30):
            own = self.another(store, transform, turn)
            due = next_due_at(own)
            if due is None:
                return
            self.clock.advance(max(0.0, (due - self.clock.now()).total_seconds()))
            with suppress(Killed):
                self.round(own)
        raise AssertionError("it never ends")

    def letter(self, number: int = 0) -> KeptLetter:
        return self.inner.letters()[number]

    def statuses(self) -> list[str]:
        return [kept.status for kept in self.inner.letters()]

    def readings(self) -> list[int]:
        return [kept.sequence_number for kept in self.inner.rows(SensorReading)]


@pytest.mark.parametrize(("chunk", "letters", "claimed"), [(10, 100, 30), (1_000, ROWS_AT_ONCE + 1, ROWS_AT_ONCE)])
def test_a_claim_takes_no_more_than_its_chunks_hold(chunk: int, letters: int, claimed: int) -> None:
    world = World()
    keep_letters(world.inner, dict.fromkeys(range(letters), "quiet"))
    chunks = claim_due(replace(world.keeper, letters=replace(world.policy, chunk=chunk)))
    assert sum(len(one.sequence_numbers) for one in chunks) == claimed
    assert max(len(one.sequence_numbers) for one in chunks) <= chunk


def test_a_chunk_is_read_decided_and_written_once_and_says_why_each_letter_is_settled() -> None:
    world = World(attempts=2)
    keep_letters(world.inner, {0: "double a", 1: "quiet", 2: "bug", 3: "poison", 4: "home b 1"})
    (report,) = world.round()
    assert counts(report) == {"resolved": 3, "exhausted": 2}
    assert (report.commits, report.rows_written) == (1, 3)
    assert world.faulty.calls == ["claim_letters", "read_partition", "begin_chunk", "commit_retry"]
    assert [(kept.status, kept.settled_why) for kept in world.inner.letters()] == [
        ("resolved", "its rows were written"),
        ("resolved", "it was filtered"),
        ("exhausted", "it failed 2 times"),
        ("exhausted", "poison: not tried again"),
        ("resolved", "its rows were written"),
    ]


def test_a_chunk_asks_for_its_references_in_one_call_and_sees_what_an_earlier_letter_writes() -> None:
    world = World()
    world.inner.commit_batch(commit(world.inner.read_partition(partition("1")), 0, 0, settled({0: [home("a")]})))
    keep_letters(world.inner, {0: "look a", 1: "look a", 2: "look nobody", 3: "home b 1", 4: "look b"})
    (report,) = world.round()
    assert counts(report) == {"resolved": 4, "waiting": 1}
    assert world.faulty.calls.count("read_references") == 1
    assert world.letter(2).error_class == "reference"


def test_pauses_grow_until_the_attempts_are_spent() -> None:
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


@pytest.mark.parametrize("bad", [{9}, {2, 3}, {0, 9}, set(range(10)), set()], ids=str)
def test_refused_rows_are_halved_until_the_bad_letters_stand_alone(bad: set[int]) -> None:
    world = World()
    keep_letters(world.inner, {number: f"{'huge' if number in bad else 'reading'} {number}" for number in range(10)})
    (report,) = world.round()
    assert (report.resolved, report.waiting) == (10 - len(bad), len(bad))
    assert world.readings() == [number for number in range(10) if number not in bad]
    assert world.faulty.calls.count("commit_retry") <= 1 + 9 * len(bad)
    for number in bad:
        kept = world.letter(number)
        assert (kept.error_class, kept.attempts, "too large" in kept.error) == ("refused", 2, True)


def test_letters_that_cannot_be_settled_are_released_where_they_are_refused_and_else_are_the_callers() -> None:
    def settle_with(fault: Exception) -> tuple[MemoryStore, Keeper]:
        class Stubborn(MemoryStore):
            def commit_retry(self, commit: object) -> int:
                raise fault

        store = Stubborn()
        keep_letters(store, dict.fromkeys(range(3), "reading a"))
        return store, World().another(store)

    refusing, keeper = settle_with(DataRefused("no letter can be written"))
    assert [counts(report) for report in World().round(keeper)] == [{"released": 3}]
    conflicting, keeper = settle_with(LetterConflict(partition(), "claim"))
    with pytest.raises(LetterConflict):
        World().round(keeper)
    for store in (refusing, conflicting):
        assert [kept.status for kept in store.letters()] == ["waiting"] * 3


class TestProcessKillers:
    """Letters whose claims are lost are tried alone, and after three lone tries for an operator."""

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
        world.run_until_settled(world.keeper.transform, world.faulty)

    def test_are_set_aside_for_a_person_after_three_tries_alone_and_take_no_other_letter_with_them(self) -> None:
        world = self.world()
        keep_letters(world.inner, {3: "kill"}, status="held", due_at=None)
        self.keep(world)
        assert self.deaths == 5  # one of them with both claimed
        for number, attempts in ((1, 2), (3, 1)):  # what was held until now counts what was tried
            killer = world.letter(number)
            assert (killer.status, killer.error_class, killer.attempts) == ("exhausted", "crash", attempts)
            slow_too = r"^the process died, or took longer than the lease of \d+ s \(DEAD_LETTER_LEASE_SECONDS\), each"
            assert re.match(slow_too, killer.error)
            assert killer.settled_why == killer.error
        assert (world.statuses()[0], world.statuses()[2], world.readings()) == ("resolved", "resolved", [0, 2])

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

    def test_are_tried_again_when_an_operator_asks_and_forgiven_when_they_stop_killing(self) -> None:
        world = self.world(kills=4)
        self.keep(world)
        assert (world.letter(1).status, self.deaths) == ("exhausted", 3)
        assert requeue(at(1), world.keeper) == tuple(at(1))
        self.keep(world)
        assert (world.letter(1).status, world.letter(1).lost_claims, self.deaths) == ("resolved", 0, 4)


def test_letters_that_lost_a_claim_run_in_a_child_and_one_that_kills_it_is_exhausted_at_once() -> None:
    """Here a child is a transform that names the event which killed it."""
    world = World()
    keep_letters(world.inner, {0: "reading a", 1: "kill", 2: "reading c", 3: "bug"})
    alone: list[int] = []
    marked: list[int] = []  # how many tries were marked when each got its child

    @contextmanager
    def in_child(transform: Transform, look_again: object) -> Iterator[Transform]:
        def rows_of(event: Event, references: References) -> Iterable[Row]:
            alone.append(event.sequence_number)
            if event.body == b"kill":
                raise EventKilled(event.sequence_number, "its process ended by SIGSEGV")
            return transform.rows_of(event, references)

        marked.append(world.faulty.calls.count("begin_lone_try"))
        yield replace(transform, rows_of=rows_of)

    world.keeper = replace(world.keeper, journal=StoredJournal(world.faulty, world.keeper.clock, in_child))
    claim_due(world.keeper)
    assert alone == []
    world.clock.advance(LEASE.total_seconds())
    for report in world.round():
        assert sum(counts(report).values()) >= 1
    assert alone == [0, 1, 2, 3]
    assert marked[0] == 0  # the lease begins when the child is there
    assert world.statuses() == ["resolved", "exhausted", "resolved", "waiting"]
    killer = world.letter(1)
    assert (killer.error_class, killer.error_type) == ("crash", "core.errors.ProcessDied")
    assert killer.error == "its process ended by SIGSEGV"
    alone.clear()
    requeue(at(1), world.keeper)
    world.round()
    assert (alone, world.letter(1).status) == ([1], "exhausted")


@pytest.fixture
def bodiless() -> World:
    """Three letters whose bodies only the hub has, and one whose body was kept."""
    world = World()
    bodies = {0: "reading a", 1: "bug", 2: "reading c"}
    keep_letters(world.inner, bodies, keeps_body=False)
    keep_letters(world.inner, {3: "reading d"})
    world.events = {number: event(number, body) for number, body in bodies.items()}
    return world


def test_a_body_that_was_not_kept_is_asked_of_the_hub_and_no_other(bodiless: World) -> None:
    assert counts(bodiless.round()[0]) == {"resolved": 3, "waiting": 1}
    assert (bodiless.asked, bodiless.readings()) == ([0, 1, 2], [0, 2, 3])


def test_an_event_that_left_the_hub_ends_its_letter_with_a_reason(bodiless: World) -> None:
    del bodiless.events[1]
    assert counts(bodiless.round()[0]) == {"resolved": 3, "exhausted": 1}
    kept = bodiless.letter(1)
    assert (kept.status, kept.attempts, kept.error_class) == ("exhausted", 1, "unknown")
    assert kept.settled_why == "the event left the hub, and its body was not stored"


def test_an_event_of_a_different_hub_is_not_that_of_the_letter_which_waits_uncounted(bodiless: World) -> None:
    bodiless.events[1] = event(1, "reading b", at=NOON)
    assert counts(bodiless.round()[0]) == {"resolved": 2, "released": 2}
    assert [(kept.status, kept.attempts) for kept in bodiless.inner.letters()[1:3]] == [("waiting", 1)] * 2


def test_letters_without_bodies_wait_uncounted_while_the_hub_is_down_and_hold_up_no_other(bodiless: World) -> None:
    bodiless.down = True
    assert counts(bodiless.round()[0]) == {"resolved": 1, "released": 3}
    assert bodiless.asked == [0]
    for kept in bodiless.inner.letters()[:3]:
        assert (kept.status, kept.attempts, kept.due_at) == ("waiting", 1, NOON + timedelta(seconds=30))
    assert {kept.sequence_number for kept in bodiless.inner.attempts()} == {3}


def test_what_a_slow_hub_leaves_is_of_the_next_round(bodiless: World) -> None:
    bodiless.takes = partial(bodiless.clock.advance, 9.0)
    assert counts(bodiless.round()[0])["released"] == 1
    assert bodiless.asked == [0, 1]


@pytest.mark.parametrize(("fault", "again"), [(Fault.UNANSWERED, []), (Fault.LOST, ["commit_retry"])])
def test_a_commit_without_an_answer_is_counted_where_it_stands_and_made_again_where_not(
    fault: Fault, again: list[str]
) -> None:
    world = World(None, None, fault)
    keep_letters(world.inner, {0: "reading a", 1: "bug"})
    (report,) = world.round()
    assert counts(report) == {"resolved": 1, "waiting": 1}
    assert (report.commits, report.rows_written, len(world.inner.retries())) == (1, 1, 1)
    assert world.faulty.calls == ["claim_letters", "read_partition", *CALLS[1:], "find_letters", *again]


@pytest.mark.parametrize(
    ("faults", "status", "due"),
    [
        pytest.param([None, None, *[Fault.LOST, None] * 20], "waiting", 30, id="answers that are lost for ever"),
        pytest.param([None, None, Fault.NOT_REACHED], "waiting", 30, id="a short outage: it is released"),
        pytest.param([None, *[Fault.NOT_REACHED] * 9], "retrying", 300, id="a long one: its lease ends"),
    ],
)
def test_an_outage_is_the_callers_and_its_letter_tries_again(faults: list[Fault | None], status: str, due: int) -> None:
    world = World(*faults)
    keep_letters(world.inner, {0: "reading a"})
    with pytest.raises(InfrastructureFault):
        world.round()
    kept = world.letter()
    assert (kept.status, kept.attempts, kept.due_at) == (status, 1, NOON + timedelta(seconds=due))
    world.run_until_settled()
    assert world.statuses() == ["resolved"]


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.UNANSWERED])
def test_a_release_whose_answer_is_lost_is_sent_again_and_counts_once(fault: Fault) -> None:
    world = World(None, fault)
    keep_letters(world.inner, {0: "reading a"})
    (chunk,) = claim_due(world.keeper)
    assert (release(chunk, world.keeper), world.statuses()) == (1, ["waiting"])
