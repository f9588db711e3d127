"""Mutants of redrives: letters that are moved twice or never, a rate that is not kept, and jobs that do not stop."""

from tests.mutants.mutant import in_file

JOBS, TOGETHER, ORDERS, RUN, HTTP = (
    "tests/contract/test_redrives.py",
    "tests/contract/test_redrives_together.py",
    "tests/property/test_redrives.py",
    "tests/unit/core/letters/test_redrive_run.py",
    "tests/unit/handlers/operations/test_redrives.py",
)

MUTANTS = (
    *in_file(
        "sql/queries/redrive_piece.sql",
        JOBS,
        ("a page of moved letters begins the piece again", "n.key > :after_place", "n.key >= :after_place"),
    ),
    *in_file(
        "core/letters/redrive.py",
        JOBS,
        (
            "a redrive takes letters that failed after its request",
            "min(wanted.failed_before, requested_at)",
            "wanted.failed_before",
        ),
        ("a pause between pieces is forgotten", "begun_at + timedelta(seconds=letters / per_second)", "begun_at"),
        ("a piece is larger than its rate", "min(TRANSACTION_LIMIT, per_second // 2)", "TRANSACTION_LIMIT"),
        (
            "selections of other letters overlap",
            "(one.partition_id, one.numbers) for one in ranges",
            "0 for one in ranges",
        ),
    ),
    *in_file(
        "sql/queries/redrive_piece.sql",
        HTTP,
        (
            "the outcome of a retry is that of an earlier one",
            "a.attempt > m.attempt\n          AND a.kind IN ('retry', 'exhaust', 'discard', 'replay'));",
            "a.kind IN ('retry', 'exhaust', 'discard', 'replay'));",
        ),
        (
            "a letter that is freed counts as tried",
            "AND a.kind IN ('retry', 'exhaust', 'discard', 'replay'));",
            "AND a.kind IN ('retry', 'exhaust', 'discard', 'replay', 'requeue'));",
        ),
    ),
    *in_file(
        "core/letters/redrive.py",
        HTTP,
        (
            "a retry that resolved nothing has helped",
            'return "helped_in_part" if self.resolved else "did_not_help"',
            'return "helped_in_part"',
        ),
    ),
    *in_file(
        "core/letters/redrive.py",
        ORDERS,
        ("a discard walks up", 'return self.move == "requeue"', "return True"),
    ),
    *in_file(
        "core/letters/redrive_run.py",
        JOBS,
        ("a redrive of a different count is opened", "if total != order.expected_count or not total", "if not total"),
    ),
    *in_file(
        "core/letters/store/redrives.py",
        JOBS,
        (
            "a letter that had changed is not counted",
            "unmoved = max(0, progress.range.letters - progress.report.moved)",
            "unmoved = 0",
        ),
        ("a walk reads the rest of a partition in one statement", '"most": LOOKED_AT,', '"most": 1_000_000,'),
        (
            "a walk ends where many letters are others",
            "if not numbers and len(looked_at) < LOOKED_AT:",
            "if not numbers:",
        ),
    ),
    *in_file(
        "handlers/operations/redrives.py",
        HTTP,
        ("a lost database holds up the answer to a redrive", "with in_time(AT_ONCE):", "with in_time():"),
        ("the filter of a redrive shows a partition key", '{"partition_key": "hidden"}', "{}"),
        (
            "the sample of a preview quotes its events",
            "[hide_letter(letter_answer(one)) for one",
            "[letter_answer(one) for one",
        ),
    ),
)
