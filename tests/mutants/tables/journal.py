"""Mutants of what isolates an event that kills its process: the journal, its marks, the watchdog, all ways to fail."""

from tests.mutants.mutant import in_file

UNIT = "tests/core"
JOURNAL = f"{UNIT}/settle/test_attempts.py"
CHILDREN = f"{UNIT}/settle/test_children.py"
PROPERTY = "tests/core/settle/test_deaths.py"

MUTANTS = (
    *in_file(
        "core/settle/attempts.py",
        JOURNAL,
        (
            "an outage of the store is a death",
            "deaths = max(deaths, mark.deaths + (mark.attempt_id != self._own))",
            "deaths = max(deaths, mark.deaths + 1)",
        ),
        (
            "a verdict is only in memory",
            "        self._store.begin_attempt(asked.state, mark)\n        raise RunChanged from killer",
            "        raise RunChanged from killer",
        ),
        (
            "a verdict on another version of the transform holds",
            "elif mark.transform_version == transform.version and",
            "elif mark.transform_version != '' and",
        ),
        (
            "a letter waits for a child",
            "if asked.isolation.has_passed(asked.tried):",
            "if asked.isolation.has_passed(Span(asked.tried.last, SequenceNumber(2**62))):",
        ),
        (
            "an attempt takes events that another one has in hand",
            "if any(other == partition and one.overlap(tried) for other, one in self._in_hand):",
            "if any(other != partition and one.overlap(tried) for other, one in self._in_hand):",
        ),
        (
            "a death elsewhere in the stream is not near",
            "is_near = is_near or (mark.begun_at <= self._began and self._is_foreign(mark, now - WINDOW))",
            "is_near = is_near or (mark.begun_at <= self._began and self._is_foreign(mark, now))",
        ),
        (
            "processes that begin together stay in children",
            "is_near = is_near or (mark.begun_at <= self._began and self._is_foreign(mark, now - WINDOW))",
            "is_near = is_near or self._is_foreign(mark, now - WINDOW)",
        ),
        (
            "a gap that a new process meets is tried in it",
            "is_new = asked.comes_again and (asked.state.partition, asked.caller) not in self._proofs",
            "is_new = asked.comes_again and bool(self._proofs)",
        ),
        (
            "a process stays proven after a different owner has written",
            "row is None or row.last not in (asked.tried.first - 1, known and known.sequence_number)",
            "row is None",
        ),
        (
            "a mark that could not be taken back stands for others",
            "            self._owed.append((asked.state, asked.tried.last))",
            "            pass",
        ),
        (
            "after an event that kills, the process goes on without children",
            "        self._in_child_until = self._clock.now() + WINDOW\n        mark =",
            "        mark =",
        ),
        (
            "suspects are tried although another owner has written them",
            "                asked.look_again()\n",
            "                pass\n",
        ),
    ),
    *in_file(
        "core/settle/attempts.py",
        PROPERTY,
        (
            "deaths are not counted",
            "if deaths >= ALONE and tried.first > isolation.alone_to:",
            "if deaths >= 100 and tried.first > isolation.alone_to:",
        ),
        (
            "what a child tried before an event that kills proves its process",
            "Attempt(transform, is_marked=True), 0, is_near=True)",
            "Attempt(transform, is_marked=True), 0, is_near=False)",
        ),
    ),
    *in_file(
        "core/ingest/stalled_partitions.py",
        "tests/core/ingest/test_stalled_partitions.py",
        (
            "the timer takes a partition that an attempt has in hand",
            "if self.means.journal.has_in_hand(state, self.means.clock.now() - self.grace):",
            "if False:",
        ),
    ),
    *in_file(
        "core/settle/child_process.py",
        CHILDREN,
        ("a hang is tried twice", "if deaths == TRIES or death.is_hang:", "if deaths == TRIES:"),
        ("a killer of its group takes the parent along", "start_new_session=True", "start_new_session=False"),
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
        "tests/core/settle/test_attempts.py",
        (
            "the end of an older attempt ends a newer one",
            "DELETE FROM batch_attempt\n WHERE stream_id = :stream_id AND partition_id = :partition_id"
            " AND last_sequence_number = :last_sequence_number\n   AND attempt_id = :attempt_id;",
            "DELETE FROM batch_attempt\n WHERE stream_id = :stream_id AND partition_id = :partition_id"
            " AND last_sequence_number = :last_sequence_number\n   AND :attempt_id <> '';",
        ),
    ),
    *in_file(
        "core/settle/partition_store.py",
        "tests/core/settle/test_attempts.py",
        (
            "a marked commit leaves the mark in the store",
            'steps.append(Step("clear_attempts", {**place_of(commit.state), **span_values(written)}))',
            "pass",
        ),
    ),
    *in_file(
        "core/settle/watchdog.py",
        f"{UNIT}/transforms/test_watchdog.py::test_a_run_in_time_is_left_alone_and_an_idle_process_has_no_alarm"
        f" {UNIT}/transforms/test_watchdog.py::test_a_run_that_hangs_ends_the_process_with_its_partition_and_numbers"
        f" {UNIT}/transforms/test_watchdog.py::test_many_runs_of_a_second_set_the_alarm_once",
        (
            "a run that hangs is left alone",
            "if self._monotonic() - begun_at >= self._deadline:",
            "if self._monotonic() - begun_at >= 100 * self._deadline:",
        ),
    ),
    *in_file(
        "core/settle/settle.py",
        f"{UNIT}/settle/test_settle.py",
        (
            "memory that runs out becomes a letter",
            "ends = isinstance(error, (MemoryError, EventKilled, ChildNotStarted))",
            "ends = isinstance(error, (EventKilled, ChildNotStarted))",
        ),
    ),
)
