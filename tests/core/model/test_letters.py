import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert, to_builtins

from core.model import letters
from core.model.events import PartitionId, SequenceNumber
from core.model.letters import MOVES, Backoff, ClaimedPosition, LetterChunk, RetryReport, chunks_of

EDGES = {(move, source, allowed.target) for move, allowed in MOVES.items() for source in allowed.sources}


def test_the_table_of_moves_is_this() -> None:
    table: dict[str, dict[str, str]] = {}
    for move, source, target in EDGES:
        table.setdefault(move, {})[source] = target
    stopped = ("waiting", "retrying", "exhausted")
    assert table == {
        "claim": {"waiting": "retrying", "retrying": "retrying"},
        "resolve": {"retrying": "resolved"},
        "fail": {"retrying": "waiting"},
        "exhaust": {"waiting": "exhausted", "retrying": "exhausted"},
        "release": {"retrying": "waiting"},
        "requeue": {"waiting": "waiting", "exhausted": "waiting"},
        "discard": dict.fromkeys((*stopped, "held"), "discarded"),
        "free": {"held": "waiting"},
        "hold": dict.fromkeys(stopped, "held"),
    }


def claimed(place: str, number: int, lost: int = 0) -> ClaimedPosition:
    return ClaimedPosition(letters.LetterPosition(PartitionId(place), SequenceNumber(number)), lost)


def cut(given: list[ClaimedPosition], most: int = 100) -> list[tuple[str, tuple[int, ...], bool]]:
    return [(one.partition_id, one.sequence_numbers, one.alone) for one in chunks_of(given, "claim-1", most)]


def test_a_claim_is_cut_by_partition_in_order_of_position_into_chunks_that_are_not_too_long() -> None:
    given = [claimed("1", 9), claimed("0", 7), claimed("1", 2), claimed("0", 3)]
    assert cut(given) == [("0", (3, 7), False), ("1", (2, 9), False)]
    lost = [claimed("0", 1, lost=1), claimed("0", 2), claimed("1", 3, lost=2), claimed("1", 4)]  # apart, and last
    assert cut(lost) == [("0", (2,), False), ("1", (4,), False), ("0", (1,), True), ("1", (3,), True)]
    for count, sizes in ((0, []), (1, [1]), (3, [3]), (4, [3, 1]), (9, [3, 3, 3])):
        chunks = cut([claimed("0", number) for number in range(count)], most=3)
        assert [len(numbers) for _, numbers, _ in chunks] == sizes
        assert [number for _, numbers, _ in chunks for number in numbers] == list(range(count))


@pytest.mark.parametrize("alone", [True, False])
def test_a_chunk_goes_through_json_and_comes_back_as_does_a_report(alone: bool) -> None:
    chunk = LetterChunk(PartitionId("31"), (SequenceNumber(0), SequenceNumber(2**63 - 1)), "claim-1", alone)
    assert convert(json.loads(json.dumps(to_builtins(chunk))), LetterChunk) == chunk
    told = {"partition_id": "3", "resolved": 2, "waiting": 1, "commits": 1, "rows_written": 4}
    facts = RetryReport(PartitionId("3"), resolved=2, waiting=1, commits=1, rows_written=4).facts()
    assert json.loads(json.dumps(facts)) == told | dict.fromkeys(("exhausted", "released", "lost"), 0)


def seconds(*values: float) -> list[timedelta]:
    return [timedelta(seconds=each) for each in values]


def test_the_longest_pause_doubles_from_thirty_seconds_up_to_an_hour_and_eight_attempts_are_all_there_are() -> None:
    longest = [Backoff().longest(attempts) for attempts in range(-1, 10)]
    assert longest == seconds(30, 30, 30, 60, 120, 240, 480, 960, 1920, 3600, 3600)
    assert [Backoff().is_spent(attempts) for attempts in (0, 7, 8, 9)] == [False, False, True, True]
    assert [Backoff().pause(3, chance) for chance in (0.0, 0.25, 0.5, 1.0)] == seconds(0, 30, 60, 120)
    own = Backoff(base=timedelta(seconds=1), ceiling=timedelta(seconds=20), attempts=3, factor=3.0)
    assert [own.longest(attempts) for attempts in range(1, 6)] == seconds(1, 3, 9, 20, 20)
    assert own.is_spent(3)
    assert {Backoff(base=timedelta(0)).longest(attempts) for attempts in (1, 8, 10**6)} == {timedelta(0)}


SPANS = st.timedeltas(timedelta(0), timedelta(days=7))
CHANCES = st.floats(0, 1)
ATTEMPTS = st.integers(0, 10**6)


@st.composite
def policies(draw: st.DrawFn) -> Backoff:
    base, ceiling = sorted([draw(SPANS), draw(SPANS)])
    return Backoff(base, ceiling, draw(st.integers(1, 100)), draw(st.floats(1, 1000)))


@given(policies(), ATTEMPTS, CHANCES)
def test_a_pause_lies_between_nothing_and_the_ceiling(policy: Backoff, attempts: int, chance: float) -> None:
    assert timedelta(0) <= policy.pause(attempts, chance) <= policy.longest(attempts) <= policy.ceiling
