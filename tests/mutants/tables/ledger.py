"""Mutants of the books: the balance, the audit, the watch, and the runs of aggregation."""

from tests.mutants.mutant import in_file

UNIT = "tests/core"
TOTALS = "    totals = store.read_totals(id) or NO_TOTALS\n"
ENDS = "    ends = store.read_ledger_ends(id)\n"

MUTANTS = (
    *in_file(
        "core/ledger/totals.py",
        f"{UNIT}/ledger/test_totals.py",
        (
            "books with more outcomes than numbers are balanced",
            "return self.is_recorded and self.accounted == self.numbers",
            "return self.is_recorded and self.accounted >= self.numbers",
        ),
        (
            "letters that are missing do not show",
            "return self.open + self.settled + self.purged == self.dead_lettered + self.replayed",
            "return self.open + self.settled <= self.dead_lettered + self.replayed",
        ),
        ("held events have no outcome", "return self.dead_lettered + self.held", "return self.dead_lettered"),
    ),
    *in_file(
        "core/ledger/explain.py",
        f"{UNIT}/ledger/test_explain.py",
        ("a full page passes over places", "found[search.most - 1].sequence_number)", "begins)"),
    ),
    *in_file(
        "core/ledger/explain.py",
        "tests/core/ledger/test_explain.py",
        ("a search passes over the rows among many letters", "begins = walked[-1][0]", "pass"),
    ),
    *in_file(
        "core/ledger/store.py",
        "tests/core/ledger/test_store.py",
        ("a lost letter counts as settled where each is counted", "if statuses is STATUSES:", "if not statuses:"),
    ),
    *in_file(
        "core/audit/audit.py",
        f"{UNIT}/audit/test_audit.py",
        (
            "a ledger that ends early passes the audit",
            "if ledger.last < ledger.checkpoint:",
            "if ledger.checkpoint < 0:",
        ),
        (
            "a ledger that ends late passes the audit",
            "if ledger.last > ledger.checkpoint >= 0:",
            "if ledger.checkpoint < 0:",
        ),
        (
            "a commit without a row passes the audit",
            "if piece.rows != commits.last - commits.after:",
            "if piece.rows < 0:",
        ),
        (
            "outcomes that do not sum to the numbers pass the audit",
            "if not ledger.holes and ledger.accounted != ledger.last - ledger.first + 1:",
            "if ledger.holes and ledger.accounted != ledger.last - ledger.first + 1:",
        ),
    ),
    *in_file(
        "core/audit/audit.py",
        "tests/core/audit/test_store.py",
        (
            "totals of a checkpoint that are wrong pass the audit",
            "    if counted.equals(",
            "    if not counted.equals(",
        ),
    ),
    *in_file(
        "core/audit/audit.py",
        "tests/core/audit/test_store.py",
        ("a range that comes between two statements is a fault", TOTALS + ENDS, ENDS + TOTALS),
    ),
    *in_file(
        "sql/queries/ledger_audit.sql",
        "tests/simulation/test_tampering.py",
        (
            "the audit sees no range that overlaps",
            " WHERE r.first_sequence_number <> r.previous_last + 1\n ORDER BY",
            " WHERE r.first_sequence_number > r.previous_last + 1\n ORDER BY",
        ),
    ),
    *in_file(
        "sql/queries/ledger_audit.sql",
        "tests/simulation/test_tampering.py",
        (
            "the totals of a commit are compared with themselves",
            "n.total_written <> n.written_before + n.counts * n.written",
            "n.total_written <> n.total_written",
        ),
    ),
    *in_file(
        "sql/queries/event_hub_checkpoint.sql",
        "tests/core/ledger/test_store.py",
        ("a batch adds no outcome to the totals", "written = written + :written,", "written = :written,"),
    ),
    *in_file(
        "sql/queries/purge.sql",
        "tests/core/purge/test_purge.py",
        ("a piece forgets the letters of those before it", "purged_letters + :letters,", ":letters,"),
    ),
    *in_file(
        "core/audit/audit.py",
        "tests/core/purge/test_purge.py",
        ("purged commits may come back", "oldest <= purged.commit_number:", "oldest < 0:"),
    ),
    *in_file(
        "core/aggregation/runs.py",
        f"{UNIT}/aggregation/test_runs.py",
        (
            "a job is submitted twice while the engine is silent",
            "patience = limits.grace if answer.answered else limits.deadline",
            "patience = limits.grace",
        ),
    ),
    *in_file(
        "core/aggregation/tick.py",
        f"{UNIT}/aggregation/test_tick.py",
        (
            "the engine is called before the intent of a run is stored",
            "if own.store.open_run(run, order)",
            "if _submit(own, run) and own.store.open_run(run, order)",
        ),
    ),
    *in_file(
        "core/aggregation/store.py",
        "tests/core/aggregation/test_slices.py",
        (
            "a result is committed from a cut that has moved",
            'Step("move_cut", values, expect=1, otherwise=MovedOn),',
            'Step("move_cut", values),',
        ),
    ),
    *in_file(
        "core/store/sqlite/statements.py",
        "tests/core/aggregation/test_slices.py",
        ("the hash of the staged rows is not compared", " AND d.rows_hash = f.rows_hash\\n", "\\n"),
    ),
    *in_file(
        "core/aggregation/tick.py",
        "tests/core/aggregation/test_slices.py",
        ("a commit begins again at the first slice", "if one.number >= first", "if one.number >= 0"),
    ),
    *in_file(
        "sql/queries/aggregation_run.sql",
        "tests/core/aggregation/test_slices.py",
        (
            "slices are committed twice",
            " AND committed_slices = :expected_slices\n   AND NOT EXISTS",
            " AND committed_slices >= :expected_slices\n   AND NOT EXISTS",
        ),
        ("a run fails whose slices are committed", "(committed_slices = 0 OR kind = 'repair')", "1 = 1"),
    ),
)
