"""Each name of a user fits its column: the check at the declaration and the schema have one length."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from core.aggregation.lake_tables import ROWS
from core.aggregation.runs import overflow_text
from core.transforms.contract import LONGEST, LONGEST_TABLE, VERSION_LENGTH, fault_of_table
from hubledger.cli.scaffold.design import LONGEST_ROOM
from tests.fakes.engines import SqliteEngine
from tests.fakes.lengths import lengths
from tests.offenders import holds_for

LONGEST_AGGREGATE = LONGEST_TABLE - len("_staged")
LEVELS = (
    14  # a finest of less than a second, one second, and the twelve prime factors of a day: core/model/aggregates.py
)
NAMES = ["a" * LONGEST_AGGREGATE] * LEVELS
BLOB = f"abfss://{'c' * 63}@{'a' * 24}.dfs.core.windows.net/{'p' * 1024}"  # the longest address of a blob
LONGEST_TEXTS = {  # the longest text that the checks let a user choose, by the column that holds it
    ("aggregation_run", "job"): f"{ROWS}{'a' * LONGEST_TABLE}",
    ("aggregation_cut", "job"): f"{ROWS}{'a' * LONGEST_TABLE}",
    ("staged_slice", "level"): NAMES[0],
    ("retracted_row", "table_name"): "a" * LONGEST_TABLE,
    ("aggregation_cut", "levels"): " ".join(NAMES),
    ("staged_result", "levels"): json.dumps([[name, 2**63 - 1] for name in NAMES]),
    ("staged_result", "lake_path"): BLOB,
    ("aggregation_run", "lake_path"): BLOB,
    ("staged_result", "overflow"): overflow_text(NAMES[0], "m" * LONGEST, "2026-03-01T10:00:00Z"),
    ("event_hub_dead_letter", "transform_version"): "v" * VERSION_LENGTH,
    ("batch_ledger", "transform_version"): "v" * VERSION_LENGTH,
}


@holds_for(LONGEST_TEXTS)
def test_a_column_holds_the_longest_text_that_a_check_lets_through(place: tuple[str, str]) -> None:
    table, column = place
    assert len(LONGEST_TEXTS[place]) <= lengths()[table][column]


def test_the_longest_aggregate_is_one_and_a_longer_one_is_refused() -> None:
    assert fault_of_table(f"{NAMES[0]}_staged") is None
    assert fault_of_table(f"{NAMES[0]}a_staged") is not None
    assert LONGEST_ROOM + len("_by_hour") <= LONGEST_AGGREGATE


def test_sqlite_refuses_in_tests_what_a_column_of_a_server_does_not_hold(tmp_path: Path) -> None:
    most = lengths()["aggregation_cut"]["job"]
    insert = "INSERT INTO aggregation_cut (job, cut, run_number) VALUES (?, '{}', 0)"
    with closing(sqlite3.connect(SqliteEngine(tmp_path / "store.db").path)) as connection:
        connection.execute(insert, ("a" * most,))
        with pytest.raises(sqlite3.IntegrityError, match=f"aggregation_cut.job holds {most} characters"):
            connection.execute(insert, ("a" * (most + 1),))
        with pytest.raises(sqlite3.IntegrityError, match=r"aggregation_cut\.job holds"):
            connection.execute("UPDATE aggregation_cut SET job = job || 'a'")
