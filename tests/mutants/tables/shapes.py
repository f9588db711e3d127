"""Mutants of the shapes of batches: their texts, the types that they declare, and when they answer."""

from tests.mutants.mutant import in_file

UNIT, HOUSE = "tests/unit/core/store", "tests/sql/test_house_rules.py"
ORDER, COLLATIONS = "tests/sql/test_lock_order.py", "tests/sql/test_collations.py"
INCARNATIONS = "tests/contract/test_incarnations.py"

MUTANTS = (
    *in_file(
        "core/settle/store/partitions.py",
        ORDER,
        (
            "a batch writes its tables in the order of its events",
            "in in_table_order(settled.rows):",
            "in settled.rows:",
        ),
    ),
    *in_file(
        "core/replay/store/scripts.py",
        ORDER,
        (
            "a replay writes its tables in the order of the transform",
            "(step for row_class in in_table_order(commit.row_classes)",
            "(step for row_class in commit.row_classes",
        ),
    ),
    *in_file(
        "core/store/sqlserver/windows.py",
        COLLATIONS,
        ("sums of two collations are compared", "d.sums = f.sums {BY_CODE_POINT}", "d.sums = f.sums"),
    ),
    *in_file(
        "sql/queries/task.sql",
        COLLATIONS,
        (
            "a purged replay is found by a text of JSON",
            " = r.replay_id COLLATE Latin1_General_100_BIN2",
            " = r.replay_id",
        ),
    ),
    *in_file(
        "core/store/sqlserver/odbc.py",
        f"{UNIT}/test_odbc.py",
        ("a text is declared by its length", "else TEXT\n", "else (-9, len(value), 0)\n"),
        ("a number is declared by its size", "return NUMBER if isinstance(value, int) else None", "return None"),
    ),
    *in_file(
        "core/store/sqlserver/batch.py",
        f"{UNIT}/test_batch.py",
        ("a NULL is sent", "if values[param.name] is not None]", "]"),
        (
            "a rehearsal without declared columns answers inside its transaction",
            "is_collected=rehearse and step.answers)",
            "is_collected=rehearse and step.answers and bool(_query(step.statement).answers))",
        ),
    ),
    *in_file(
        "core/store/sqlserver/batch.py",
        HOUSE,
        (
            "a rehearsal answers inside its transaction",
            "is_collected=rehearse and step.answers)",
            "is_collected=False)",
        ),
        ("the rows of a rehearsal have any order", " FROM @answer AS a ORDER BY a.place;", " FROM @answer AS a;"),
    ),
    *in_file(
        "sql/queries/retracted_row.sql",
        HOUSE,
        ("a rehearsal cuts its rows", "row nvarchar(max)\n", "row nvarchar(4000)\n"),
    ),
    *in_file(
        "core/store/queries.py",
        f"{UNIT}/test_queries.py",
        ("a filter that is missing stays", "if missing.isdisjoint(_IF_GIVEN.findall(line))", ""),
    ),
    *in_file(
        "core/store/sqlite/database.py",
        "tests/contract/operator/test_listing.py",
        (
            "a filter that is given is left out",
            "for name in query.optional if values[name] is None}",
            "for name in query.optional}",
        ),
    ),
    *in_file(
        "core/letters/store/letters.py",
        INCARNATIONS,
        ("a keeper forgets its stream", "self._memory.last_stream_id_of(stream)", "self._memory.stream_id_of(stream)"),
        (
            "a claim after a look reads the stream again",
            "            self._memory.remember_stream(stream, stream_id)\n",
            "            pass\n",
        ),
        (
            "a keeper stays with a closed stream",
            "            self._memory.forget_stream(stream)\n",
            "            pass\n",
        ),
    ),
    *in_file(
        "sql/queries/event_hub_dead_letter.sql",
        INCARNATIONS,
        (
            "a keeper does not learn that its stream is closed",
            "AND l.status = 'held' AND :frees_held = 1) AS h\n WHERE NOT EXISTS",
            "AND l.status = 'held' AND :frees_held = 1) AS h\n WHERE 1 = 1 OR NOT EXISTS",
        ),
    ),
)
