"""Mutants of what isolates an event that kills its process: the journal, its marks, the watchdog, all ways to fail."""

from tests.mutants.mutant import in_file

UNIT = "tests/unit/core"
JOURNAL, LIVES = f"{UNIT}/ingest/test_journal.py", "tests/property/test_journal.py"
CHILDREN, FLIGHT = f"{UNIT}/settle/test_children.py", f"{UNIT}/transforms/test_flight.py"
UNPROVEN = "self._unproven.get(state.partition, BATCH_EVENTS) > 0"
SUSPICIOUS = f"if {UNPROVEN} or batch.is_retry or batch.asked is not None:"

MUTANTS = (
    *in_file(
        "core/ingest/journal.py",
        JOURNAL,
        ("the first batch of a partition leaves no mark", SUSPICIOUS, "if batch.is_retry or batch.asked is not None:"),
        ("a retried batch leaves no mark", SUSPICIOUS, f"if {UNPROVEN} or batch.asked is not None:"),
        ("a piece of a gap leaves no mark", SUSPICIOUS, f"if {UNPROVEN} or batch.is_retry:"),
        ("every batch pays for a mark", SUSPICIOUS, "if batch.events:"),
        (
            "an attempt that ends by an exception leaves its mark",
            "            except BaseException:\n                self._take_back(state, mark)\n",
            "            except BaseException:\n",
        ),
        (
            "memory that ran out is no death",
            "            self._flight.leave(slot)\n",
            "            self._flight.end(slot)\n",
        ),
        (
            "an outage of the store is a death",
            "if standing is not None and standing.attempt_id != self._own:",
            "if standing is not None:",
        ),
        ("a commit leaves its mark", "if self.is_marked else commit", "if self.committed else commit"),
        (
            "a mark of numbers that are committed counts",
            "if fallen is not None and fallen.overlap(tried) is not None:",
            "if fallen is not None:",
        ),
        (
            "a mark of a different process says nothing",
            "if standing is not None and standing.attempt_id != self._own:",
            "if standing is not None and standing.attempt_id == self._own:",
        ),
        (
            "what a dead process had in hand is tried here",
            "return wreckage.holds(partition.partition_id, tried)",
            "return False",
        ),
        (
            "a process is careful for ever",
            "self._is_careful = self._flight.look().deaths >= CAREFUL",
            "self._flight.look()",
        ),
        (
            "a run that failed stays in hand",
            "            self._flight.end(slot)\n            raise\n",
            "            raise\n",
        ),
    ),
    *in_file(
        "core/ingest/journal.py",
        LIVES,
        ("a third death is possible", "self._is_careful = wreckage.deaths >= CAREFUL", "self._is_careful = False"),
        (
            "an attempt is not in the flight record",
            "slot = self._flight.begin(partition.partition_id, tried)",
            "slot = -1",
        ),
    ),
    *in_file(
        "core/transforms/flight.py",
        FLIGHT,
        ("an event that was tried stays a suspect", "            self._memory[slot] = 0\n", ""),
        (
            "a living process is taken for a dead one",
            "    except BlockingIOError:\n        return path\n",
            "    except BlockingIOError:\n        pass\n",
        ),
        ("a death is never forgotten", "if is_old and path.suffix != OWN:", "if is_old and path.suffix == NEW:"),
        ("two readers do not find a death", "fcntl.LOCK_SH | fcntl.LOCK_NB", "fcntl.LOCK_EX | fcntl.LOCK_NB"),
        ("an orderly end is a death", "    if not _read(path):\n        path.unlink()\n", ""),
        (
            "suspects are forgotten with their process",
            "            if not self._left:\n",
            "            if self._folder:\n",
        ),
    ),
    *in_file(
        "core/settle/children.py",
        CHILDREN,
        ("one death makes a letter", "TRIES = 2", "TRIES = 1"),
        ("a child that hangs is waited for", "self._wait_at_most(self._limit)", "self._wait_at_most(READY)"),
        ("a dead child is given to the next run", "            if child.is_alive:\n", "            if child:\n"),
        ("any number of children", "threading.Semaphore(MOST)", "threading.Semaphore(99)"),
        ("suspects take every child", "threading.Semaphore(SUSPECTS)", "threading.Semaphore(99)"),
        (
            "a letter of a child is rows",
            '                if kind == "letter":\n',
            '                if kind == "letters":\n',
        ),
    ),
    *in_file(
        "core/settle/child.py",
        CHILDREN,
        ("the kernel takes the parent first", 'write_text("1000"', 'write_text("0"'),
        (
            "a signal for the parent ends the child",
            "    signal.signal(signal.SIGINT, signal.SIG_IGN)",
            "    signal.signal(signal.SIGINT, signal.SIG_DFL)",
        ),
    ),
    *in_file(
        "core/settle/isolate.py",
        JOURNAL,
        (
            "an event that kills is tried again",
            "if (words := self.killed.get(event.sequence_number)) is not None:",
            "if (words := self.killed.get(-1)) is not None:",
        ),
        ("hangs outlast the invocation", "if self.spent > LONGEST and not to_killer:", "if self.spent < 0:"),
        ("the run does not end with the event that kills", "run = to_killer or run", "run = run or to_killer"),
    ),
    *in_file(
        "core/ingest/store.py",
        "tests/contract/test_attempts.py",
        (
            "a long name of an invocation stops the partition",
            "cut(mark.invocation_id, INVOCATION_LENGTH)",
            "mark.invocation_id",
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
        ("a mark does not take the place of an older one", "attempt_id = excluded.attempt_id, begun_at", "begun_at"),
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
            "ends = isinstance(error, (MemoryError, EventKilled, ChildNotStarted))",
            "ends = isinstance(error, (EventKilled, ChildNotStarted))",
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
