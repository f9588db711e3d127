"""Mutants of the order of a key's events: what is held, what is freed, and when a partition holds too much."""

from tests.mutants.mutant import in_file

HELD, REPLAYS = "tests/contract/test_held_letters.py", "tests/contract/test_held_replays.py"
ORDER, LIMIT, FUSE = (
    f"tests/unit/core/{name}.py" for name in ("settle/test_order", "ingest/test_held", "ingest/test_fuse")
)

MUTANTS = (
    *in_file(
        "core/settle/order.py",
        ORDER,
        ("all events of a key wait for its first letter", "        self.note(held)\n", ""),
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
        "core/model/commits.py",
        ORDER,
        (
            "the key of a new letter is forgotten",
            "or new <= self.keys else OpenKeys(self.keys | new)",
            "or new is not None else self",
        ),
    ),
    *in_file(
        "core/ingest/held.py",
        LIMIT,
        ("more letters are held than the limit", "if len(held) <= room:", "if len(held) <= 10 * room + 10:"),
        ("each batch asks for open letters", "if not asked:", "if asked is None:"),
        (
            "a key whose letters are settled is asked for ever",
            "state.open_keys.minus(asked - found.keys())",
            "state.open_keys.minus(frozenset())",
        ),
        (
            "held letters of earlier batches do not count",
            "policy.held_limit - store.count_held(commit.state)",
            "policy.held_limit",
        ),
    ),
    *in_file(
        "core/ingest/ingest.py",
        LIMIT,
        (
            "a part of a batch clears the stop",
            "held=not is_cut)",
            "held=True)",
        ),
    ),
    *in_file(
        "core/model/commits.py",
        LIMIT,
        ("a process forgets the letters of its commit", "keys = keys.plus(", "keys.plus("),
    ),
    *in_file(
        "core/settle/store/held.py",
        f"{HELD} {REPLAYS}",
        (
            "a batch leaves an event held after a letter that is settled",
            "if before else []",
            "if before is None else []",
        ),
        (
            "a batch does not see the letter that a replay opened",
            'return [Step("stay_in_order", values, expect=1, otherwise=otherwise)]',
            'return [Step("stay_in_order", values)]',
        ),
    ),
    *in_file(
        "core/letters/store/letters.py",
        HELD,
        (
            "a resolved letter frees no letter",
            '            Step("free_letters", freed),\n            Step("record_attempts"',
            '            Step("record_attempts"',
        ),
        (
            "a discarded letter frees no letter",
            '        Step("free_letters", freed),\n        *recorded,\n',
            "        *recorded,\n",
        ),
        (
            "a freed letter has no attempt that records it",
            '            Step("record_freed", {**freed, "done_by": commit.invocation_id}),\n',
            "",
        ),
    ),
    *in_file(
        "core/letters/retry.py",
        HELD,
        ("letters that are freed stay claimed and untried", "            self.freed += freed\n", ""),
        ("a chunk goes on beyond its time", " and keeper.clock.now() < self.until", ""),
        (
            "held letters stay held when the order ends",
            '    if policy.order == "none":\n',
            '    if policy.order == "never":\n',
        ),
    ),
    *in_file(
        "core/replay/store/scripts.py",
        REPLAYS,
        ("a replay leaves letters out of order", "if commit.state.open_keys is None or not commit.keys:", "if True:"),
    ),
    *in_file(
        "core/replay/run.py",
        REPLAYS,
        ("a dry run forgets what it would leave open", "if keys and self.is_dry_run:", "if False:"),
    ),
    *in_file(
        "core/ingest/fuse.py",
        FUSE,
        ("a busy key looks like an outage", ' if one.status != "held"]', "]"),
        ("a batch of held events ends an outage", "return stop is None  #", "return True  #"),
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
        ("a retry takes letters that it has already", "   AND d.held_behind IN (", "   AND d.held_behind NOT IN ("),
        (
            "a retry takes a freed letter from a different claim",
            "AND status = 'waiting' AND due_at = :freed_at AND claimed_by = :freed_by",
            "AND due_at >= :freed_at AND claimed_by <> :claimed_by AND :freed_by <> ''",
        ),
        (
            "all held letters of a key are freed at once when the order ends",
            "                 AND o.sequence_number < d.sequence_number)\n        ORDER BY",
            "                 AND o.sequence_number < -d.sequence_number)\n        ORDER BY",
        ),
        (
            "a replay puts the letters of a key in the wrong order",
            "(PARTITION BY o.partition_key ORDER BY o.sequence_number) AS earlier",
            "(PARTITION BY o.partition_key ORDER BY o.sequence_number DESC) AS earlier",
        ),
    ),
)
