"""Mutants of the store that both engines share: scripts, memory, patience, keys, owners, migrations and values."""

from tests.mutants.mutant import in_file

UNIT = "tests/unit/core/store"

MUTANTS = (
    *in_file(
        "core/settle/store/partitions.py",
        "tests/sql/test_lock_order.py",
        (
            "a commit writes letters before rows",
            'steps.append(Step("add_letter", place_of(commit.state), many=values))',
            'steps.insert(1, Step("add_letter", place_of(commit.state), many=values))',
        ),
        (
            "a commit writes gaps before the ledger",
            'steps.append(Step("settle_gap", place_of(commit.state), many=gaps))',
            'steps.insert(len(steps) - 1, Step("settle_gap", place_of(commit.state), many=gaps))',
        ),
    ),
    *in_file(
        "core/settle/store/partitions.py",
        "tests/contract/test_commit.py",
        (
            "a commit writes no ledger row",
            'steps.append(Step("record_batch", with_checksums("batch", {**_ledger_values(commit), **at})))',
            "pass",
        ),
        (
            "a commit from an older state is kept",
            'values["expected"] = commit.expected',
            'values["expected"] = last.sequence_number - 1',
        ),
        (
            "the ledger has the first number of the checkpoint",
            '"first_sequence_number": commit.first,',
            '"first_sequence_number": commit.last.sequence_number,',
        ),
    ),
    *in_file(
        "core/settle/store/partitions.py",
        f"{UNIT}/test_memory.py",
        (
            "a commit in doubt leaves the partition in memory",
            "            if self._memory:\n                self._memory.forget(commit.partition)\n",
            "            if self._memory is ...:\n                self._memory.forget(commit.partition)\n",
        ),
        (
            "a batch reads its partition although it committed the one before",
            "self._memory.remember(commit.state_after(number))",
            "self._memory.forget(commit.partition)",
        ),
        (
            "references outlive the state of their partition",
            "            self._memory.forget_references()\n",
            "",
        ),
        (
            "a commit leaves the references that it overwrote",
            "                self._memory.forget_states_of(commit.settled)\n",
            "                pass\n",
        ),
    ),
    *in_file(
        "core/settle/store/partitions.py",
        "tests/contract/test_gaps.py",
        (
            "a gap is noted from a state that is too old",
            "if not self._database.run(noting_script(state, gap, found_at)).kept[NOTED]:",
            "if self._database.run(noting_script(state, gap, found_at)).kept[NOTED] < 0:",
        ),
        (
            "the parts of a gap that begin elsewhere are not stored",
            'Step("add_gap", {**place_of(commit.state), **at}, many=gaps,',
            'Step("add_gap", {**place_of(commit.state), **at}, many=gaps[:1],',
        ),
    ),
    *in_file(
        "core/settle/store/partitions.py",
        "tests/contract/test_stops.py",
        ("the detail of a stop has any length", "cut(detail, STOP_LENGTH)", "detail"),
    ),
    *in_file(
        "core/settle/store/partitions.py",
        "tests/contract/test_letters.py",
        ("a letter has no body", '"body": event.body if letter.keeps_body else b"",', '"body": b"",'),
        ("a lone surrogate in an error loses the letter", '"error": storable(letter.error),', '"error": letter.error,'),
        (
            "a poison letter is due",
            'first_due_at if letter.status == "waiting" else None',
            "first_due_at",
        ),
    ),
    *in_file(
        "core/store/memory.py",
        f"{UNIT}/test_memory.py",
        (
            "references are remembered for ever",
            "if row is not None and read_at > since:",
            "if row is not None:",
        ),
        (
            "memory of references has no bound",
            "if len(share) > MOST_REFERENCES // SHARES:",
            "if len(share) > MOST_REFERENCES:",
        ),
        (
            "a fault leaves the references of most shares",
            "                share.clear()\n",
            "                self._references[0].clear()\n",
        ),
        ("a fault forgets every partition", "self._states.pop(partition, None)", "self._states.clear()"),
    ),
    *in_file(
        "core/store/database.py",
        f"{UNIT}/test_patience.py",
        (
            "patience repeats a write whose outcome is unknown",
            "except StoreUnavailable as fault:",
            "except Exception as fault:",
        ),
        (
            "patience outlasts the invocation",
            "min(self._waiting.monotonic() + self._patience, _ends_at.get())",
            "self._waiting.monotonic() + self._patience",
        ),
        ("a reconnect does not pause", "isinstance(fault, StoreUnreachable) else", "not fault else"),
        (
            "pauses of patience do not grow",
            "pause = min(2 * pause, LONGEST_PAUSE)",
            "pause = min(pause, LONGEST_PAUSE)",
        ),
        ("pauses of patience have no ceiling", "pause = min(2 * pause, LONGEST_PAUSE)", "pause = 2 * pause"),
        (
            "a rehearsal with patience is committed",
            "self._database.run(script, rehearse)",
            "self._database.run(script)",
        ),
        (
            "patience sleeps beyond its end",
            "if self._waiting.monotonic() + rest >= deadline:",
            "if self._waiting.monotonic() >= deadline:",
        ),
    ),
    *in_file(
        "core/store/columns.py",
        f"{UNIT}/test_checksum.py",
        ("a zero loses its sign after its checksum was made", "_sound(float(value)) + 0.0", "_sound(float(value))"),
    ),
    *in_file(
        "core/ledger/store/changed.py",
        f"{UNIT}/test_checksum.py",
        (
            "a commit whose rows have changed is not named",
            "return self.rows_checksum != total",
            "return self.rows_checksum is None",
        ),
    ),
    *in_file(
        "core/store/connect.py",
        f"{UNIT}/test_connect.py",
        (
            "a deadlock fails the request of an operator",
            "return PatientDatabase(database, min(",
            "return database or ((",
        ),
        (
            "a person waits until a lost connection is back",
            "OPERATORS_PATIENCE = timedelta(seconds=3)",
            "OPERATORS_PATIENCE = timedelta(hours=3)",
        ),
    ),
    *in_file(
        "core/settle/store/gaps.py",
        "tests/contract/test_gaps.py",
        (
            "a further try of a gap looks like a conflict",
            'Step("note_gap_again", values, counts=NOTED)',
            'Step("note_gap_again", values)',
        ),
    ),
    *in_file(
        "core/model/aggregates.py",
        "tests/sql/test_aggregate_ddl.py",
        ("a staged key is longer than SQL Server allows", "size = STAGED_BYTES + sum(", "size = sum("),
    ),
    *in_file(
        "core/store/row_keys.py",
        f"tests/contract/test_states.py tests/contract/test_refused_rows.py {UNIT}/test_rows.py",
        (
            "the oldest state of a commit is kept",
            "each for each in values}  # in order",
            "each for each in reversed(list(values))}  # in order",
        ),
        ("two commits lock states in the order of their events", "for key in sorted(newest)", "for key in newest"),
        ("a key that ends with a space is stored", 'text[-1:] == " "', 'text == " "'),
        (
            "a key of an aggregate that ends with a space is stored",
            "(*row_table(row_class).key, *grouped_by)",
            "row_table(row_class).key",
        ),
    ),
    *in_file(
        "core/store/columns.py",
        f"{UNIT}/test_columns.py {UNIT}/test_sqlite_database.py",
        ("a key that no row can have is compared", "return _is_number(value)", "return True"),
        (
            "a number that is not finite becomes NULL",
            "if isinstance(value, float | Decimal) and not _is_number(value):",
            "if isinstance(value, float | Decimal) and value == 1e500:",
        ),
        ("NaN in a column of whole numbers becomes NULL", "    return _sound(value)\n", "    return value\n"),
        ("NaN in a column of texts becomes a text", "else _sound(value))\n", "else value)\n"),
        ("the text of a decimal fills the memory", " and abs(value.adjusted()) <= FARTHEST", ""),
        (
            "a time without a zone is taken for UTC",
            "    if moment.tzinfo is None:\n        raise ValueError",
            "    if moment is None:\n        raise ValueError",
        ),
        ("times without a fraction are stored shorter", 'f"{text[:-1]}.000000Z"', "text"),
    ),
    *in_file(
        "core/store/migrations.py",
        f"{UNIT}/test_schema.py {UNIT}/test_room_migrations.py",
        ("older code runs on a schema that breaks it", "if row.name.startswith(BREAKING):", 'if row.name == "":'),
        ("a store runs on an older schema", "    if lacking:\n", "    if False:\n"),
        ("a migration that an owner added counts as applied", "if row.app == OURS and any(", "if False and any("),
        ("a number may be there twice", "if before and version == before[-1].version:", "if False:"),
        ("the files of the engines may differ", "if differing := ", "if not ENGINES and "),
    ),
    *in_file(
        "core/store/sqlite/schema.py",
        f"{UNIT}/test_schema.py",
        ("a commit is not durable", '"PRAGMA synchronous = FULL"', '"PRAGMA synchronous = NORMAL"'),
        (
            "a migration that fails leaves half of itself",
            'connection.execute("BEGIN IMMEDIATE")',
            'connection.execute("SELECT 1")',
        ),
    ),
    *in_file(
        "core/store/sqlserver/schema.py",
        f"{UNIT}/test_server_schema.py",
        (
            "the server's migrations run without a lock",
            "        _lock(session, run)\n",
            "",
        ),
        (
            "only part of a migration goes to the named schema",
            'session.run(in_schema(f"SET NOCOUNT ON;\\n{text}", schema))',
            'session.run(f"SET NOCOUNT ON;\\n{text}")',
        ),
        ("a grown table makes its migration time out", "Deadlines(statement=None)", "Deadlines()"),
        (
            "a migration is more than one transaction",
            '    session.run(_script("begin_migration"))\n',
            "",
        ),
        ("an index is built online where no edition can", "[-1][0][0] in ONLINE", "[-1][0][0] != 0"),
        (
            "a second migration does not wait",
            "if not _locks(session, run.wait):",
            "if not _locks(session, timedelta(0)):",
        ),
    ),
    *in_file(
        "core/worker/ownership.py",
        f"{UNIT}/test_ownership.py tests/unit/core/test_ownership.py",
        (
            "an owner keeps fewer partitions than its share",
            "share = -(-len(standing) // len(owners))",
            "share = len(standing) // len(owners)",
        ),
        (
            "a claim that was lost comes back as won",
            "if await asyncio.to_thread(self._write, claim) and wanted",
            "if (await asyncio.to_thread(self._write, claim) or 1) and wanted",
        ),
        (
            "a partition that was given away comes back as owned",
            " and wanted is not given_away:\n                won.append",
            ":\n                won.append",
        ),
        ("an owner has the time of its own clock", "self._now() - self._ahead)", "self._now())"),
        ("an ownership keeps its etag", "str(uuid.uuid4()), self._now()", '"etag", self._now()'),
    ),
    *in_file(
        "core/api/idempotency.py",
        "tests/unit/core/test_idempotency.py",
        (
            "a key answers a different request",
            "if kept.request_hash != claim.request_hash:",
            "if not kept.request_hash:",
        ),
        ("a key is free while its request runs", 'if kept.claimed_at < claim.abandoned_before else "in_work"', ""),
        ("an answer never expires", "if kept is None or kept.expires_at <= claim.claimed_at:", "if kept is None:"),
    ),
    *in_file(
        "core/api/idempotency.py",
        "tests/contract/operator/test_keys.py",
        (
            "a released key waits until its request would be dead",
            "claim.abandoned_before - timedelta(seconds=1)",
            "claim.claimed_at",
        ),
        (
            "keys that have expired stay",
            '        write(self._database, "idempotency key", "forget_keys", claimed_at=values["claimed_at"])\n',
            "",
        ),
    ),
)
