"""The rows of a source for the lake, by JDBC: with their lineage, and as replays removed them."""

from datetime import timedelta
from typing import Any

import pytest

from examples.flight_info.transform import FlightChange
from examples.home_security.transform import SensorReading
from jobs.jdbc_tables import JdbcTables
from jobs.ranges import Slice
from tests.spark.test_jdbc import DERBY, NOON, Derby, Recorder
from tests.sql.gates import gates

DOCUMENT = '{"home_id": "home-1", "ppm": 7}'


def test_rows_are_read_with_their_lineage_and_removed_ones_as_documents(spark: Any) -> None:
    derby = Derby(spark)
    names = "stream_id, partition_id, commit_number, table_name, sequence_number, ordinal, row_commit_number, row"
    for table in ("sensor_reading", "home_alert"):
        derby.run(f"INSERT INTO hubledger.retracted_row ({names}) VALUES (1, '0', 5, '{table}', 3, 0, 2, '{DOCUMENT}')")
    derby.run(f"INSERT INTO hubledger.retracted_row ({names}) VALUES (1, '0', 5, 'sensor_reading', 4, 0, 2, '{{}}')")
    derby.reading(3, 5, at=NOON + timedelta(microseconds=1))
    derby.reading(9, 6)
    tables = JdbcTables(spark, derby.url, dict, DERBY)
    (row,) = tables.lineage_rows(SensorReading, [Slice(1, "0", 1, 9, 2, 5)]).collect()
    assert tuple(row)[:5] == (1, "0", 3, 0, 5)
    assert (row.home_id, row.ppm, row.observed_at) == (
        "home-1",
        5,
        (NOON + timedelta(microseconds=1)).replace(tzinfo=None),
    )
    found = tables.removed_rows(SensorReading, ["commit_number > 4", "commit_number > 5"])
    assert [tuple(row) for row in found.collect()] == [(1, "0", 3, 0, 2, 5, DOCUMENT)]


def test_the_statements_for_sql_server_pass_the_parser() -> None:
    recorder = Recorder()
    tables = JdbcTables(recorder, "jdbc:sqlserver://host", dict)
    for row_class in (SensorReading, FlightChange):
        with pytest.raises(LookupError):
            tables.lineage_rows(row_class, [Slice(1, "it's", 1, 9, 2, 3)])
        with pytest.raises(LookupError):
            tables.removed_rows(row_class, ["commit_number > 4 AND row_commit_number <= 3"])
    assert len(recorder.statements) == 4
    for gate in gates().values():
        assert gate({str(at): text for at, text in enumerate(recorder.statements)}) == {}
