"""Mutants of the two engines: how SQLite runs a script, how SQL Server's batch is built, and the texts of both."""

from tests.mutants.mutant import in_file

UNIT = "tests/unit/core/store"
QUERIES = "sql/queries"
HOUSE, PARITY = "tests/sql/test_house_rules.py", "tests/sql/test_parity.py"

MUTANTS = (
    *in_file(
        "core/store/sqlite/database.py",
        f"{UNIT}/test_sqlite_database.py",
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
        "tests/contract/test_commit.py",
        (
            "a key that exists already counts as an outage",
            "except (sqlite3.IntegrityError, sqlite3.DataError,",
            "except (sqlite3.DataError,",
        ),
    ),
    *in_file(
        "core/store/sqlite/rows.py",
        "tests/contract/test_states.py",
        (
            "an older state takes the place of a newer one",
            '" OR {0}.sequence_number < excluded.sequence_number"',
            '" OR {0}.sequence_number <> excluded.sequence_number"',
        ),
        (
            "a state of a different partition is never replaced",
            '"{0}.stream_id <> excluded.stream_id OR {0}.partition_id <> excluded.partition_id"',
            '"{0}.stream_id <> excluded.stream_id"',
        ),
    ),
    *in_file(
        "core/store/sqlite/rows.py",
        "tests/contract/test_replays.py",
        (
            "a replay replaces the state of a different partition",
            '"{0}.stream_id = excluded.stream_id AND {0}.partition_id = excluded.partition_id"',
            '"{0}.stream_id = excluded.stream_id"',
        ),
        (
            "a replay replaces the state of a newer event",
            '" AND {0}.sequence_number <= excluded.sequence_number"',
            '" AND {0}.sequence_number <> excluded.sequence_number + 1000"',
        ),
    ),
    *in_file(
        f"{QUERIES}/event_hub_checkpoint.sql",
        "tests/contract/test_commit.py",
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
        "tests/contract/test_gaps.py",
        (
            "an anchor moves",
            "ON CONFLICT (stream_id, partition_id) DO NOTHING",
            "ON CONFLICT (stream_id, partition_id) DO UPDATE SET sequence_number = excluded.sequence_number",
        ),
    ),
    *in_file(
        f"{QUERIES}/sequence_gap.sql",
        "tests/contract/test_gaps.py",
        (
            "open gaps after the checkpoint are closed",
            "   AND last_sequence_number <= (\n",
            "   AND last_sequence_number <> (\n",
        ),
        ("a further try of a gap is not counted", "attempts = attempts + 1\n", "attempts = attempts\n"),
        (
            "a gap that was just settled is opened again",
            "first_sequence_number = :first_sequence_number\n   AND NOT EXISTS (\n"
            "       SELECT 1 FROM event_hub_checkpoint AS c WITH (UPDLOCK, HOLDLOCK)\n"
            "        WHERE c.stream_id = :stream_id",
            "first_sequence_number = :first_sequence_number\n   AND NOT EXISTS (\n"
            "       SELECT 1 FROM event_hub_checkpoint AS c WITH (UPDLOCK, HOLDLOCK)\n"
            "        WHERE c.stream_id = -:stream_id",
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
        f"{QUERIES}/sequence_gap.sql",
        HOUSE,
        (
            "the server opens a gap that was just settled again",
            "AND first_sequence_number = :first_sequence_number\n   AND NOT EXISTS (\n"
            "       SELECT 1 FROM event_hub_checkpoint AS c WITH (UPDLOCK, HOLDLOCK)",
            "AND first_sequence_number = :first_sequence_number\n   AND NOT EXISTS (\n"
            "       SELECT 1 FROM event_hub_checkpoint AS c",
        ),
    ),
    *in_file(
        f"{QUERIES}/event_hub_ownership.sql",
        "tests/contract/test_ownership.py",
        ("an older etag renews an ownership", " AND etag = :expected_etag\n", " AND :expected_etag <> ''\n"),
    ),
    *in_file(
        f"{QUERIES}/idempotency_key.sql",
        "tests/contract/operator/test_keys.py",
        (
            "a key of a request that died goes to a different request",
            "answer IS NULL AND request_hash = :request_hash AND claimed_at < :abandoned_at",
            "answer IS NULL AND claimed_at < :abandoned_at",
        ),
        (
            "a request that lost its key stores its answer",
            "WHERE request_key = :request_key AND claimed_at = :claimed_at;",
            "WHERE request_key = :request_key AND claimed_at >= :claimed_at;",
        ),
    ),
    *in_file(
        "core/store/sqlserver/batch.py",
        f"{UNIT}/test_batch.py",
        ("the server commits a dry run", "'ROLLBACK' if rehearse else 'COMMIT'", "'COMMIT'"),
        ("every unmet step throws one number", "THROW {UNMET + place}", "THROW {UNMET}"),
        (
            "two steps may give one parameter two values",
            "if values.setdefault(param.name, value) != value:",
            "if values.setdefault(param.name, value) is ...:",
        ),
    ),
    *in_file(
        "core/store/sqlserver/batch.py",
        HOUSE,
        (
            "a batch goes on after an error",
            'else ["SET XACT_ABORT ON;"]',
            "else []",
        ),
        ("a script is no transaction", 'lines += [] if is_plain else ["BEGIN TRANSACTION;"]', "lines += []"),
        ("a step that expects nothing is checked", 'if shape.expects != "nothing":', 'if shape.expects == "one":'),
    ),
    *in_file(
        "core/store/sqlserver/database.py",
        f"{UNIT}/test_server_database.py",
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
            "    if isinstance(step.statement, OfRows):\n        return _StateTaken(trouble)",
            "    if isinstance(step.statement, OfRows):\n        return DataRefused(trouble.text)",
        ),
        ("a deadlock is not counted", "            if trouble.fault is Fault.CROSSED:", "            if False:"),
        ("two keys that are one to the server stop the partition", "if taken.key in refused:", "if False:"),
        ("a second race for a state counts as refused data", "if taken.key in refused:", "if refused:"),
    ),
    *in_file(
        "core/store/sqlserver/faults.py",
        f"{UNIT}/test_faults.py",
        ("a duplicate key counts as an outage", "dict.fromkeys(DUPLICATE,", "dict.fromkeys((2601,),"),
        ("a timeout counts as not written", '_LOST_STATES = ("08", "HYT00", "HYT01")', '_LOST_STATES = ("08",)'),
        ("a value that is too long counts as an outage", "1946, 2628, 3609", "1946, 3609"),
        ("a trigger that rolls back stops the partition", "2628, 3609, 8114", "2628, 8114"),
        (
            "a trigger that throws the number of a step is taken for the step",
            "return Fault.THROWN if UNMET_WORDS in message else Fault.DATA",
            "return Fault.THROWN",
        ),
        ("a quoted value names the key of a duplicate", "_QUOTED.findall(self.text)[:2]", "_QUOTED.findall(self.text)"),
    ),
    *in_file(
        "core/store/sqlserver/reconnects.py",
        f"{UNIT}/test_reconnects.py",
        ("pauses between connections do not grow", "2 * self._pause", "0 * self._pause"),
        ("threads that fail together count each", "if now >= self._until:", "if now >= 0:"),
        ("a process connects during the pause of a different thread", "if left > 0:", "if left > 1000:"),
        (
            "failures of an hour ago count",
            "self._pause = self._until = 0.0\n        return",
            "self._until = 0.0\n        return",
        ),
    ),
    *in_file(
        "core/store/sqlserver/faults.py",
        f"{UNIT}/test_server_database.py",
        ("a deadlock costs the connection", "_CROSSED = {1205, ", "_CROSSED = {"),
    ),
    *in_file(
        "core/store/sqlserver/misfits.py",
        f"{UNIT}/test_misfits.py",
        ("a column that rounds decimals is not named", "and column.scale >= PLACES", "and column.scale >= 2"),
        ("a column that rounds seconds is not named", "and column.scale >= len", "and 9 >= len"),
        ("a column that loses letters is not named", "_UTF_8 in (column.collation or", '"" in (column.collation or'),
        ("a binary key of UTF-8 is named", '"_BIN2", "_BIN2_UTF8")', '"_BIN2")'),
        (
            "a key that folds case is not named",
            "if kind is str and is_key and not",
            "if kind is int and is_key and not",
        ),
    ),
    *in_file(
        "core/store/sqlite/misfits.py",
        f"{UNIT}/test_misfits.py",
        ("a column that keeps every instant is named", "wanted in (None, affinity)", "wanted == affinity"),
        ("a column that makes numbers of texts is not named", 'and wanted != "TEXT")', 'and wanted != "BLOB")'),
    ),
    *in_file(
        "core/store/sqlite/rows.py",
        f"{UNIT}/test_checksum.py",
        ("a float is rounded when a replay retracts it", "if is_float(hint) else column", "if not hint else column"),
    ),
    *in_file(
        "core/store/sqlserver/rows.py",
        f"{UNIT}/test_rows.py {UNIT}/test_batch.py",
        ("a server makes a float near zero 0", "normal if floats else compiled", "compiled if floats else compiled"),
        ("a server rounds a float when a replay retracts it", "varchar(40), {column}, 3)", "varchar(40), {column}, 1)"),
    ),
    *in_file(
        "core/store/sqlserver/json.py",
        f"{UNIT}/test_json.py",
        (
            "the server rounds a number",
            'or len(text.partition(".")[2].rstrip("0")) > PLACES:',
            'or len(text.partition(".")[2].rstrip("0")) > 10 * PLACES:',
        ),
        ("a body is sent as text", "return value.hex()", "return value.decode()"),
    ),
    *in_file(
        "core/store/sqlserver/odbc.py",
        f"{UNIT}/test_odbc.py",
        (
            "messages are in the language of the login",
            'driver.connect(f"{LANGUAGE};{connection_string}", **options)',
            "driver.connect(connection_string, **options)",
        ),
        (
            "an error after the first result is lost",
            "            while self._cursor.nextset():\n                results += self._fetched()\n",
            "",
        ),
        (
            "a statement may wait for ever",
            "return max(1, math.ceil(deadline.total_seconds()))",
            "return int(deadline.total_seconds())",
        ),
    ),
    *in_file(
        f"{QUERIES}/held_letter.sql",
        "tests/sql/test_house_rules.py",
        (
            "the server frees all held letters at once when the order ends",
            "SELECT TOP (@most) h.",
            "SELECT TOP (1000 * @most) h.",
        ),
        (
            "a freeing keeps every held letter locked",
            "AS h WITH (READPAST, READCOMMITTEDLOCK)",
            "AS h WITH (READPAST, UPDLOCK, READCOMMITTEDLOCK)",
        ),
        ("a letter is freed twice", " WHERE d.status = 'held'\nOPTION", "OPTION"),
    ),
    *in_file(
        f"{QUERIES}/held_letter.sql",
        "tests/sql/test_seeks.py",
        (
            "the server reads all earlier letters for each letter that it frees",
            "@partition_id AND o.key_hash = d.key_hash",
            "@partition_id AND (o.partition_key + N'.') = d.partition_key + N'.'",
        ),
    ),
    *in_file(
        f"{QUERIES}/event_hub_dead_letter.sql",
        f"{PARITY} {HOUSE}",
        (
            "the server's letters read their columns in a different order",
            "error_class varchar(10) '$[4]', error_type nvarchar(max) '$[5]', error nvarchar(max) '$[6]'",
            "error_class varchar(10) '$[5]', error_type nvarchar(max) '$[4]', error nvarchar(max) '$[6]'",
        ),
        (
            "a claim on the server reads its letters before it takes them",
            "   AND (d.due_at <= @claimed_at OR d.due_at > @latest)\n",
            "   AND EXISTS (SELECT 1 WHERE d.due_at <= @claimed_at OR d.due_at > @latest)\n",
        ),
        (
            "keepers wait for each other on the server",
            "AS d WITH (ROWLOCK, READPAST, UPDLOCK, READCOMMITTEDLOCK)",
            "AS d WITH (ROWLOCK, UPDLOCK)",
        ),
        (
            "a claim that was sent before reads versions past locks, which Azure SQL refuses",
            "AS h WITH (READPAST, READCOMMITTEDLOCK)",
            "AS h WITH (READPAST)",
        ),
        (
            "a chunk begins under any claim on the server",
            "d.status = 'retrying' AND d.claimed_by IN (@claimed_by, @run)",
            "d.status = 'retrying' AND (d.claimed_by IS NOT NULL OR d.claimed_by = @claimed_by)",
        ),
        (
            "a retry on the server seeks its letters by their status",
            "claimed_by = @claimed_by\nOPTION (LOOP JOIN, FORCE ORDER)",
            "claimed_by = @claimed_by",
        ),
        (
            "a retry on the server settles a letter of a different claim",
            "   AND d.status = 'retrying' AND d.claimed_by = @claimed_by\nOPTION",
            "   AND d.status = 'retrying' AND d.claimed_by <> @claimed_by\nOPTION",
        ),
        (
            "the server cuts a long error",
            "error nvarchar(max) '$[9]', fingerprint varchar(40) '$[10]', transform_version nvarchar(max) '$[11]',\n"
            "       status varchar(10) '$[12]', due_at datetime2(7) '$[13]', failed_at datetime2(7) '$[14]',\n"
            "       held_behind",
            "error nvarchar(100) '$[9]', fingerprint varchar(40) '$[10]', transform_version nvarchar(max) '$[11]',\n"
            "       status varchar(10) '$[12]', due_at datetime2(7) '$[13]', failed_at datetime2(7) '$[14]',\n"
            "       held_behind",
        ),
    ),
    *in_file(
        f"{QUERIES}/letter_listing.sql",
        HOUSE,
        (
            "letters of a status are sought by a text of any length",
            "d.status IN (SELECT s.status FROM OPENJSON(@statuses) WITH (status varchar(10) '$') AS s)",
            "d.status IN (SELECT s.value FROM OPENJSON(@statuses) AS s)",
        ),
    ),
    *in_file(
        "core/store/dialects.py",
        f"{UNIT}/test_dialects.py",
        ("a limit in brackets ends the SELECT around them", '(text[at] == ")") - (text[at] == "(")', "0"),
        ("a name of WITH gets a schema", "(?!(?:{made})\\b)", ""),
        ("a blank reason counts as none", 'startswith("nvarchar")', 'startswith("nchar")'),
        ("a delete puts out rows that it inserted", '"deleted" if', '"inserted" if'),
        ("the server gets SQLite's lines", '(r"^.*-- sqlite only(?:\\n|$)", "")', '(r"-- sqlite only(?:\\n|$)", "")'),
        ("blanks at the end do not count", " + N'.' = ", " = "),
        ("a mark that is wrong is sent", "if wrong := re.search(_WRONG, text, re.M):", "if wrong := None:"),
    ),
    *in_file(
        "core/store/queries.py",
        f"{UNIT}/test_queries.py",
        ("a second body is not sent", "text = second or server_text(", "text = server_text("),
        ("a parameter that no header declares is bound", "used - declared - kept", "used - used"),
        ("a parameter may have no type", 'r"(?P<name>\\w+) (?P<type>', 'r"(?P<name>\\w+) ?(?P<type>'),
    ),
    *in_file(
        "core/store/sqlserver/rows.py",
        f"{HOUSE} {PARITY} {UNIT}/test_batch.py",
        (
            "keys of different case are one key on the server",
            "{f' {BY_CODE_POINT}' if str in types_of(hints[name]) else ''}",
            "",
        ),
        (
            "an older state takes the place of a newer one on the server",
            "t.partition_id <> @partition_id OR t.sequence_number < r.sequence_number",
            "t.partition_id <> @partition_id OR t.sequence_number > r.sequence_number",
        ),
        (
            "a replay replaces the state of a different partition on the server",
            "_GIVES_WAY = f\" WHERE {server_part(of_partition('t'))} AND",
            '_GIVES_WAY = f" WHERE',
        ),
    ),
    *in_file(
        "core/settle/store/partitions.py",
        f"{UNIT}/test_server_database.py",
        (
            "a race for a new state counts as refused data",
            "races = (table.name,) if table.key else ()",
            "races = ()",
        ),
        (
            "a race for the first checkpoint counts as refused data",
            'keeps="commit_number", races=key)',
            'keeps="commit_number")',
        ),
    ),
)
