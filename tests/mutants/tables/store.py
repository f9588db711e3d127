"""Mutants of the store that both engines share: scripts, memory, patience, keys, owners, migrations and values."""

from tests.mutants.mutant import in_file

UNIT = "tests/core/store"

MUTANTS = (
    *in_file(
        "core/settle/partition_store.py",
        "tests/core/settle/test_commit.py",
        ("a commit writes no ledger row", 'steps.append(Step("record_batch", recorded))', "pass"),
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
        "core/settle/partition_store.py",
        f"{UNIT}/test_memory.py",
        (
            "a commit in doubt leaves the partition in memory",
            "            if self._memory:\n                self._memory.forget(commit.partition)\n",
            "            if self._memory is ...:\n                self._memory.forget(commit.partition)\n",
        ),
        ("references outlive the state of their partition", "            self._memory.forget_references()\n", ""),
    ),
    *in_file(
        "core/settle/partition_store.py",
        "tests/core/settle/test_partition_gaps.py",
        (
            "a gap is noted from a state that is too old",
            "if not self._database.run(noting_script(state, gap, found_at)).kept[NOTED]:",
            "if self._database.run(noting_script(state, gap, found_at)).kept[NOTED] < 0:",
        ),
    ),
    *in_file(
        "core/settle/partition_store.py",
        "tests/core/letters/test_store.py",
        ("a letter has no body", '"body": event.body if letter.keeps_body else b"",', '"body": b"",'),
        ("a lone surrogate in an error loses the letter", '"error": storable(letter.error),', '"error": letter.error,'),
    ),
    *in_file(
        "core/store/database.py",
        f"{UNIT}/test_database.py",
        (
            "patience repeats a write whose outcome is unknown",
            "except StoreUnavailable as fault:",
            "except Exception as fault:",
        ),
        (
            "a rehearsal with patience is committed",
            "self._database.run(script, rehearse)",
            "self._database.run(script)",
        ),
    ),
    *in_file(
        "core/settle/partition_store.py",
        "tests/core/settle/test_partition_gaps.py",
        (
            "a further try of a gap looks like a conflict",
            'Step("note_gap_again", values, counts=NOTED)',
            'Step("note_gap_again", values)',
        ),
    ),
    *in_file(
        "core/store/row_statements.py",
        f"tests/core/store/test_states.py tests/core/settle/test_isolate.py {UNIT}/test_rows.py",
        (
            "the oldest state of a commit is kept",
            "]): each for each in values}",
            "]): each for each in reversed(list(values))}",
        ),
        ("two commits lock states in the order of their events", "for key in sorted(newest)", "for key in newest"),
    ),
    *in_file(
        "core/store/migrations.py",
        f"{UNIT}/sqlite/test_schema.py {UNIT}/test_migrations.py",
        ("older code runs on a schema that breaks it", "if row.name.startswith(BREAKING):", 'if row.name == "":'),
        ("a migration whose text was changed passes", "if ours.text_hash != row.text_hash:", "if not row.text_hash:"),
    ),
    *in_file(
        "core/store/sqlite/schema.py",
        f"{UNIT}/sqlite/test_schema.py",
        ("a commit is not durable", '"PRAGMA synchronous = FULL"', '"PRAGMA synchronous = NORMAL"'),
        (
            "a migration that fails leaves half of itself",
            'connection.execute("BEGIN IMMEDIATE")',
            'connection.execute("SELECT 1")',
        ),
    ),
    *in_file(
        "core/worker/ownership.py",
        f"{UNIT}/test_ownership.py tests/core/worker/test_ownership.py",
        (
            "a claim that was lost comes back as won",
            'if await asyncio.to_thread(self._write, ownership, wanted.get("etag")) and wanted',
            'if (await asyncio.to_thread(self._write, ownership, wanted.get("etag")) or 1) and wanted',
        ),
    ),
)
