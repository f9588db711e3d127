"""The tables of a server, through Spark's JDBC source. Derby, which is in the wheel, stands in for SQL Server.

Derby has no DATEDIFF_BIG: its tables hold instants as microseconds already. What is sent to SQL Server is parsed.
"""

import json
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from core.aggregation.runs import Days
from core.model.aggregates import aggregate_table
from examples.flight_info.transform import FlightChange
from examples.home_security.aggregates.home_activity import HomeActivity
from examples.home_security.transform import Home, HomeAlert, SensorReading
from jobs.aggregate import Execution, aggregate
from jobs.capture import EVENTS
from jobs.jdbc_tables import JdbcTables, NoSnapshots, ServerWords
from jobs.ranges import CommitSpan, Slice, spans_between
from jobs.tables import Run
from tests.fakes.aggregation_engines import slice_of
from tests.fakes.rooms import all_migrations
from tests.sql.collations import columns_of, conversions
from tests.sql.gates import gates

OF = aggregate_table(HomeActivity)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
AT = EPOCH + timedelta(microseconds=7)
NOON = datetime(2026, 2, 10, 12, tzinfo=UTC)
WINDOW = (
    "readings BIGINT, active BIGINT, ppm_hundredths BIGINT, least_ppm_hundredths BIGINT, most_ppm_hundredths BIGINT"
)
LINEAGE = "stream_id INT, partition_id VARCHAR(40), sequence_number BIGINT, commit_number BIGINT"
TABLES = {
    "aggregation_run": (
        "run_id VARCHAR(40), job VARCHAR(40), run_number BIGINT, cut_from VARCHAR(400), cut_to VARCHAR(400),"
        " attempt INT, status VARCHAR(12), committed_slices INT, planned_at BIGINT,"
        " kind VARCHAR(12) DEFAULT 'increment', since_day DATE, until_day DATE, rows_from VARCHAR(8) DEFAULT 'sql'"
    ),
    "batch_ledger": (
        "stream_id INT, partition_id VARCHAR(40), commit_number BIGINT, kind VARCHAR(10), first_sequence_number BIGINT,"
        " last_sequence_number BIGINT, rows_written INT, rows_appended INT, transform_version VARCHAR(100),"
        " committed_at BIGINT"
    ),
    "event_hub_checkpoint": "stream_id INT, partition_id VARCHAR(40), sequence_number BIGINT",
    "event_hub_dead_letter": "stream_id INT, partition_id VARCHAR(40), sequence_number BIGINT",
    "sensor_reading": (
        "stream_id INT, partition_id VARCHAR(40), sequence_number BIGINT, ordinal SMALLINT, commit_number BIGINT,"
        " home_id VARCHAR(32), sensor_id VARCHAR(64), kind VARCHAR(20), state VARCHAR(10), ppm BIGINT,"
        " observed_at BIGINT"
    ),
    "home_alert": LINEAGE,
    "flight_change": LINEAGE,
    "retracted_row": (
        "stream_id INT, partition_id VARCHAR(40), commit_number BIGINT, table_name VARCHAR(40), sequence_number BIGINT,"
        " ordinal INT, row_commit_number BIGINT, home_id VARCHAR(32), kind VARCHAR(20), state VARCHAR(10), ppm BIGINT,"
        " observed_at BIGINT, row VARCHAR(400) DEFAULT 'whole'"
    ),
    "home_activity": (
        f"home_id VARCHAR(32), window_start BIGINT, kind VARCHAR(20), {WINDOW}, first_observed_at BIGINT,"
        " last_observed_at BIGINT, run_number BIGINT"
    ),
    **dict.fromkeys(
        ("home_activity_staged", "home_activity_hour_staged", "home_activity_day_staged"),
        "staging_id VARCHAR(80), slice INT, home_id VARCHAR(32), window_start VARCHAR(40), kind VARCHAR(20),"
        f" run_id VARCHAR(40), is_whole SMALLINT, {WINDOW}, first_observed_at VARCHAR(40),"
        " last_observed_at VARCHAR(40)",
    ),
    "staged_slice": (
        "staging_id VARCHAR(80), level VARCHAR(80), slice INT, run_id VARCHAR(40), windows BIGINT,"
        " whole_windows BIGINT, rows_hash BIGINT"
    ),
    "staged_result": (
        "staging_id VARCHAR(80), run_id VARCHAR(40), attempt INT, windows BIGINT, levels VARCHAR(400),"
        " rows_read BIGINT, lake_path VARCHAR(400), is_snapshot SMALLINT, staged_at VARCHAR(40), quality VARCHAR(2000),"
        " overflow VARCHAR(400)"
    ),
    "staged_event": (
        "stream_id INT, partition_id VARCHAR(40), sequence_number BIGINT, offset_token VARCHAR(200),"
        " enqueued_at VARCHAR(40), partition_key CLOB, properties VARCHAR(400), body BLOB"
    ),
}

KINDS = ("string", "bigint", "timestamp")
DERBY = ServerWords(  # it has no JSON, so its removed rows have columns
    micros="{}",
    name="{}",
    opened="",
    members=dict.fromkeys(KINDS, "r.{}"),
    instant="{micros}",
    text="{}",
    by_code_point="",
)


EARLIER = "commit_number > 4 AND row_commit_number <= 3"
DOCUMENT = '{"home_id": "home-1", "ppm": 7}'
RUN = "run_id, job, run_number, cut_from, cut_to, attempt, status, committed_slices, planned_at"


class Derby:
    """A database in the memory of Spark's Java machine."""

    def __init__(self, spark: Any) -> None:
        self.url = f"jdbc:derby:memory:{uuid.uuid4().hex}"
        self.connection = spark._jvm.java.sql.DriverManager.getConnection(f"{self.url};create=true")
        self.run("CREATE SCHEMA hubledger")
        for name, columns in TABLES.items():
            self.run(f"CREATE TABLE hubledger.{name} ({columns})")

    def run(self, statement: str) -> None:
        made = self.connection.createStatement()
        made.execute(statement)
        made.close()

    def select(self, columns: str, table: str) -> list[tuple[Any, ...]]:
        found = self.connection.createStatement().executeQuery(f"SELECT {columns} FROM hubledger.{table}")
        rows = []
        while found.next():
            rows.append(tuple(found.getObject(at + 1) for at in range(columns.count(",") + 1)))
        return rows

    def reading(self, number: int, commit_number: int, ppm: str = "5", at: datetime = NOON) -> None:
        micros = (at - EPOCH) // timedelta(microseconds=1)
        self.run(
            f"INSERT INTO hubledger.sensor_reading VALUES (1, '0', {number}, 0, {commit_number}, 'home-1', 's',"
            f" 'carbon_monoxide', NULL, {ppm}, {micros})"
        )

    def removed(self, number: int, written: int, by: int, ppm: int = 5, at: datetime = NOON) -> None:
        """Store a reading that the commit `written` wrote, and the replay `by` removed."""
        micros = (at - EPOCH) // timedelta(microseconds=1)
        self.run(
            f"INSERT INTO hubledger.retracted_row VALUES (1, '0', {by}, 'sensor_reading', {number}, 0, {written},"
            f" 'home-1', 'carbon_monoxide', NULL, {ppm}, {micros}, 'whole')"
        )


@pytest.fixture
def derby(spark: Any) -> Derby:
    return Derby(spark)


@pytest.fixture
def tables(spark: Any, derby: Derby) -> JdbcTables:
    return JdbcTables(spark, derby.url, dict, DERBY)


def test_a_run_is_read_added_up_and_staged_by_jdbc(spark: Any, derby: Derby, tables: JdbcTables) -> None:
    cuts = """'{"1/0":1}', '{"1/0":4}'"""
    derby.run(
        f"INSERT INTO hubledger.aggregation_run ({RUN}) VALUES ('r1', 'home_activity', 2, {cuts}, 1, 'submitted', 0, 7)"
    )
    for number, kind, first, last in (
        (1, "batch", 0, 9),
        (2, "batch", 10, 11),
        (3, "retry", 4, 9),
        (4, "batch", 12, 12),
    ):
        micros = (NOON - EPOCH) // timedelta(microseconds=1) + number
        counts = f"3, {number - 1}, 't/{number // 4}', {micros}"
        derby.run(f"INSERT INTO hubledger.batch_ledger VALUES (1, '0', {number}, '{kind}', {first}, {last}, {counts})")
    derby.removed(9, written=3, by=4)
    columns = "stream_id, partition_id, commit_number, table_name, row_commit_number"
    for written in (4, 1):
        derby.run(f"INSERT INTO hubledger.retracted_row ({columns}) VALUES (1, '0', 9, 'home_alert', {written})")
    derby.run("INSERT INTO hubledger.home_alert VALUES (1, '0', 12, 4), (1, '0', 9, 1)")
    derby.run("INSERT INTO hubledger.event_hub_dead_letter VALUES (1, '0', 4)")
    derby.reading(3, 1)
    derby.reading(4, 3, ppm="7")
    derby.reading(10, 2, at=NOON + timedelta(microseconds=123_457))
    derby.reading(12, 4, ppm="NULL", at=NOON - timedelta(minutes=1))
    derby.reading(13, 5)
    result = aggregate(spark, tables, Execution("r1", 1))
    assert result is not None
    columns = "window_start, is_whole, readings, active, ppm_hundredths, last_observed_at, staging_id"
    assert sorted(derby.select(columns, "home_activity_staged")) == [
        ("2026-02-10T11:45:00.000000", 0, 1, 0, None, "2026-02-10T11:59:00.000000", result.staging_id),
        ("2026-02-10T12:00:00.000000", 0, 2, 0, 1200, "2026-02-10T12:00:00.123457", result.staging_id),
    ]
    number = slice_of("home-1")
    assert sorted(derby.select("level, slice, windows, whole_windows", "staged_slice")) == [
        ("home_activity", number, 2, 0),
        ("home_activity_day", number, 1, 0),
        ("home_activity_hour", number, 2, 0),
    ]
    assert [row[0] for row in derby.select("window_start", "home_activity_day_staged")] == [
        "2026-02-10T00:00:00.000000"
    ]
    (levels,) = derby.select("levels", "staged_result")[0]
    assert json.loads(levels) == {"home_activity": 2, "home_activity_hour": 2, "home_activity_day": 1}
    columns = "staging_id, attempt, windows, rows_read, is_snapshot"
    assert derby.select(columns, "staged_result") == [(result.staging_id, 1, 2, 3, 0)]
    assert derby.select("overflow", "staged_result") == [(None,)]
    quality = json.loads(result.quality or "")
    assert quality == {
        "fault": None, "rows_ledger": 6, "rows_read": 3, "rows_removed": 1, "rows_elsewhere": 2, "rows_difference": 0,
        "rows_late": 0, "partitions": [],
    }  # fmt: skip
    (counted,) = tables.read_written(spans_between('{"1/0":1}', '{"1/0":4}'))
    assert (counted.rows_appended, counted.first_at) == (6, NOON + timedelta(microseconds=2))
    assert derby.select("quality, run_id", "staged_result") == [(result.quality, "r1")]


def test_rows_that_a_replay_moved_are_read_as_of_the_cut_and_windows_and_their_rows_are_sought(
    derby: Derby, tables: JdbcTables
) -> None:
    span = CommitSpan(1, "0", 2, 5)
    derby.reading(1, 1, ppm="1")
    derby.reading(2, 4, ppm="2")
    derby.reading(3, 7, ppm="3")
    derby.removed(3, written=2, by=7, ppm=30)  # counted before, and still counts
    derby.removed(4, written=4, by=6, ppm=40)  # counts at the cut
    derby.removed(5, written=3, by=5, ppm=50)  # came and went
    derby.removed(6, written=2, by=5, ppm=60)  # taken away
    slices = [Slice(1, "0", 0, 9, 2, 5, cut=5)]
    assert sorted(row.ppm for row in tables.rows(OF, slices).collect()) == [2, 40]
    assert [row.ppm for row in tables.removed(OF, [span]).collect()] == [60]
    window = {"home_id": "home-1", "kind": "carbon_monoxide", "window_start": NOON}
    other = {**window, "home_id": "it's"}
    rows = tables.rows_of_windows(OF, [window, other], [CommitSpan(1, "0", 0, 5)])
    assert sorted(row.ppm for row in rows.collect()) == [1, 2, 30, 40]
    assert tables.rows_of_windows(OF, [other], [span]).collect() == []
    micros = (NOON - EPOCH) // timedelta(microseconds=1)
    derby.run(
        f"INSERT INTO hubledger.home_activity VALUES ('home-1', {micros}, 'carbon_monoxide', 2, 0, 6, 1, 5, 0, 9, 3)"
    )
    ((readings, number),) = tables.standing(OF, [window, other]).select("readings", "run_number").collect()
    assert (readings, number) == (2, 3)
    assert tables.standing(OF, []).collect() == []
    assert tables.standing(OF, None).count() == 1


class Snapshots:
    """A reader of the one row that says whether a database reads row versions."""

    def __init__(self, is_on: bool) -> None:
        self.read = self
        self._is_on = is_on

    def jdbc(self, url: str, table: str, *, properties: dict[str, str]) -> "Snapshots":
        assert "is_read_committed_snapshot_on FROM sys.databases WHERE database_id = DB_ID()" in table
        return self

    def collect(self) -> list[tuple[str, bool]]:
        return [("ledger", self._is_on)]


def test_a_database_whose_statements_do_not_read_one_moment_is_refused_with_the_remedy() -> None:
    JdbcTables(Snapshots(True), "jdbc:sqlserver://host", dict).require_snapshots()
    with pytest.raises(NoSnapshots, match=r"ALTER DATABASE \[ledger\] SET READ_COMMITTED_SNAPSHOT ON"):
        JdbcTables(Snapshots(False), "jdbc:sqlserver://host", dict).require_snapshots()


def test_a_run_that_is_closed_or_at_another_attempt_is_left_alone(spark: Any, derby: Derby, tables: JdbcTables) -> None:
    for row in (
        "'r1', 'home_activity', 2, '{}', '{}', 2, 'submitted', 0, 7",
        "'r2', 'home_activity', 3, '{}', '{}', 1, 'committed', 0, 7",
        "'r3', 'home_activity', 4, '{}', '{}', 1, 'submitted', 7, 7",
    ):
        derby.run(f"INSERT INTO hubledger.aggregation_run ({RUN}) VALUES ({row})")
    derby.run("UPDATE hubledger.aggregation_run SET kind = 'repair', since_day = '2026-02-01' WHERE run_id = 'r3'")
    assert tables.read_run("r1") == Run("r1", "home_activity", 2, "{}", "{}", 2, "submitted", 0, AT)
    newest, repair = tables.read_committed("home_activity", 9), tables.read_run("r3")
    assert newest is not None
    assert repair is not None
    assert (newest.run_id, repair.kind, repair.days) == ("r2", "repair", Days(since=date(2026, 2, 1)))
    assert tables.read_committed("home_activity", 3) is None
    assert tables.read_later("home_activity", 2) == [newest, repair]
    assert tables.standing(OF, None).collect() == []
    assert [aggregate(spark, tables, Execution(run_id, 1)) for run_id in ("r1", "r2", "none")] == [None] * 3
    assert derby.select("staging_id", "staged_result") == []


def test_rows_are_read_as_texts_by_position(derby: Derby, tables: JdbcTables) -> None:
    derby.reading(4, 1, at=NOON + timedelta(microseconds=5))
    (row,) = tables.texts(SensorReading, [Slice(1, "0", 0, 9, 0, 9)]).collect()
    assert tuple(row) == ("0", 4, 0, ["home-1", "s", "carbon_monoxide", None, "5", "2026-02-10T12:00:00.000005Z"])


def test_rows_are_read_with_their_lineage_and_removed_ones_as_documents(derby: Derby, tables: JdbcTables) -> None:
    names = "stream_id, partition_id, commit_number, table_name, sequence_number, ordinal, row_commit_number, row"
    for table in ("sensor_reading", "home_alert"):
        derby.run(f"INSERT INTO hubledger.retracted_row ({names}) VALUES (1, '0', 5, '{table}', 3, 0, 2, '{DOCUMENT}')")
    derby.run(f"INSERT INTO hubledger.retracted_row ({names}) VALUES (1, '0', 5, 'sensor_reading', 4, 0, 2, '{{}}')")
    derby.reading(3, 5, at=NOON + timedelta(microseconds=1))
    derby.reading(9, 6)
    (row,) = tables.lineage_rows(SensorReading, [Slice(1, "0", 1, 9, 2, 5)]).collect()
    assert tuple(row)[:5] == (1, "0", 3, 0, 5)
    assert (row.home_id, row.ppm, row.observed_at) == (
        "home-1",
        5,
        (NOON + timedelta(microseconds=1)).replace(tzinfo=None),
    )
    found = tables.removed_rows(SensorReading, ["commit_number > 4", "commit_number > 5"])
    assert [tuple(row) for row in found.collect()] == [(1, "0", 3, 0, 2, 5, DOCUMENT)]


def test_checkpoints_are_those_of_the_stream(derby: Derby, tables: JdbcTables) -> None:
    for stream_id, id, number in ((1, "0", 7), (1, "1", 2**40), (2, "0", 9)):
        derby.run(f"INSERT INTO hubledger.event_hub_checkpoint VALUES ({stream_id}, '{id}', {number})")
    assert tables.read_checkpoints(1) == {"0": 7, "1": 2**40}
    assert tables.read_checkpoints(3) == {}


def test_events_are_staged_once_and_what_stands_stays(spark: Any, derby: Derby, tables: JdbcTables) -> None:
    def staged() -> list[tuple[Any, ...]]:
        columns = "stream_id, partition_id, sequence_number, offset_token, enqueued_at, LENGTH(body)"
        return sorted(derby.select(columns, "staged_event"))

    at = NOON + timedelta(microseconds=5)
    rows = [("0", number, f"o{number}", at, None if number else "key", "{}", b"x" * number) for number in range(3)]
    tables.stage_events(spark.createDataFrame(rows[:2], EVENTS), 1)
    written = [(1, "0", number, f"o{number}", "2026-02-10T12:00:00.000005", number) for number in range(3)]
    assert staged() == written[:2]
    derby.run("UPDATE hubledger.staged_event SET offset_token = 'stands' WHERE sequence_number = 1")
    tables.stage_events(spark.createDataFrame(rows, EVENTS), 1)
    assert staged() == [written[0], (1, "0", 1, "stands", *written[1][4:]), written[2]]
    tables.stage_events(spark.createDataFrame(rows[:1], EVENTS), 2)
    assert [one[:3] for one in staged()][3:] == [(2, "0", 0)]


class Recorder:
    """A reader that records the statements for SQL Server."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    @property
    def read(self) -> "Recorder":
        return self

    def createDataFrame(self, rows: list[Any], schema: str) -> None:  # noqa: N802 - the name of Spark
        """Return no frame."""

    def jdbc(self, url: str, table: str, *, properties: dict[str, str], predicates: Sequence[str] = ("1 = 1",)) -> Any:
        self.statements += [f"SELECT a FROM {table} WHERE {predicate};" for predicate in predicates]
        raise LookupError


def test_what_is_sent_to_sql_server_passes_the_parser() -> None:
    recorder = Recorder()
    tables = JdbcTables(recorder, "jdbc:sqlserver://host", dict)
    slices = [Slice(1, "0", 1, 9, 2, 3), Slice(1, "it's", 1, 9, 2, 3, letters_only=True)]
    window = {"home_id": "it's", "kind": "motion", "window_start": NOON}
    asked: list[Callable[[], Any]] = [
        lambda: tables.read_run("r1"),
        lambda: tables.read_committed("home_activity", 9),
        lambda: tables.read_later("home_activity", 2),
        lambda: tables.standing(OF, None),
        lambda: tables.read_ledger([CommitSpan(1, "0", 2, 3)]),
        lambda: tables.read_written([CommitSpan(1, "0", 2, 3), CommitSpan(1, "it's", 0, 3)]),
        lambda: tables.count_rows("home_alert", slices, [CommitSpan(1, "it's", 2, 3)]),
        lambda: tables.rows(OF, slices),
        lambda: tables.removed(OF, [CommitSpan(1, "0", 2, 9)]),
        lambda: tables.rows_of_windows(OF, [window], [CommitSpan(1, "it's", 0, 9)]),
        lambda: tables.standing(OF, [window]),
        tables.require_snapshots,
        lambda: tables.read_checkpoints(1),
        lambda: tables.stage_events(None, 1),
        *(lambda row_class=row_class: tables.texts(row_class, None) for row_class in (Home, HomeAlert)),
        *(lambda row=row: tables.lineage_rows(row, slices[1:]) for row in (SensorReading, FlightChange)),
        *(lambda row=row: tables.removed_rows(row, [EARLIER]) for row in (SensorReading, FlightChange)),
    ]
    for ask in asked:
        with pytest.raises(LookupError):
            ask()
    assert len(recorder.statements) == len(asked) + 1
    types = columns_of((one.text for one in all_migrations("sqlserver")), types=True)
    sent = [text.replace(") r WHERE", ") AS r WHERE") for text in recorder.statements]
    assert [found for text in sent for found in conversions(text, types)] == []
    assert len(conversions(sent[0].replace("'r1'", "N'r1'"), types)) == 1
    for gate in gates().values():
        assert gate({str(at): text for at, text in enumerate(recorder.statements)}) == {}
        assert gate({"broken": recorder.statements[3].replace("SELECT", "SELCT", 1)}) != {}
