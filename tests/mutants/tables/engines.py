"""Mutants of the two engines: how SQLite runs a script, how SQL Server's batch is built, and the texts of both."""

from tests.mutants.mutant import in_file

UNIT = "tests/core/store"
QUERIES = "sql/queries"
HOUSE, PARITY = "tests/sql/test_house_rules.py", "tests/sql/test_parity.py"

MUTANTS = (
    *in_file(
        "core/store/sqlite/database.py",
        f"{UNIT}/sqlite/test_database.py",
        (
            "a commit of unknown outcome counts as not written",
            "fault = StoreUnavailable if script.may_repeat else CommitOutcomeUnknown",
            "fault = StoreUnavailable",
        ),
        ("a dry run is committed", "                raise _RolledBack\n", "                pass\n"),
        (
            "a step may touch too few rows",
            "if step.expect is not None and touched != step.expect and",
            "if step.expect is not None and touched > step.expect and",
        ),
        (
            "a failed transaction stays open",
            '                connection.execute("ROLLBACK")\n',
            "                pass\n",
        ),
    ),
    *in_file(
        "core/store/sqlite/database.py",
        "tests/core/settle/test_commit.py",
        (
            "a key that exists already counts as an outage",
            "except (sqlite3.IntegrityError, sqlite3.DataError,",
            "except (sqlite3.DataError,",
        ),
    ),
    *in_file(
        "core/store/row_statements.py",
        "tests/core/store/test_states.py",
        (
            "an older state takes the place of a newer one",
            "{standing}.sequence_number < {new}.sequence_number",
            "{standing}.sequence_number <> {new}.sequence_number",
        ),
    ),
    *in_file(
        "core/store/sqlite/statements.py",
        "tests/core/replay/test_store.py",
        (
            "a replay replaces the state of a newer event",
            "{{0}}.sequence_number <= excluded.sequence_number",
            "{{0}}.sequence_number <> excluded.sequence_number + 1000",
        ),
    ),
    *in_file(
        f"{QUERIES}/event_hub_checkpoint.sql",
        "tests/core/settle/test_commit.py",
        (
            "the checkpoint moves without a comparison",
            " AND sequence_number = :expected\n",
            " AND sequence_number >= :expected\n",
        ),
        (
            "the first checkpoint of a partition is taken twice",
            "ON CONFLICT (stream_id, partition_id) DO NOTHING",
            "ON CONFLICT (stream_id, partition_id) DO UPDATE SET commit_number = 1",
        ),
    ),
    *in_file(
        f"{QUERIES}/partition_anchor.sql",
        "tests/core/settle/test_partition_gaps.py",
        (
            "an anchor moves",
            "ON CONFLICT (stream_id, partition_id) DO NOTHING",
            "ON CONFLICT (stream_id, partition_id) DO UPDATE SET sequence_number = excluded.sequence_number",
        ),
    ),
    *in_file(
        f"{QUERIES}/sequence_gap.sql",
        "tests/core/settle/test_partition_gaps.py",
        (
            "open gaps after the checkpoint are closed",
            "   AND last_sequence_number <= (\n",
            "   AND last_sequence_number <> (\n",
        ),
        (
            "a gap that was just committed is opened",
            "g.first_sequence_number = :first_sequence_number)\n   AND NOT EXISTS (\n"
            "       SELECT 1 FROM event_hub_checkpoint AS c WITH (UPDLOCK, HOLDLOCK)\n"
            "        WHERE c.stream_id = :stream_id",
            "g.first_sequence_number = :first_sequence_number)\n   AND NOT EXISTS (\n"
            "       SELECT 1 FROM event_hub_checkpoint AS c WITH (UPDLOCK, HOLDLOCK)\n"
            "        WHERE c.stream_id = -:stream_id",
        ),
    ),
    *in_file(
        "core/store/sqlserver/batch.py",
        f"{UNIT}/sqlserver/test_batch.py",
        ("the server commits a dry run", "'ROLLBACK' if rehearse else 'COMMIT'", "'COMMIT'"),
    ),
    *in_file(
        "core/store/sqlserver/batch.py",
        HOUSE,
        ("a batch goes on after an error", 'else ["SET XACT_ABORT ON;"]', "else []"),
        ("a script is no transaction", 'lines += [] if is_plain else ["BEGIN TRANSACTION;"]', "lines += []"),
    ),
    *in_file(
        "core/store/sqlserver/database.py",
        f"{UNIT}/sqlserver/test_database.py",
        (
            "a lost connection counts as not written",
            "if trouble.fault is Fault.LOST and not script.may_repeat:",
            "if trouble.fault is Fault.LOST and not script.steps:",
        ),
        (
            "a connection is used again after a fault",
            "                self._connections.drop()\n",
            "                pass\n",
        ),
        (
            "a race for a state counts as refused data",
            "        if isinstance(raced[0].statement, OfRows):\n            return _StateTaken(trouble)",
            "        if isinstance(raced[0].statement, OfRows):\n            return DataRefused(trouble.text)",
        ),
    ),
    *in_file(
        "core/store/sqlserver/faults.py",
        f"{UNIT}/sqlserver/test_faults.py",
        ("a timeout counts as not written", '_LOST_STATES = ("08", "HYT00", "HYT01")', '_LOST_STATES = ("08",)'),
    ),
    *in_file(
        "core/store/sqlserver/connections.py",
        f"{UNIT}/sqlserver/test_connections.py",
        (
            "an error after the first result is lost",
            "            while self._cursor.nextset():\n                results += self._fetched()\n",
            "",
        ),
    ),
    *in_file(
        f"{QUERIES}/event_hub_dead_letter.sql",
        f"{PARITY} {HOUSE}",
        (
            "a chunk begins under any claim on the server",
            "d.status = 'retrying' AND d.claimed_by IN (@claimed_by, @run)",
            "d.status = 'retrying' AND (d.claimed_by IS NOT NULL OR d.claimed_by = @claimed_by)",
        ),
    ),
    *in_file(
        "core/store/sqlserver/statements.py",
        f"{HOUSE} {PARITY} {UNIT}/sqlserver/test_batch.py",
        (
            "an older state takes the place of a newer one on the server",
            'is_older(of, "t", "@", "r")),',
            'is_older(of, "r", "@", "t")),',
        ),
    ),
    *in_file(
        "core/settle/partition_store.py",
        f"{UNIT}/sqlserver/test_database.py",
        (
            "a race for the first checkpoint counts as refused data",
            'keeps="commit_number", races=key)',
            'keeps="commit_number")',
        ),
    ),
)
