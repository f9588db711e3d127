"""core/settle/isolate.py within ingest_batch: refused rows cost their own event a letter, and no other."""

from collections.abc import Iterable
from datetime import timedelta
from math import log2

import pytest

from core.errors import DataRefused, StoreUnavailable
from core.ingest.gaps import GapReading
from core.ingest.ingest import REFUSAL_LIMIT, Ingestion, IngestReport, ingest_batch
from core.model.commits import BatchCommit
from core.model.events import Event
from examples.home_security.transform import Home, SensorReading
from tests.fakes.builders import FakeClock, batch, event, stamps
from tests.fakes.faulty_database import Fault, FaultyStore
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.memory_store import MemoryStore
from tests.fakes.one_pass import assert_equals_one_pass
from tests.fakes.plain_transform import PLAIN
from tests.fakes.store import Store


def log_of(length: int, bad: Iterable[int]) -> list[Event]:
    places = set(bad)
    return [event(number, "huge a" if number in places else "reading a") for number in range(length)]


def ingest(store: Store, given: Iterable[Event], seed: int = 0) -> IngestReport:
    return ingest_batch(batch(given), Ingestion(store, PLAIN, stamps(seed)))


def refused(store: MemoryStore) -> list[int]:
    return [kept.sequence_number for kept in store.letters() if kept.error_class == "refused"]


def steady(store: Store) -> Store:
    return store.remembering(timedelta(hours=1), FakeClock().monotonic)


def edges(length: int) -> list[int]:
    """The ends, the middle and the powers of two, where halving by one too many or too few would show."""
    powers = [2**power + by for power in range(length.bit_length()) for by in (-1, 0, 1)]
    return sorted({place for place in [0, length // 2, length - 2, length - 1, *powers] if 0 <= place < length})


class TestOneRefusedEvent:
    @pytest.mark.parametrize(
        "length", [*(1, 2, 3, 4, 5, 7, 8, 9), *(pytest.param(each, marks=pytest.mark.slow) for each in (100, 600))]
    )
    def test_becomes_a_letter_and_all_others_are_committed(self, length: int) -> None:
        for place in edges(length):
            store, log = MemoryStore(), log_of(length, [place])
            assert ingest(store, log).redelivered == 0
            assert_equals_one_pass(store, {"0": log})
            assert refused(store) == [place]

    @pytest.mark.slow
    def test_costs_twice_the_logarithm_of_the_batch_in_calls_beside_its_refusal_and_its_letter(self) -> None:
        lengths = [*range(1, 34), 63, 64, 65, 127, 128, 129, 255, 256, 257, 600]
        for length in lengths:
            for place in edges(length):
                watched = FaultyStore(MemoryStore())
                ingest(steady(watched), log_of(length, [place]))
                extra = watched.calls.count("commit_batch") - 2
                assert extra <= 2 * log2(length), (length, place)
                assert watched.calls.count("read_partition") == 2  # before and after its anchor

    def test_keeps_the_words_of_the_database(self) -> None:
        store = MemoryStore()
        ingest(store, log_of(50, [17]))
        (kept,) = store.letters()
        assert (kept.error_class, kept.status, kept.error_type) == ("refused", "waiting", "core.errors.RowsRefused")
        assert "too large" in kept.error
        assert kept.body == b"huge a"

    def test_whose_state_is_refused_hides_it_from_later_events(self) -> None:
        store = MemoryStore()
        log = [event(0, "nowhere a"), event(1, "look a"), event(2, "home b 1"), event(3, "look b")]
        ingest(store, log)
        assert_equals_one_pass(store, {"0": log})
        assert [kept.row for kept in store.rows(Home)] == [Home("b", "Europe/Berlin", True)]
        assert [(kept.sequence_number, kept.error_class) for kept in store.letters()] == [
            (0, "refused"),
            (1, "reference"),
        ]


class TestManyRefusedEvents:
    @pytest.mark.parametrize("bad", [[0, 1], [0, 99], [98, 99], [10, 50, 51, 90], range(0, 100, 7), range(40, 60)])
    def test_become_letters_and_all_others_are_committed(self, bad: Iterable[int]) -> None:
        store, log = MemoryStore(), log_of(100, bad)
        ingest(store, log)
        assert_equals_one_pass(store, {"0": log})
        assert refused(store) == list(bad)

    def test_each_keep_their_own_words(self) -> None:
        store, log = MemoryStore(), log_of(100, [10, 30])
        log[30] = event(30, "nowhere b")
        ingest(store, log)
        assert [("too large" in kept.error, "time_zone" in kept.error) for kept in store.letters()] == [
            (True, False),
            (False, True),
        ]

    def test_are_tried_alone_at_once_where_most_events_are_refused(self) -> None:
        watched = FaultyStore(MemoryStore())
        ingest(steady(watched), log_of(150, range(150)))
        assert watched.calls.count("commit_batch") < 2 * 150 + 2 * 10

    @pytest.mark.slow
    def test_are_bounded_in_one_invocation_and_the_next_one_goes_on(self) -> None:
        store, log = MemoryStore(), log_of(500, range(500))
        watched = FaultyStore(store)
        done = [0]
        with pytest.raises(DataRefused):
            ingest(watched, log)
        assert watched.calls.count("commit_batch") <= 2 * REFUSAL_LIMIT + 1
        while done[-1] < 500:
            done.append(len(refused(store)))
            try:
                ingest(store, log, seed=len(done))
            except DataRefused:
                assert len(refused(store)) > done[-1] + 100
        assert_equals_one_pass(store, {"0": log})
        assert len(done) <= 5


class TestTogetherWithOtherTrouble:
    @pytest.mark.parametrize("absent", [(20, 23, 24, 40), (1,), (58,), tuple(range(1, 59, 2)), tuple(range(2, 50))])
    def test_absent_numbers_keep_no_refused_event_from_standing_alone(self, absent: tuple[int, ...]) -> None:
        store = MemoryStore()
        bad = [number for number in (0, 21, 22, 59) if number not in absent]
        given = [each for each in log_of(60, bad) if each.sequence_number not in absent]
        report = ingest_batch(batch(given), Ingestion(store, PLAIN, stamps(), GapReading(MemoryHub({"0": given}))))
        assert [(gap.first, gap.last) for gap in report.gaps] == [(min(absent), max(absent))]
        assert refused(store) == bad
        assert_equals_one_pass(store, {"0": given}, absent={"0": set(absent)})

    @pytest.mark.parametrize("fault", [Fault.UNANSWERED, Fault.LOST, Fault.RIVAL])
    @pytest.mark.parametrize("turn", range(12))
    def test_a_fault_at_any_turn_of_the_halving_changes_nothing(self, fault: Fault, turn: int) -> None:
        store, log = MemoryStore(), log_of(60, [0, 31, 59])

        def rival(inner: Store, commit: BatchCommit) -> None:
            ingest(inner, log[: commit.last.sequence_number + 1], seed=99)

        faults = [*[None] * turn, fault]
        ingest(steady(FaultyStore(store, on_commit=faults, rival=rival)), log)
        assert_equals_one_pass(store, {"0": log})
        assert refused(store) == [0, 31, 59]

    def test_a_rival_that_goes_beyond_the_suspects_ends_the_suspicion(self) -> None:
        store, log = MemoryStore(), log_of(64, [5])

        def rival(inner: Store, _: BatchCommit) -> None:
            ingest(inner, log[:40], seed=99)

        watched = FaultyStore(store, on_commit=[None, None, Fault.RIVAL], rival=rival)
        ingest(watched, log)
        assert watched.calls.count("commit_batch") == 4  # two refusals, the conflict, the rest
        assert_equals_one_pass(store, {"0": log})

    def test_an_outage_keeps_what_was_committed_and_the_next_invocation_goes_on(self) -> None:
        store, log = MemoryStore(), log_of(64, [40])
        with pytest.raises(StoreUnavailable):
            ingest(FaultyStore(store, on_commit=[None, None, Fault.NOT_REACHED]), log)
        assert [(kept.first, kept.last) for kept in store.ledger()] == [(0, 31)]
        assert ingest(store, log, seed=1).redelivered == 32
        assert_equals_one_pass(store, {"0": log})


class TestWhatIsNotTheRows:
    class RefusesLetters(MemoryStore):
        """A database without room for letters."""

        def commit_batch(self, commit: BatchCommit) -> int:
            if commit.settled.letters:
                raise DataRefused("no letters here")
            return super().commit_batch(commit)

    def test_a_letter_that_is_refused_goes_to_the_host_and_what_came_before_it_stands(self) -> None:
        store = self.RefusesLetters()
        with pytest.raises(DataRefused, match="no letters here"):
            ingest(store, log_of(16, [9]))
        assert [kept.sequence_number for kept in store.rows(SensorReading)] == list(range(9))
        assert store.letters() == []

    class RefusesAll(MemoryStore):
        """A database that refuses so many commits, whatever they hold."""

        refusals = 0

        def commit_batch(self, commit: BatchCommit) -> int:
            if self.refusals:
                self.refusals -= 1
                raise DataRefused("no room for anything")
            return super().commit_batch(commit)

    @pytest.mark.parametrize(("refusals", "letters"), [(6, []), (7, [0]), (13, [0])])
    def test_a_refusal_of_all_that_ends_amid_the_search_leaves_a_letter_of_one_good_event_at_most(
        self, refusals: int, letters: list[int]
    ) -> None:
        store = self.RefusesAll()
        store.refusals = refusals
        ingest(store, log_of(64, []))
        assert [(kept.sequence_number, kept.error_class, kept.status) for kept in store.letters()] == [
            (number, "refused", "waiting") for number in letters
        ]
        assert [kept.sequence_number for kept in store.rows(SensorReading)] == list(range(len(letters), 64))

    def test_a_refusal_of_all_that_goes_on_goes_to_the_host_without_a_letter(self) -> None:
        store = self.RefusesAll()
        store.refusals = 14
        with pytest.raises(DataRefused, match="no room for anything"):
            ingest(store, log_of(64, []))
        assert (store.letters(), store.ledger()) == ([], [])

    def test_a_batch_without_refused_rows_costs_one_commit(self) -> None:
        watched = FaultyStore(MemoryStore())
        ingest(watched, log_of(500, []))
        assert watched.calls == ["read_partition", "anchor_partition", "read_partition", "commit_batch"]
