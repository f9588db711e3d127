"""bench/size/scaling.py: every batch of a line is committed once, after the rows that stand."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bench.figures import Figure, Table
from bench.large_store import PARTITIONS
from bench.samples import SIZE
from bench.size.scaling import with_partitions, with_rows
from bench.size.standing import fill_rows

COUNTS = "SELECT COUNT(*), COUNT(DISTINCT partition_id) FROM sensor_reading"
HOLES = """
SELECT COUNT(*) FROM batch_ledger AS l WHERE kind = 'batch' AND first_sequence_number > 0 AND NOT EXISTS (
    SELECT 1 FROM batch_ledger AS b
    WHERE b.partition_id = l.partition_id AND b.last_sequence_number = l.first_sequence_number - 1)
"""


def counts(path: Path) -> tuple[int, int, int]:
    with closing(sqlite3.connect(path)) as connection:
        rows, partitions = connection.execute(COUNTS).fetchone()
        return rows, partitions, connection.execute(HOLES).fetchone()[0]


def test_each_line_has_its_partitions_and_all_its_batches(tmp_path: Path) -> None:
    table, figure = with_partitions(tmp_path, (1, 3), 6)
    assert isinstance(table, Table)
    assert isinstance(figure, Figure)
    assert [row[0] for row in table.rows] == [1, 3]
    assert [counts(tmp_path / f"{number}.db") for number in (1, 3)] == [(7 * SIZE, 1, 0), (9 * SIZE, 3, 0)]


@pytest.mark.slow
def test_batches_follow_the_rows_that_stand(tmp_path: Path) -> None:
    standing = (16_000, 32_000)
    table, figure = with_rows(tmp_path, standing, 4)
    assert isinstance(table, Table)
    assert isinstance(figure, Figure)
    added = (PARTITIONS + 4) * SIZE
    assert [counts(tmp_path / f"{number}.db") for number in standing] == [(n + added, 16, 0) for n in standing]


def test_a_filled_store_has_its_rows_in_ranges_without_a_hole(tmp_path: Path) -> None:
    assert fill_rows(tmp_path / "store.db", 8_000) == SIZE
    assert counts(tmp_path / "store.db") == (8_000, PARTITIONS, 0)
