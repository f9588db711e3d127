"""jobs/ranges.py: the slices between two cuts hold every row of the commits between them, once."""

import random
from collections import Counter

from jobs.ranges import MOST_SLICES, CommitSpan, MergedRange, Slice, replayed_spans, slices_of, spans_between
from tests.offenders import holds_for

SPAN = CommitSpan(1, "0", 0, 99)


def batch(number: int, first: int, last: int, rows: int | None = None) -> MergedRange:
    return MergedRange(1, "0", number, "batch", first, last, last - first + 1 if rows is None else rows)


def later(number: int, kind: str, first: int, last: int, rows: int = 1) -> MergedRange:
    return MergedRange(1, "0", number, kind, first, last, rows)


def test_spans_are_the_partitions_that_moved() -> None:
    spans = spans_between('{"1/0":3,"1/1":5}', '{"1/0":3,"1/1":9,"2/10":1}')
    assert spans == [CommitSpan(1, "1", 5, 9), CommitSpan(2, "10", 0, 1)]


def test_batches_are_one_unbroken_range() -> None:
    assert slices_of([SPAN], [batch(1, 0, 9), batch(2, 10, 19)]) == [Slice(1, "0", 0, 19, 0, 99, cut=99)]


def test_a_hot_partition_is_cut_by_rows_at_the_borders_of_commits() -> None:
    ledger = [batch(number, number * 10, number * 10 + 9) for number in range(10)]
    slices = slices_of([SPAN], ledger, rows_each=25)
    assert [(one.first, one.last) for one in slices] == [(0, 29), (30, 59), (60, 89), (90, 99)]


def test_a_long_history_is_cut_into_few_slices() -> None:
    ledger = [batch(number, number * 50_000, number * 50_000 + 49_999, 10**6) for number in range(2_000)]
    slices = slices_of([SPAN], ledger)
    assert len(slices) <= MOST_SLICES
    assert (slices[0].first, slices[-1].last) == (0, 2_000 * 50_000 - 1)


def test_what_a_retry_wrote_is_asked_for_before_the_batches_only_and_where_letters_are() -> None:
    ledger = [later(3, "retry", 2, 60), batch(4, 50, 59)]
    assert slices_of([SPAN], ledger) == [
        Slice(1, "0", 50, 59, 0, 99, cut=99),
        Slice(1, "0", 2, 49, 2, 3, letters_only=True, cut=99),
    ]


def test_a_retry_within_the_batches_and_one_that_wrote_nothing_are_not_asked_for() -> None:
    assert len(slices_of([SPAN], [batch(1, 0, 9), later(2, "retry", 3, 5), later(3, "retry", 0, 9, rows=0)])) == 1
    assert slices_of([SPAN], [later(2, "retry", 3, 5, rows=0)]) == []


def test_without_batches_a_replay_is_asked_for_whole() -> None:
    ledger = [later(7, "replay", 3, 8)]
    assert slices_of([SPAN], ledger) == [Slice(1, "0", 3, 8, 6, 7, cut=99)]


def test_only_a_span_with_a_replay_can_have_removed_rows() -> None:
    spans = [SPAN, CommitSpan(1, "1", 0, 9), CommitSpan(2, "0", 0, 9)]
    ledger = [batch(1, 0, 9), later(2, "retry", 0, 9), MergedRange(2, "0", 3, "replay", 0, 9, 0)]
    assert replayed_spans(spans, ledger) == [spans[2]]


def test_a_span_without_commits_has_no_slice() -> None:
    assert slices_of([SPAN], []) == []


@holds_for(range(200))
def test_every_row_of_the_commits_is_in_one_slice_and_no_other_row_in_any(seed: int) -> None:
    chance = random.Random(seed)
    rows: dict[int, tuple[int, str]] = {}  # sequence number: the commit that wrote its row, and its kind
    letters: set[int] = set()
    ledger: list[MergedRange] = []
    end = 0
    for number in range(1, chance.randrange(2, 30)):
        kind = chance.choice(["batch", "batch", "retry", "replay"]) if end else "batch"
        if kind == "batch":
            length = chance.randrange(1, 8)
            failed = {at for at in range(end, end + length) if chance.random() < 0.3}
            letters |= failed
            rows |= {at: (number, kind) for at in range(end, end + length) if at not in failed}
            ledger.append(batch(number, end, end + length - 1, length - len(failed)))
            end += length
        else:
            pool = sorted(letters - rows.keys()) if kind == "retry" else list(range(end))
            chosen = sorted(chance.sample(pool, min(len(pool), chance.randrange(1, 4))))
            if chosen:
                rows |= dict.fromkeys(chosen, (number, kind))
                ledger.append(later(number, kind, chosen[0], chosen[-1], len(chosen)))
    begin, stop = sorted((chance.randrange(0, 30), chance.randrange(0, 30)))
    span = CommitSpan(1, "0", begin, stop)
    within = [one for one in ledger if begin < one.commit_number <= stop]
    found = Counter(
        at
        for one in slices_of([span], within, rows_each=chance.choice([1, 5, 1000]))
        for at, (number, _) in rows.items()
        if one.first <= at <= one.last and one.after < number <= one.up_to and (at in letters or not one.letters_only)
    )
    assert found == Counter(at for at, (number, _) in rows.items() if begin < number <= stop)
