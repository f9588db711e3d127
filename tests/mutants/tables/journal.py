"""Mutants of what isolates an event that kills its process: the journal, its marks, the watchdog, all ways to fail."""

from tests.mutants.mutant import in_file

UNIT = "tests/unit/core"
JOURNAL = f"{UNIT}/ingest/test_journal.py"
CHILDREN, FLIGHT = f"{UNIT}/settle/test_children.py", f"{UNIT}/transforms/test_flight.py"
UNPROVEN = "self._unproven.get(state.partition, BATCH_EVENTS) > 0"
SUSPICIOUS = f"if {UNPROVEN} or batch.is_retry or batch.asked is not None:"

MUTANTS = (
    *in_file(
        "core/ingest/journal.py",
        JOURNAL,
        ("a retried batch leaves no mark", SUSPICIOUS, f"if {UNPROVEN} or batch.asked is not None:"),
        ("a piece of a gap leaves no mark", SUSPICIOUS, f"if {UNPROVEN} or batch.is_retry:"),
        (
            "an outage of the store is a death",
            "if standing is not None and standing.attempt_id != self._own:",
            "if standing is not None:",
        ),
        (
            "a mark of numbers that are committed counts",
            "if fallen is not None and fallen.overlap(tried) is not None:",
            "if fallen is not None:",
        ),
        (
            "a run that failed stays in hand",
            "            self._flight.end(slot)\n            raise\n",
            "            raise\n",
        ),
    ),
    *in_file(
        "core/transforms/flight.py",
        FLIGHT,
        ("a death is never forgotten", "if is_old and path.suffix != OWN:", "if is_old and path.suffix == NEW:"),
    ),
    *in_file(
        "core/settle/children.py",
        CHILDREN,
        ("one death makes a letter", "TRIES = 2", "TRIES = 1"),
        ("a child that hangs is waited for", "self._wait_at_most(self._limit)", "self._wait_at_most(READY)"),
    ),
    *in_file(
        "core/settle/child.py",
        CHILDREN,
        ("the kernel takes the parent first", 'write_text("1000"', 'write_text("0"'),
    ),
    *in_file(
        "core/settle/isolate.py",
        JOURNAL,
        (
            "an event that kills is tried again",
            "if (words := self.killed.get(event.sequence_number)) is not None:",
            "if (words := self.killed.get(-1)) is not None:",
        ),
    ),
    *in_file(
        "sql/queries/batch_attempt.sql",
        "tests/contract/test_attempts.py",
        (
            "the end of an older attempt ends a newer one",
            "AND partition_id = :partition_id AND attempt_id = :attempt_id;",
            "AND partition_id = :partition_id AND :attempt_id <> '';",
        ),
    ),
    *in_file(
        "core/settle/store/partitions.py",
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
            "memory that runs out becomes a letter",
            "ends = isinstance(error, (MemoryError, EventKilled, ChildNotStarted))",
            "ends = isinstance(error, (EventKilled, ChildNotStarted))",
        ),
    ),
)
