"""core/model/letters.py: the table of moves, the policy of each class, and what travels through an orchestration."""

import json
from typing import get_args

import pytest
from msgspec import convert, to_builtins

from core.model.commits import ErrorClass, LetterStatus
from core.model.events import PartitionId, SequenceNumber
from core.model.letters import (
    AFTER_FAILURE,
    MOVES,
    ClaimedPosition,
    LetterChunk,
    LetterPolicy,
    LetterPosition,
    Move,
    RetryReport,
    chunks_of,
)

STATUSES: set[str] = set(get_args(LetterStatus))
END = {"resolved", "discarded"}


def edges() -> set[tuple[str, str, str]]:
    return {(move, source, allowed.target) for move, allowed in MOVES.items() for source in allowed.sources}


def test_the_table_of_moves_is_this() -> None:
    assert edges() == {
        ("claim", "waiting", "retrying"),
        ("claim", "retrying", "retrying"),
        ("resolve", "retrying", "resolved"),
        ("fail", "retrying", "waiting"),
        ("exhaust", "waiting", "exhausted"),
        ("exhaust", "retrying", "exhausted"),
        ("release", "retrying", "waiting"),
        ("requeue", "waiting", "waiting"),
        ("requeue", "exhausted", "waiting"),
        ("discard", "waiting", "discarded"),
        ("discard", "retrying", "discarded"),
        ("discard", "exhausted", "discarded"),
        ("discard", "held", "discarded"),
        ("free", "held", "waiting"),
        ("hold", "waiting", "held"),
        ("hold", "retrying", "held"),
        ("hold", "exhausted", "held"),
    }


def test_every_move_and_every_status_is_in_the_table() -> None:
    assert set(MOVES) == set(get_args(Move))
    assert {status for _, source, target in edges() for status in (source, target)} == STATUSES


def test_nothing_leaves_an_end_and_an_end_can_be_reached_from_everywhere() -> None:
    assert {source for _, source, _ in edges()} == STATUSES - END
    for start in STATUSES - END:
        reached, frontier = {start}, {start}
        while frontier:
            frontier = {target for _, source, target in edges() if source in frontier} - reached
            reached |= frontier
        assert reached & END == END


def test_a_letter_is_resolved_only_while_it_is_retried() -> None:
    assert {source for _, source, target in edges() if target == "resolved"} == {"retrying"}


def test_every_class_has_a_policy_that_a_retry_may_follow() -> None:
    assert set(AFTER_FAILURE) == set(get_args(ErrorClass))
    assert {AFTER_FAILURE[each] for each in ("poison", "crash")} == {"exhausted"}
    assert {AFTER_FAILURE[each] for each in ("reference", "refused", "unknown")} == {"waiting"}
    after_a_try = {target for _, source, target in edges() if source == "retrying"}
    assert set(AFTER_FAILURE.values()) <= after_a_try


def claimed(place: str, number: int, lost: int = 0) -> ClaimedPosition:
    return ClaimedPosition(LetterPosition(PartitionId(place), SequenceNumber(number)), lost)


def cut(given: list[ClaimedPosition], most: int = 100) -> list[tuple[str, tuple[int, ...], bool]]:
    return [(one.partition_id, one.sequence_numbers, one.alone) for one in chunks_of(given, "claim-1", most)]


def test_a_claim_is_cut_by_partition_in_order_of_position() -> None:
    given = [claimed("1", 9), claimed("0", 7), claimed("1", 2), claimed("0", 3)]
    assert cut(given) == [("0", (3, 7), False), ("1", (2, 9), False)]


@pytest.mark.parametrize(("count", "sizes"), [(0, []), (1, [1]), (3, [3]), (4, [3, 1]), (9, [3, 3, 3])])
def test_no_chunk_is_longer_than_it_may_be_and_none_is_empty(count: int, sizes: list[int]) -> None:
    chunks = cut([claimed("0", number) for number in range(count)], most=3)
    assert [len(numbers) for _, numbers, _ in chunks] == sizes
    assert [number for _, numbers, _ in chunks for number in numbers] == list(range(count))


def test_letters_that_lost_a_claim_are_apart_and_last() -> None:
    given = [claimed("0", 1, lost=1), claimed("0", 2), claimed("1", 3, lost=2), claimed("1", 4)]
    assert cut(given) == [("0", (2,), False), ("1", (4,), False), ("0", (1,), True), ("1", (3,), True)]


@pytest.mark.parametrize("alone", [True, False])
def test_a_chunk_goes_through_json_and_comes_back(alone: bool) -> None:
    numbers = (SequenceNumber(0), SequenceNumber(2**63 - 1))
    chunk = LetterChunk(PartitionId("31"), numbers, "claim-1", alone)
    assert convert(json.loads(json.dumps(to_builtins(chunk))), LetterChunk) == chunk


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"partition_id": "0", "claimed_by": "x"},
        {"partition_id": "0", "claimed_by": "x", "sequence_numbers": 5},
        {"partition_id": "0", "claimed_by": "x", "sequence_numbers": ["one"]},
        {"partition_id": "0", "claimed_by": "x", "sequence_numbers": [None]},
    ],
)
def test_what_is_no_chunk_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        convert(given, LetterChunk)


def test_a_report_is_small_json_of_counts() -> None:
    report = RetryReport(PartitionId("3"), resolved=2, waiting=1, commits=1, rows_written=4)
    assert json.loads(json.dumps(report.facts())) == {
        "partition_id": "3", "resolved": 2, "waiting": 1, "exhausted": 0, "released": 0, "lost": 0, "commits": 1,
        "rows_written": 4,
    }  # fmt: skip


def test_the_policy_without_settings_is_the_one_of_the_design() -> None:
    policy = LetterPolicy()
    assert (policy.keep_bodies, policy.chunk, policy.fan_out, policy.lease.total_seconds()) == (True, 100, 16, 300)
