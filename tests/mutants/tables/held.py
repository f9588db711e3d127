"""Mutants of the order of partition keys: what is held, what is freed, and when a partition holds too much."""

from tests.mutants.mutant import in_file

HELD, REPLAYS = "tests/contract/test_held_letters.py", "tests/contract/test_held_replays.py"
ORDER, LIMIT, FUSE = (
    f"tests/unit/core/{name}.py" for name in ("settle/test_order", "ingest/test_held", "ingest/test_fuse")
)
SEEDS = "tests/simulation/test_key_order.py"

MUTANTS = (
    *in_file(
        "core/settle/order.py",
        f"{ORDER} {REPLAYS}",
        ("events wait for a discarded one", " and number not in self._discarded", ""),
        ("events wait for the first of a key only", "        self.note(held)\n", ""),
        (
            "events without a key wait for each other",
            "None if key is None else self.last.get(key)",
            "self.last.get(key or '')",
        ),
    ),
    *in_file(
        "core/ingest/held.py",
        LIMIT,
        ("a partition holds more than its limit", "if len(held) <= room:", "if held:"),
        ("each batch asks for open letters", "if not asked:", "if asked is None:"),
    ),
    *in_file(
        "core/model/commits.py",
        LIMIT,
        ("a part of a batch clears the stop", "return not self.is_cut and ", "return "),
        ("a process forgets the letters of its commit", "keys = keys.plus(", "keys.plus("),
    ),
    *in_file(
        "core/store/held.py",
        f"{HELD} {REPLAYS} {SEEDS}",
        (
            "a batch does not see what a replay opened",
            "if state.open_keys is None or state.checkpoint is None:",
            "if True:",
        ),
        ("a batch frees nothing", "if before else []", "if before is None else []"),
    ),
    *in_file(
        "core/store/letters.py",
        HELD,
        ("a discard frees nothing", 'if move.move == "discard":', 'if move.move == "requeue":'),
        (
            "a retry frees nothing",
            '            Step("free_letters", freed),\n            Step("record',
            '            Step("record',
        ),
    ),
    *in_file(
        "core/store/replay_scripts.py",
        REPLAYS,
        ("a replay leaves letters out of order", "if commit.state.open_keys is None or not commit.keys:", "if True:"),
    ),
    *in_file(
        "core/replay/run.py",
        REPLAYS,
        ("a dry run forgets what it would leave open", "if keys and self.is_dry_run:", "if False:"),
    ),
    *in_file(
        "core/letters/retry.py",
        HELD,
        ("a chunk goes on beyond its time", " and trial.clock.now() < self.until", ""),
        (
            "without the order held letters stay held",
            '    if policy.order == "none":\n',
            '    if policy.order == "":\n',
        ),
    ),
    *in_file(
        "core/ingest/fuse.py",
        FUSE,
        ("a busy key looks like an outage", ' and letter.status != "held"\n', "\n"),
        ("a batch of held events ends an outage", "return stop is None  #", "return True  #"),
    ),
    *in_file(
        "sql/sqlite/queries/held_letter.sql",
        f"{HELD} {SEEDS}",
        (
            "a letter is freed before its turn",
            "AND o.sequence_number < h.sequence_number) AS earlier",
            "AND o.sequence_number < 0) AS earlier",
        ),
    ),
)
