"""Mutants of the order of a key's events: what is held, what is freed, and when a partition holds too much."""

from tests.mutants.mutant import in_file

HELD, REPLAYS = "tests/core/letters/test_held.py", "tests/core/replay/test_held.py"
ORDER, LIMIT = "tests/core/settle/test_settle.py", "tests/core/ingest/test_held.py"

MUTANTS = (
    *in_file(
        "core/settle/settle.py",
        ORDER,
        ("events wait for a letter that a person discarded", " and number not in self._discarded", ""),
        (
            "events without a key wait for each other",
            "None if key is None else self.last.get(key)",
            "self.last.get(key or '')",
        ),
    ),
    *in_file(
        "core/settle/settle.py",
        ORDER,
        (
            "events after one that fails are tried",
            "                order.note(letters[-1])\n",
            "                pass\n",
        ),
    ),
    *in_file(
        "core/ingest/ingest.py",
        LIMIT,
        ("more letters are held than the limit", "if len(held) <= room:", "if len(held) <= 10 * room + 10:"),
        (
            "held letters of earlier batches do not count",
            "policy.held_limit - store.count_held(commit.state)",
            "policy.held_limit",
        ),
    ),
    *in_file(
        "core/model/commits.py",
        LIMIT,
        ("a process forgets the letters of its commit", "keys = keys.plus(", "keys.plus("),
    ),
    *in_file(
        "core/settle/partition_store.py",
        f"{HELD} {REPLAYS}",
        (
            "a batch does not see the letter that a replay opened",
            'return [Step("stay_in_order", values, expect=1, otherwise=otherwise)]',
            'return [Step("stay_in_order", values)]',
        ),
    ),
    *in_file(
        "core/letters/store.py",
        HELD,
        (
            "a resolved letter frees no letter",
            '            Step("free_letters", freed),\n            Step("record_attempts"',
            '            Step("record_attempts"',
        ),
    ),
    *in_file(
        "sql/queries/held_letter.sql",
        f"{HELD} {REPLAYS}",
        (
            "a letter is freed while an earlier one of its key is open",
            "AND o.sequence_number < h.sequence_number) AS earlier",
            "AND o.sequence_number < -h.sequence_number) AS earlier",
        ),
        (
            "an exhausted letter holds no letter",
            "AND o.status IN ('waiting', 'retrying', 'held', 'exhausted') AND o.sequence_number < :before);",
            "AND o.status IN ('waiting', 'retrying', 'held') AND o.sequence_number < :before);",
        ),
        (
            "a retry takes a freed letter from a different claim",
            "AND status = 'waiting' AND due_at = :freed_at AND claimed_by = :freed_by",
            "AND due_at >= :freed_at AND claimed_by <> :claimed_by AND :freed_by <> ''",
        ),
        (
            "a replay puts the letters of a key in the wrong order",
            "(PARTITION BY o.partition_key ORDER BY o.sequence_number) AS earlier",
            "(PARTITION BY o.partition_key ORDER BY o.sequence_number DESC) AS earlier",
        ),
    ),
)
