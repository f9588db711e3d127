"""Mutants of what isolates an event that kills its process: the journal, its marks, the watchdog, all ways to fail."""

from tests.mutants.mutant import in_file

UNIT = "tests/unit/core"
JOURNAL, LIVES = f"{UNIT}/ingest/test_journal.py", "tests/property/test_journal.py"
SUSPICIOUS = "if is_unproven or batch.is_retry or batch.asked is not None:"

MUTANTS = (
    *in_file(
        "core/ingest/journal.py",
        JOURNAL,
        ("the first batch of a partition leaves no mark", SUSPICIOUS, "if batch.is_retry or batch.asked is not None:"),
        ("a retried batch leaves no mark", SUSPICIOUS, "if is_unproven or batch.asked is not None:"),
        ("a piece of a gap leaves no mark", SUSPICIOUS, "if is_unproven or batch.is_retry:"),
        ("every batch pays for a mark", SUSPICIOUS, "if batch.events:"),
        (
            "an attempt that ends by an exception counts as a death",
            "            except BaseException:\n                self._take_back(state, mark)\n",
            "            except BaseException:\n",
        ),
        (
            "memory that ran out is no death",
            "self._own.pop(state.partition, None)  # its mark counts as a death",
            "self._take_back(state, mark)",
        ),
        (
            "an attempt of this process counts as a death of it",
            "            own[mark.attempt_id] = mark.attempts - 1\n",
            "",
        ),
        (
            "an outage of the store is a death",
            "return replace(standing, attempts=min(standing.attempts, own[standing.attempt_id]))",
            "return standing",
        ),
        ("a commit leaves its mark", "if self.is_marked else commit", "if self.is_crash else commit"),
        ("attempts that may kill go side by side", "turn.enter_context(self._turns)", "turn.pop_all()"),
        (
            "a mark of a different process is overwritten",
            "if self._store.begin_attempt(state, mark, standing):",
            "if self._store.begin_attempt(state, mark, standing) or standing is not mark:",
        ),
        (
            "a mark of numbers that are committed counts",
            "if standing is not None and standing.first == guarded.first and (",
            "if standing is not None and (",
        ),
    ),
    *in_file(
        "core/ingest/journal.py",
        f"{LIVES}::test_one_killer_anywhere_in_a_batch_costs_few_deaths"
        f" {LIVES}::test_innocent_deaths_and_refused_rows_in_between_make_no_letter",
        ("an event that died once alone is a letter", "return self.attempts > UNFINISHED", "return self.attempts > 1"),
        (
            "a range that dies is never narrowed",
            "if died >= (1 if standing.is_narrowed else UNFINISHED):",
            "if died >= 1_000:",
        ),
        (
            "an event that killed three processes is tried again",
            "if self.is_crash else transform",
            "if self.is_crash is None else transform",
        ),
        ("a range is narrowed by one event at a time", "size = -(-len(run) // PARTS)", "size = max(1, len(run) - 1)"),
    ),
    *in_file(
        "core/store/attempts.py",
        "tests/contract/test_attempts.py",
        ("an attempt that ended counts", '{"attempts": mark.attempts - 1,', '{"attempts": mark.attempts,'),
        (
            "a long name of an invocation stops the partition",
            "cut(mark.invocation_id, INVOCATION_LENGTH)",
            "mark.invocation_id",
        ),
    ),
    *in_file(
        "sql/sqlite/queries/batch_attempt.sql",
        "tests/contract/test_attempts.py",
        (
            "a mark is set over one that changed",
            "AND attempt_id = :expected_id AND attempts = :expected_attempts",
            "AND attempt_id = :expected_id",
        ),
        (
            "the end of an older attempt ends a newer one",
            "AND partition_id = :partition_id AND attempt_id = :attempt_id;",
            "AND partition_id = :partition_id;",
        ),
    ),
    *in_file(
        "core/store/partitions.py",
        "tests/contract/test_attempts.py",
        (
            "a marked commit leaves the mark in the store",
            'steps.append(Step("clear_attempt", place_of(commit.state)))',
            "pass",
        ),
    ),
    *in_file(
        "core/transforms/watchdog.py",
        f"{UNIT}/transforms/test_watchdog.py::test_a_run_in_time_is_left_alone_and_an_idle_process_has_no_alarm"
        f" {UNIT}/transforms/test_watchdog.py::test_a_run_that_hangs_ends_the_process_with_its_partition_and_numbers"
        f" {UNIT}/transforms/test_watchdog.py::test_many_runs_of_a_second_set_the_alarm_once",
        (
            "a run that hangs is left alone",
            "if now - run.begun_at >= self._deadline:",
            "if now - run.begun_at >= 100 * self._deadline:",
        ),
        ("a run that ended still counts", "self.running.pop(run, None)", "self.running.get(run)"),
        ("an idle process keeps its alarm", "                self._alarm.cancel()\n", "                pass\n"),
        (
            "each run sets the alarm again",
            "                if not self._is_set:\n",
            "                if self.running:\n",
        ),
    ),
    *in_file(
        "core/settle/settle.py",
        f"{UNIT}/settle/test_settle.py",
        (
            "a transform that exits ends the process",
            "        except BaseException as error:  # any error of a transform",
            "        except Exception as error:  # any error of a transform",
        ),
        (
            "an event may have any number of rows",
            "            if len(rows) > limit:\n",
            "            if len(rows) > 1_000 * limit:\n",
        ),
        (
            "memory that runs out becomes a letter",
            "return isinstance(error, MemoryError) or (isinstance",
            "return (isinstance",
        ),
        (
            "a transform that raises KeyboardInterrupt ends each retry of its batch",
            "(isinstance(error, KeyboardInterrupt) and transform.takes_signals())",
            "isinstance(error, KeyboardInterrupt)",
        ),
        (
            "a person cannot end a program while it transforms",
            " or (isinstance(error, KeyboardInterrupt) and transform.takes_signals())",
            "",
        ),
    ),
)
