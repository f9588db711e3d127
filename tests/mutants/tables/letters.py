"""Mutants of dead letters: claims, leases, chunks, lost claims, pauses, outcomes, moves and releases."""

from tests.mutants.mutant import in_file

UNIT = "tests/unit/core"
SQL = "sql/queries/event_hub_dead_letter.sql"

MUTANTS = (
    *in_file(
        "core/model/backoff.py",
        f"{UNIT}/model/test_backoff.py",
        ("pauses do not grow", "self.factor ** (max(attempts, 1) - 1)", "self.factor ** 0"),
        ("a letter gets one attempt too many", "return attempts >= self.attempts", "return attempts > self.attempts"),
        ("a pause grows beyond its ceiling", "if seconds < self.ceiling.total_seconds() else self.ceiling", ""),
    ),
    *in_file(
        "core/model/letters.py",
        f"{UNIT}/model/test_letters.py",
        ("poison is tried again", '"poison": "exhausted",', '"poison": "waiting",'),
        ("a letter that kills its process shares a chunk", "((each.lost_claims > 0, each", "((False, each"),
        ("a claim is cut into chunks that are too long", "numbers[start : start + most]", "numbers[start:]"),
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
            "keeper.store.begin_lone_try(self._held(run), now, now + keeper.letters.lease)",
            "assert now",
        ),
        (
            "letters that lost a claim are tried together",
            "return [ordinary, *((letter,) for letter in letters if letter.lost_claims)]",
            "return [ordinary, tuple(letter for letter in letters if letter.lost_claims)]",
        ),
        (
            "a letter takes the body of an event of a different hub",
            "(event.sequence_number, event.enqueued_at) != (own.sequence_number, own.enqueued_at)",
            "event.sequence_number != own.sequence_number",
        ),
        (
            "a hub that is down spends an attempt of each letter without a body",
            "except InfrastructureFault:\n                    self.left.append(letter.sequence_number)\n",
            "except InfrastructureFault:\n                    whole.append(letter)\n",
        ),
        (
            "a letter that the database refuses without rows is tried for ever",
            "            self.left += [letter.sequence_number for letter in run]\n            return ()\n",
            "            raise\n",
        ),
    ),
    *in_file(
        "core/letters/retry.py",
        f"{UNIT}/letters/test_retry.py::TestProcessKillers::test_are_not_taken_up_again_under_a_claim_that_died",
        (
            "a chunk of a claim that died begins again",
            "begun = replace(chunk, claimed_by=str(keeper.clock.new_id()))",
            "begun = chunk",
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
        (
            "letters that the claim lost are tried nevertheless",
            "again = tuple(letter for letter in run if letter.sequence_number in held)",
            "again = run",
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
        (
            "a letter that failed is due at once",
            "due_at = rules.clock.now() + backoff.pause(attempts, rules.clock.chance())",
            "due_at = rules.clock.now()",
        ),
        ("a filtered letter says that its rows were written", "if number in written else", "if settled else"),
    ),
    *in_file(
        "core/letters/moves.py",
        f"{UNIT}/letters/test_moves.py",
        ("a released letter is due at once", "now + pause, ", "now, "),
        (
            "a release whose answer was lost is not sent again",
            "            found = keeper.store.move_letters(part)\n        moved",
            "            raise\n        moved",
        ),
        (
            "letters that are not released are counted",
            "letter.touched_by == move.move_id for",
            "letter.touched_by != '' for",
        ),
    ),
    *in_file(
        "core/model/letters.py",
        f"{UNIT}/letters/test_redrive_run.py",
        ("an order of thousands is one transaction", "TRANSACTION_LIMIT = 1_000", "TRANSACTION_LIMIT = 10_000"),
    ),
    *in_file(
        "handlers/operations/redrives.py",
        "tests/unit/handlers/operations/test_redrives.py",
        (
            "a fault fails the request whose task goes on",
            "        except InfrastructureFault as fault:\n            log.warning(",
            "        except ZeroDivisionError as fault:\n            log.warning(",
        ),
        (
            "a task that goes on is answered as done",
            "return begun(done) if done.status in OPEN else Answer(done)",
            "return Answer(done)",
        ),
        ("a redrive with a rate sleeps in its request", "job.task if body.per_second else", "job.task if False else"),
    ),
    *in_file(
        "handlers/api.py",
        "tests/unit/handlers/operations/test_redrives.py",
        ("a task that is done is driven", 'if task["status"] in OPEN_TASKS:', "if task:"),
    ),
    *in_file(
        "sql/queries/event_hub_dead_letter.sql",
        "tests/contract/test_claims.py tests/contract/test_moves.py",
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
        "core/letters/store/letters.py",
        "tests/contract/test_retries.py",
        (
            "a retry commits letters that its claim has lost",
            "                expect=len(commit.outcomes),\n",
            "",
        ),
        (
            "a retry leaves no attempt",
            '            Step("record_attempts", {**freed, **_retry_attempt_values(commit, at)}),\n',
            "",
        ),
        (
            "a retry leaves no row in the ledger",
            '            Step("record_change", with_checksums("retry", {**shared, **_retry_values(commit)})),\n',
            "",
        ),
        ("a retry writes no rows", "            *row_steps(commit.settled, place),\n", ""),
        (
            "a letter that was not tried loses an attempt",
            '"attempted": int(outcome.attempted),',
            '"attempted": 1,',
        ),
    ),
    *in_file(
        "core/letters/store/letters.py",
        "tests/unit/core/store/test_memory.py",
        (
            "a retry leaves stale references in memory",
            "                self._memory.forget_states_of(commit.settled)\n",
            "                pass\n",
        ),
    ),
    *in_file(
        "core/store/clock.py",
        "tests/contract/test_clocks.py",
        (
            "letters are due by the clock of each process",
            "return replace(own, now=_Readings(lambda: read_time(database), age.total_seconds(), monotonic).now)",
            "return own",
        ),
    ),
    *in_file(
        "core/store/clock.py",
        f"{UNIT}/store/test_clock.py",
        (
            "the time is read once and never again",
            "if last is None or seconds - last[1] >= self.age:",
            "if last is None:",
        ),
    ),
    *in_file(
        SQL,
        "tests/contract/test_claims.py",
        (
            "a claim takes letters that are not due",
            "d.due_at <= :claimed_at\n",
            "(d.due_at <= :claimed_at OR d.due_at <= :latest)\n",
        ),
        ("a lease that ends counts no lost claim", "THEN lost_claims + 1\n", "THEN lost_claims\n"),
        (
            "a lone try that never began counts as a lost claim",
            "AND (lost_claims = 0 OR began_at IS NOT NULL)",
            "AND (lost_claims >= 0 OR began_at IS NOT NULL)",
        ),
        (
            "a letter of a clock that was ahead waits for that clock",
            "d.due_at > :latest\n               ORDER BY 2",
            "d.due_at > :latest\n                 AND d.status = 'held'\n               ORDER BY 2",
        ),
        (
            "a lease of a clock that was ahead lasts until that clock's time",
            "d.due_at > :latest\n               ORDER BY 2",
            "d.due_at > :latest\n                 AND d.status = 'waiting'\n               ORDER BY 2",
        ),
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
        "tests/contract/test_retries.py",
        (
            "a retry settles a letter of a different claim",
            "sequence_number = :sequence_number\n   AND status = 'retrying' AND claimed_by = :claimed_by;",
            "sequence_number = :sequence_number\n   AND status = 'retrying' AND :claimed_by <> '';",
        ),
        (
            "a letter without a new reason loses the old one",
            "error = COALESCE(:error, error)",
            "error = COALESCE(:error, '')",
        ),
    ),
    *in_file(
        SQL,
        "tests/contract/test_moves.py",
        (
            "a release takes the letters of a different claim",
            "AND (:claimed_by = '' OR d.claimed_by = :claimed_by)",
            "AND (1 OR d.claimed_by = :claimed_by)",
        ),
        (
            "a requeued letter keeps its spent attempts",
            "attempts = CASE WHEN :kind = 'requeue' THEN 0 ELSE d.attempts END",
            "attempts = attempts",
        ),
        ("a move takes any status", "CHARINDEX(',' || d.status || ',', :sources)", "CHARINDEX(',', :sources)"),
    ),
    *in_file(
        "sql/queries/dead_letter_attempt.sql",
        "tests/contract/test_moves.py tests/contract/test_retries.py",
        (
            "a move that is sent twice leaves two attempts",
            "a.sequence_number = d.sequence_number AND a.touched_by = :touched_by);",
            "a.sequence_number = d.sequence_number AND a.touched_by IS NULL);",
        ),
        (
            "attempts do not count on",
            "a.sequence_number = d.sequence_number), 0),\n       :touched_by",
            "a.sequence_number = d.sequence_number AND a.attempt < 2), 0),\n       :touched_by",
        ),
        (
            "letters that a retry lost get an attempt",
            " AND d.claimed_by = :touched_by AND",
            " AND :touched_by <> '' AND",
        ),
    ),
)
