import random
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import date

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install -r jobs/requirements.txt")

from core.model.aggregates import EPOCH, SLICES
from jobs import ranges as jobs_ranges
from jobs.ranges import LEDGER, MOST_SLICES, CommitSpan, MergedRange, Slice, ledger_query, slices_of, spans_between
from jobs.rebuild_aggregate import NO_RUN, ComparedTable, targets
from jobs.tables import Run, later_where, newest_where, run_of
from tests.offenders import holds_for

Row = tuple[int, str, int, str, int, int, int]
Checkpoint = tuple[int, str, int, int, int]


SCHEMA = """
CREATE TABLE batch_ledger (stream_id, partition_id, commit_number INTEGER, kind, first_sequence_number INTEGER,
    last_sequence_number INTEGER, rows_written INTEGER);
CREATE TABLE event_hub_checkpoint (stream_id, partition_id, purged_commit INTEGER,
    first_sequence_number INTEGER, purged_to INTEGER);
"""
SPAN = CommitSpan(1, "0", 0, 99)


def read(rows: list[Row], *spans: CommitSpan, purged: Checkpoint = (1, "0", 0, 0, -1)) -> list[MergedRange]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        connection.execute("INSERT INTO event_hub_checkpoint VALUES (?, ?, ?, ?, ?)", purged)
        connection.executemany("INSERT INTO batch_ledger VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        found = connection.execute(ledger_query(spans)).fetchall()
    return sorted((MergedRange(*one) for one in found), key=lambda one: one.commit_number)


def batch(number: int, first: int, last: int, of: str = "0") -> Row:
    return 1, of, number, "batch", first, last, last - first + 1


def merged(number: int, first: int, last: int, rows: int | None = None) -> MergedRange:
    return MergedRange(1, "0", number, "batch", first, last, last - first + 1 if rows is None else rows)


def test_adjacent_batches_are_one_range_and_other_commits_stay_alone() -> None:
    rows = [batch(number, 100 * number, 100 * number + 99) for number in range(1, 1_000)]
    rows += [(1, "0", 1_000, "retry", 5, 9, 2), (1, "0", 1_001, "replay", 5, 9, 0), (1, "0", 1_002, "retry", 5, 9, 0)]
    assert read(rows, CommitSpan(1, "0", 2, 2_000)) == [
        MergedRange(1, "0", 499, "batch", 300, 49_999, 49_700),
        MergedRange(1, "0", 999, "batch", 50_000, 99_999, 50_000),
        MergedRange(1, "0", 1_000, "retry", 5, 9, 2),
        MergedRange(1, "0", 1_001, "replay", 5, 9, 0),
    ]


def test_a_span_from_the_first_commit_has_only_its_batches_and_no_removed_row() -> None:
    rows = [batch(1, 0, 9), (1, "0", 2, "replay", 3, 4, 2), batch(1, 0, 9, "it's"), (1, "it's", 2, "replay", 3, 4, 2)]
    spans = [CommitSpan(1, "0", 0, 9), CommitSpan(1, "it's", 1, 9), CommitSpan(2, "0", 1, 9)]
    found = read([*rows, (2, "0", 2, "retry", 0, 9, 10)], *spans)
    assert {(one.stream_id, one.partition_id, one.kind) for one in found} == {
        (1, "0", "batch"),
        (1, "it's", "replay"),
        (2, "0", "retry"),
    }
    assert jobs_ranges.replayed_spans(spans, found) == [spans[1]]


def test_the_checkpoint_has_the_range_of_purged_commits() -> None:
    purged, rows = (1, "0", 9, 100, 120_099), [batch(10, 120_100, 120_109), batch(1, 0, 9, "1")]
    assert read(rows, CommitSpan(1, "0", 0, 20), purged=purged) == [
        MergedRange(1, "0", 9, "batch", 100, 120_099, 120_000),
        MergedRange(1, "0", 10, "batch", 120_100, 120_109, 10),
    ]
    assert [one.commit_number for one in read(rows, CommitSpan(1, "0", 9, 20), purged=purged)] == [10]


def test_a_long_purged_range_becomes_slices_that_hold_each_number_once() -> None:
    purged, after = MergedRange(1, "0", 9, "batch", 100, 10_000_099, 30_000_000), batch(10, 10_000_100, 10_000_109)
    found = slices_of([CommitSpan(1, "0", 0, 20)], [purged, MergedRange(*after)])
    assert [one.first for one in found] == [100, *(one.last + 1 for one in found[:-1])]
    assert (found[-1].last, len(found)) == (10_000_109, 201)
    assert {one.last - one.first + 1 for one in found[:-1]} == {50_000}


def test_spans_are_the_partitions_that_moved() -> None:
    spans = spans_between('{"1/0":3,"1/1":5}', '{"1/0":3,"1/1":9,"2/10":1}')
    assert spans == [CommitSpan(1, "1", 5, 9), CommitSpan(2, "10", 0, 1)]


def test_a_hot_partition_is_cut_by_rows_at_the_borders_of_commits() -> None:
    ledger = [merged(number, number * 10, number * 10 + 9) for number in range(10)]
    slices = slices_of([SPAN], ledger, rows_each=25)
    assert [(one.first, one.last) for one in slices] == [(0, 29), (30, 59), (60, 89), (90, 99)]


def test_a_long_history_is_cut_into_few_slices() -> None:
    ledger = [merged(number, number * 50_000, number * 50_000 + 49_999, 10**6) for number in range(2_000)]
    slices = slices_of([SPAN], ledger)
    assert len(slices) <= MOST_SLICES
    assert (slices[0].first, slices[-1].last) == (0, 2_000 * 50_000 - 1)
    assert len(slices_of([SPAN], [merged(9, 0, 10**13 - 1, 10**9)])) <= MOST_SLICES + 1


def test_what_a_retry_wrote_is_asked_for_before_the_batches_only_and_where_letters_are() -> None:
    ledger = [MergedRange(1, "0", 3, "retry", 2, 60, 1), merged(4, 50, 59)]
    assert slices_of([SPAN], ledger) == [
        Slice(1, "0", 50, 59, 0, 99, cut=99),
        Slice(1, "0", 2, 49, 2, 3, letters_only=True, cut=99),
    ]


@holds_for(range(300))
def test_every_row_of_the_commits_is_in_one_slice_and_no_other_row_in_any(seed: int) -> None:
    """The ranges are those that SQL merges, where the ledger has few commits of many numbers or many of few."""
    chance = random.Random(seed)
    rows: dict[int, tuple[int, str]] = {}  # sequence number: the commit that wrote its row, and its kind
    letters: set[int] = set()
    ledger: list[Row] = []
    end, most = 0, chance.choice([8, 8, 40_000])
    for number in range(1, chance.randrange(2, 30 if most == 8 else 6)):
        kind = chance.choice(["batch", "batch", "retry", "replay"]) if end else "batch"
        if kind == "batch":
            length = chance.randrange(1, most)
            failed = {at for at in range(end, end + length) if chance.random() < 0.3}
            letters |= failed
            rows |= {at: (number, kind) for at in range(end, end + length) if at not in failed}
            ledger.append((1, "0", number, kind, end, end + length - 1, length - len(failed)))
            end += length
        else:
            pool = sorted(letters - rows.keys()) if kind == "retry" else list(range(end))
            chosen = sorted(chance.sample(pool, min(len(pool), chance.randrange(1, 4))))
            if chosen:
                rows |= dict.fromkeys(chosen, (number, kind))
                ledger.append((1, "0", number, kind, chosen[0], chosen[-1], len(chosen)))
    begin, stop = sorted((chance.randrange(0, 30), chance.randrange(0, 30)))
    span = CommitSpan(1, "0", begin, stop)
    within = [one for one in ledger if begin < one[2] <= stop]
    for ranges in (read(ledger, span), [MergedRange(*one) for one in within]):
        found = Counter(
            at
            for one in slices_of([span], ranges, rows_each=chance.choice([1, 5, 1000]) if most == 8 else 1_000)
            for at in range(one.first, one.last + 1)
            if at in rows and one.after < rows[at][0] <= one.up_to and (at in letters or not one.letters_only)
        )
        assert found == Counter(at for at, (number, _) in rows.items() if begin < number <= stop)
    assert f"{', '.join(LEDGER)}," in ledger_query([span])


pytest.importorskip("pyspark", reason="pyspark is not installed: pip install -r jobs/requirements.txt")


COMMITTED = Run("a", "job", 4, '{"1/0":4}', '{"1/0":5}', 1, "committed", 0, EPOCH)


def run(number: int, slices: int, cut: str, status: str = "submitted") -> Run:
    return Run(f"r{number}", "job", number, COMMITTED.cut_to, cut, 1, status, slices, EPOCH)


def test_a_committed_run_is_the_last_of_all_slices_and_without_one_nothing_is_right_in_any() -> None:
    assert targets(None, []) == [ComparedTable(NO_RUN, "{}", 0, SLICES)]
    assert targets(COMMITTED, []) == [ComparedTable(4, COMMITTED.cut_to, 0, SLICES)]


def test_an_open_run_is_the_last_of_the_slices_that_it_has_committed() -> None:
    opened = run(6, 100, '{"1/0":9}')
    assert targets(COMMITTED, [opened]) == [
        ComparedTable(6, '{"1/0":9}', 0, 100),
        ComparedTable(4, COMMITTED.cut_to, 100, SLICES),
    ]
    assert targets(None, [opened])[1] == ComparedTable(NO_RUN, "{}", 100, SLICES)


def test_a_repair_that_failed_halfway_is_the_last_of_its_slices_until_a_later_run_has_them() -> None:
    failed, opened = run(5, 50, COMMITTED.cut_to, "failed"), run(6, 20, '{"1/0":9}')
    found = [(one.number, one.first, one.end) for one in targets(COMMITTED, [failed, opened])]
    assert found == [(6, 0, 20), (5, 20, 50), (4, 50, SLICES)]
    later = run(7, 0, '{"1/0":9}', "committed")
    assert [one.number for one in targets(COMMITTED, [failed, later])] == [7]


def test_a_run_is_read_with_its_days_as_texts_or_as_days() -> None:
    row = ("r", "job", 1, "{}", "{}", 1, "submitted", 0, EPOCH, "repair", "2026-02-01", None, "lake")
    read = run_of(row)
    assert (read.kind, read.days.since, read.days.until, read.rows_from) == ("repair", date(2026, 2, 1), None, "lake")
    assert run_of((*row[:10], date(2026, 2, 1), None, "lake")) == read


def test_the_names_of_jobs_are_quoted() -> None:
    assert "job = 'it''s'" in newest_where("it's", 5)
    assert later_where("it's", 5).startswith("job = 'it''s' AND run_number > 5 AND ")
