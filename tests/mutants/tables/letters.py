"""Mutants of dead letters: claims, leases, chunks, pauses, outcomes, moves, releases and redrives."""

from tests.mutants.mutant import in_file

UNIT = "tests/core"
SQL = "sql/queries/event_hub_dead_letter.sql"

MUTANTS = (
    *in_file(
        "core/model/letters.py",
        f"{UNIT}/model/test_letters.py",
        ("pauses do not grow", "self.factor ** (max(attempts, 1) - 1)", "self.factor ** 0"),
        ("a letter gets one attempt too many", "return attempts >= self.attempts", "return attempts > self.attempts"),
    ),
    *in_file(
        "core/model/letters.py",
        f"{UNIT}/model/test_letters.py",
        ("poison is tried again", '"poison": "exhausted",', '"poison": "waiting",'),
    ),
    *in_file(
        "core/letters/retry.py",
        f"{UNIT}/letters/test_retry.py",
        (
            "letters that were not tried stay claimed",
            "        if retry.left:\n",
            "        if retry.left and not letters:\n",
        ),
        (
            "a letter that may kill its process is not marked first",
            "self.keeper.store.begin_lone_try(self._held(run), now, now + self.keeper.letters.lease)",
            "assert now",
        ),
        (
            "letters that lost a claim are tried together",
            "(ordinary, *((letter,) for letter in whole if letter.lost_claims))",
            "(ordinary, tuple(letter for letter in whole if letter.lost_claims))",
        ),
        (
            "a letter takes the body of an event of a different hub",
            "if not is_same_instant(event.enqueued_at, letter.event.enqueued_at):",
            "if event.sequence_number < 0:",
        ),
        (
            "a letter that the database refuses without rows is tried for ever",
            "            self.left += [letter.sequence_number for letter in run]\n            return ()\n",
            "            raise\n",
        ),
    ),
    *in_file(
        "core/letters/retry.py",
        f"{UNIT}/letters/test_retry_under_faults.py",
        (
            "a fault leaves the letters claimed until the lease ends",
            "                release(held, keeper)\n",
            "                pass\n",
        ),
        (
            "a retry that was committed without an answer counts as lost",
            "stands = touched - held if isinstance(fault, CommitOutcomeUnknown) else set()",
            "stands = set[SequenceNumber]()",
        ),
    ),
    *in_file(
        "core/letters/plan.py",
        f"{UNIT}/letters/test_retry.py",
        (
            "a letter that killed three processes is tried again",
            "return letter.body_kept and letter.lost_claims < LOST_CLAIMS",
            "return letter.body_kept",
        ),
        (
            "attempts are not counted",
            "letter.attempts + 1, rules.letters.backoff",
            "letter.attempts, rules.letters.backoff",
        ),
        ("a filtered letter says that its rows were written", "if number in written else", "if settled else"),
    ),
    *in_file(
        "core/letters/retry.py",
        f"{UNIT}/letters/test_retry_under_faults.py",
        (
            "a release whose answer was lost is not sent again",
            "            found = keeper.store.move_letters(part)\n        moved",
            "            raise\n        moved",
        ),
    ),
    *in_file(
        "sql/queries/event_hub_dead_letter.sql",
        "tests/core/letters/test_claims.py tests/core/letters/test_moves.py",
        (
            "a claim that is sent again takes more letters",
            "AND h.status = 'retrying' AND h.claimed_by = :claimed_by);",
            "AND h.status = 'retrying' AND h.claimed_by = :claimed_by AND h.due_at < :claimed_at);",
        ),
        (
            "a claim reads the letters of a different claim",
            "   AND d.claimed_by = :claimed_by AND d.status = 'retrying';",
            "   AND :claimed_by <> '' AND d.status = 'retrying';",
        ),
        (
            "a move is made again when others have touched the letter since",
            "a.sequence_number = d.sequence_number AND a.touched_by = :move_id);",
            "a.sequence_number = d.sequence_number AND a.touched_by = '' || :move_id || '?');",
        ),
        (
            "a move that happened is reported as not done",
            "            THEN :move_id ELSE d.claimed_by END AS touched_by",
            "            THEN d.claimed_by ELSE d.claimed_by END AS touched_by",
        ),
    ),
    *in_file(
        "core/letters/store.py",
        "tests/core/letters/test_store.py",
        ("a retry commits letters that its claim has lost", "                expect=len(commit.outcomes),\n", ""),
        (
            "a retry leaves no row in the ledger",
            '            Step("record_change", {**shared, **change, "kind": "retry"}),\n',
            "",
        ),
        ("a retry writes no rows", "            *settled_row_steps(commit.settled, place),\n", ""),
    ),
    *in_file(
        "core/store/database.py",
        "tests/core/letters/test_clocks.py",
        (
            "letters are due by the clock of each process",
            "return replace(own, now=_Readings(lambda: read_time(database), age.total_seconds(), monotonic).now)",
            "return own",
        ),
    ),
    *in_file(
        SQL,
        "tests/core/letters/test_claims.py",
        (
            "a claim takes letters that are not due",
            "d.due_at <= :claimed_at\n",
            "(d.due_at <= :claimed_at OR d.due_at <= :latest)\n",
        ),
        ("a lease that ends counts no lost claim", "THEN lost_claims + 1\n", "THEN lost_claims\n"),
        (
            "a chunk begins under any claim",
            "AND status = 'retrying' AND claimed_by IN (:claimed_by, :run)",
            "AND status = 'retrying' AND :claimed_by <> :run || :run",
        ),
        (
            "a claim takes letters of all streams",
            "WHERE d.stream_id = :stream_id AND d.status IN ('waiting', 'retrying') AND d.due_at <= :claimed_at",
            "WHERE d.status IN ('waiting', 'retrying') AND d.due_at <= :claimed_at",
        ),
    ),
    *in_file(
        SQL,
        "tests/core/letters/test_store.py",
        (
            "a retry settles a letter of a different claim",
            "sequence_number = :sequence_number\n   AND status = 'retrying' AND claimed_by = :claimed_by;",
            "sequence_number = :sequence_number\n   AND status = 'retrying' AND :claimed_by <> '';",
        ),
    ),
    *in_file(
        SQL,
        "tests/core/letters/test_moves.py",
        (
            "a release takes the letters of a different claim",
            "AND (:claimed_by = '' OR d.claimed_by = :claimed_by)",
            "AND (1 OR d.claimed_by = :claimed_by)",
        ),
        ("a move takes any status", "CHARINDEX(',' || d.status || ',', :sources)", "CHARINDEX(',', :sources)"),
    ),
    *in_file(
        "sql/queries/dead_letter_attempt.sql",
        "tests/core/letters/test_moves.py tests/core/letters/test_store.py",
        (
            "a move that is sent twice leaves two attempts",
            "a.sequence_number = d.sequence_number AND a.touched_by = :touched_by);",
            "a.sequence_number = d.sequence_number AND a.touched_by IS NULL);",
        ),
        (
            "letters that a retry lost get an attempt",
            " AND d.claimed_by = :touched_by AND",
            " AND :touched_by <> '' AND",
        ),
    ),
    *in_file(
        "core/letters/redrive.py",
        "tests/core/letters/test_redrive.py",
        (
            "a redrive takes letters that failed after its request",
            "min(wanted.failed_before or END, requested_at)",
            "wanted.failed_before",
        ),
        (
            "selections of other letters overlap",
            "(one.partition_id, one.numbers) for one in ranges",
            "0 for one in ranges",
        ),
    ),
)
