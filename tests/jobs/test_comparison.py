"""jobs/rebuild_aggregate.py: the run and the cut at which each slice is compared."""

from datetime import date

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install -r jobs/requirements.txt")

from core.model.aggregates import EPOCH, SLICES
from jobs.rebuild_aggregate import NO_RUN, ComparedTable, targets
from jobs.tables import Run, later_where, newest_where, run_of

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
