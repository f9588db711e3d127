"""Mutants of a server's side: rights, hot tables, the staging, and local runs on a server."""

from tests.mutants.mutant import in_file

LOCAL = "tests/unit/local/test_server.py"

MUTANTS = (
    *in_file(
        "sql/sqlserver/permissions.sql",
        "tests/sql/test_rights.py",
        (
            "the app may not move its checkpoints",
            "GRANT SELECT, INSERT, UPDATE ON hubledger.event_hub_checkpoint TO hubledger_app;",
            "GRANT SELECT, INSERT ON hubledger.event_hub_checkpoint TO hubledger_app;",
        ),
        (
            "the app may not move the stub of what was purged",
            "GRANT SELECT, INSERT, UPDATE ON hubledger.purge_stub TO hubledger_app;",
            "GRANT SELECT, INSERT ON hubledger.purge_stub TO hubledger_app;",
        ),
    ),
    *in_file(
        "examples/flight_info/permissions.sql",
        "tests/sql/test_rights.py",
        ("jobs may not read flights", "GRANT SELECT ON hubledger.flight_change TO hubledger_job;\n", ""),
    ),
    *in_file(
        "core/store/sqlserver/rows.py",
        "tests/sql/test_house_rules.py",
        ("a table of states may be scanned first", "OPTION (LOOP JOIN, FORCE ORDER)", "OPTION (LOOP JOIN)"),
    ),
    *in_file(
        "core/replay/store/scripts.py",
        "tests/sql/test_lock_counts.py",
        ("the states of a replay are deleted with a lock of the table", '{"most": ROWS_AT_ONCE}', '{"most": 8_000}'),
    ),
    *in_file(
        "core/store/check.py",
        "tests/unit/core/store/test_check.py",
        ("a check keeps the warnings of the store to itself", "    log.addHandler(handler)\n", ""),
        ("a check names no column", "if columns else", "if None else"),
    ),
    *in_file(
        "core/ledger/retention/work.py",
        "tests/contract/operator/test_purges.py",
        (
            "a piece of a purge does not count the attempts of its letters",
            "    letters = _within(read, self.kind.rows_of_piece)\n",
            "    letters = read\n",
        ),
        (
            "a piece of letters that was cut ends its task",
            "is_last=len(letters) == len(read) < self.kind.letters_of_piece",
            "is_last=len(letters) < self.kind.letters_of_piece",
        ),
    ),
    *in_file(
        "core/aggregation/tick.py",
        "tests/unit/core/aggregation/test_tick.py",
        ("a tick leaves what closed runs have staged", "    own.store.clear_staging()", "    pass"),
    ),
    *in_file(
        "core/aggregation/store/commits.py",
        "tests/contract/test_aggregation.py",
        (
            "only the first part of a staging is deleted",
            "                while self._removed(remove,",
            "                if self._removed(remove,",
        ),
    ),
    *in_file(
        "sql/queries/aggregation_staging.sql",
        "tests/contract/test_aggregation.py",
        (
            "the staging of an open run is deleted",
            "SELECT g.staging_id\n  FROM staged_slice AS g\n WHERE g.run_id NOT IN",
            "SELECT g.staging_id\n  FROM staged_slice AS g\n WHERE '' NOT IN",
        ),
    ),
    *in_file(
        "local/server.py",
        LOCAL,
        ("a demo empties a store of somebody else", "if cursor.execute(_ANY_TABLES).fetchone()[0]:", "if False:"),
        ("a demo empties the tables of a run", "            if marked != use:\n", "            if False:\n"),
        ("a demo shares its database with a killed one", "        self._refuse_left_over(cursor)\n", ""),
        ("a word inside of a password counts", "(\\{(?:[^}]|\\}\\})*\\}|[^;]*)", "([^;]*)"),
        ("two demos share a database", "        if code < 0:", "        if code > 0:"),
        ("a copy cuts instants", "isoformat(timespec='microseconds')}Z", "isoformat(timespec='seconds')}Z"),
        ("a query names no schema", 'f"FROM {SCHEMA}."', '"FROM "'),
    ),
    *in_file(
        "Makefile",
        LOCAL,
        ("make expands a password", "override export STORE := $(value STORE)", "export STORE"),
    ),
    *in_file(
        "local/func.py",
        "tests/unit/local/test_func.py",
        ("a failed step shows the password", '.replace(password, "***")', ""),
        ("a failed step is ignored", "        if process.returncode:\n", "        if False:\n"),
        ("settings that exist are replaced", "    if settings.exists():\n", "    if False:\n"),
        ("a database may lack row versions", "AND is_read_committed_snapshot_on = 0", "AND 1 = 0"),
        ("Ctrl-C leaves func running", "            process.send_signal(signal.SIGINT)\n", "            return\n"),
        ("a run with a different store starts SQL Server too", "[*_UP, *_BESIDE_A_STORE]", "[*_UP]"),
    ),
    *in_file(
        "local/environment_file.py",
        "tests/unit/local/test_func.py",
        ("others may read an old password", "        file.chmod(0o600)\n", "        pass\n"),
    ),
    *in_file(
        "local/stack.py",
        LOCAL,
        (
            "letters are leased for as long as beside an embedded store",
            "LETTERS_ON_A_SERVER if place.server else LETTERS",
            "LETTERS",
        ),
    ),
)
