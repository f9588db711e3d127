"""Mutants of the pipeline: runs that end in time, engines that refuse, a person's orders, and the jobs' own ways."""

from tests.mutants.mutant import in_file

UNIT = "tests/unit/core"

MUTANTS = (
    *in_file(
        "jobs/as_of.py",
        "tests/unit/jobs/test_as_of.py",
        ("a row counts that a replay had removed at the cut", "AND +removed_by > {cut}", "AND +removed_by > 0 * {cut}"),
        (
            "a run takes away rows that it has never added",
            "written_by <= {span.after}",
            "written_by <= {span.up_to}",
        ),
        (
            "a window is recomputed without the rows that a later replay removed",
            "AND r.commit_number > c.up_to",
            "AND r.commit_number < 0 * c.up_to",
        ),
        (
            "a window has rows of commits after the cut",
            "s.commit_number <= c.up_to",
            "s.commit_number <= 9999 * c.up_to",
        ),
        ("a day has the rows of the next one", "if is_day else timedelta()", "if not is_day else timedelta()"),
    ),
    *in_file(
        "jobs/ranges.py",
        "tests/unit/jobs/test_as_of.py",
        ("the rows of a replay count at its own commit", "letters_only, span.up_to)", "letters_only, number)"),
        ("the rows of a batch count as they stand now", "span.up_to, cut=span.up_to)", "span.up_to)"),
    ),
    *in_file(
        "core/aggregation/runs.py",
        f"{UNIT}/aggregation/test_never_stuck.py",
        (
            "a run is as large as the one before it that failed",
            'last.rows_limit // 2 if last.status == "failed"',
            'last.rows_limit if last.status == "failed"',
        ),
        ("a bounded run forgets the partitions without new commits", "{**begun, **_named(", "{**_named("),
    ),
    *in_file(
        "sql/queries/aggregation_cut.sql",
        "tests/contract/test_pipeline.py",
        (
            "a paused job plans a run",
            " AND run_number = :expected_number AND paused_at IS NULL",
            " AND run_number = :expected_number",
        ),
        (
            "the rows of a run are counted for each partition alone",
            ":most_commits)\n), walked AS (\n    SELECT p.stream_id, p.partition_id, p.commit_number, p.rows_written,\n"
            "           SUM(p.rows_written) OVER (ORDER BY p.rows_before, p.stream_id, p.partition_id, p.commit_number",
            ":most_commits)\n), walked AS (\n    SELECT p.stream_id, p.partition_id, p.commit_number, p.rows_written,\n"
            "           SUM(p.rows_written) OVER (PARTITION BY p.partition_id ORDER BY p.rows_before, p.commit_number",
        ),
        (
            "a run takes any number of commits",
            "AND l.commit_number <= MIN(c.commit_number, COALESCE(j.value ->> 2, 0) + :most_commits)",
            "AND l.commit_number <= c.commit_number AND :most_commits > 0",
        ),
    ),
    *in_file(
        "sql/queries/aggregation_cut.sql",
        "tests/contract/test_slices.py",
        (
            "a paused job moves its cut",
            "WHERE job = :job AND cut = :cut_from AND paused_at IS NULL",
            "WHERE job = :job AND cut = :cut_from",
        ),
        (
            "a run moves a cut that is not where it began",
            "WHERE job = :job AND cut = :cut_from AND paused_at IS NULL",
            "WHERE job = :job AND :cut_from <> '' AND paused_at IS NULL",
        ),
    ),
    *in_file(
        "sql/queries/aggregation_run.sql",
        "tests/contract/test_slices.py",
        (
            "a paused job commits slices",
            "c.job = aggregation_run.job AND c.paused_at IS NOT NULL",
            "c.job = aggregation_run.job AND c.paused_at = ''",
        ),
    ),
    *in_file(
        "sql/queries/aggregation_failure.sql",
        "tests/contract/test_pipeline.py",
        (
            "a second reason of a submit is an error",
            "SELECT 1 FROM aggregation_failure AS f\n        WHERE f.run_id = :run_id",
            "SELECT 1 FROM aggregation_failure AS f\n        WHERE f.run_id = ''",
        ),
    ),
    *in_file(
        "jobs/quality.py",
        "tests/spark/test_quality.py",
        (
            "a row is late as soon as its window ends",
            "first_at - EPOCH - 2 * of.window",
            "first_at - EPOCH - of.window",
        ),
        ("rows that a replay removed count as lost", '"removed": removed.total()', '"removed": 0'),
        ("rows of other tables count as lost", '"other_tables": in_others.total()', '"other_tables": 0'),
        ("the greatest value of a range is out of range", "(F.col(name) > most)", "(F.col(name) >= most)"),
        (
            "an unknown number of rows is a number",
            "if any(one.uncounted for one in commits.written):",
            "if not commits:",
        ),
        ("a wrong reading is committed", "        if not differing:\n", "        if differing is None:\n"),
    ),
    *in_file(
        "sql/queries/aggregation_pipeline.sql",
        "tests/contract/test_run_quality.py",
        (
            "every committed run counts as a fault",
            "JSON_VALUE(r.quality, '$.fault') IS NOT NULL",
            "r.quality IS NOT NULL",
        ),
    ),
    *in_file(
        "core/aggregation/store/pipeline.py",
        "tests/contract/test_pipeline.py",
        (
            "a discarded run keeps no order",
            "return _script(order, _noted(order), *ended_script(",
            "return _script(order, *ended_script(",
        ),
    ),
    *in_file(
        "core/aggregation/tick.py",
        f"{UNIT}/aggregation/test_never_stuck.py",
        (
            "a result that the database refuses is tried again and again",
            "    own.store.discard_staged(staged)\n",
            "",
        ),
        (
            "a tick asks the engine although a result is staged",
            "    if staged is None:\n        answer = ask",
            "    if True:\n        answer = ask",
        ),
    ),
    *in_file(
        "core/aggregation/attempts.py",
        f"{UNIT}/aggregation/test_never_stuck.py",
        (
            "a job that is given up goes on in the engine",
            "            engine.cancel(run.engine_job_id)\n",
            "            pass\n",
        ),
        (
            "a job that has ended is cancelled",
            " and answer.state in (JobState.RUNNING, None):",
            ":",
        ),
        (
            "an engine that refuses to cancel stops the next attempt",
            "        with suppress(EngineUnreachable, EngineRefused):\n            engine",
            "        with suppress(EngineUnreachable):\n            engine",
        ),
        (
            "an engine that refuses to answer fails the tick",
            "    except (EngineUnreachable, EngineRefused) as fault:\n        return EngineAnswer",
            "    except EngineUnreachable as fault:\n        return EngineAnswer",
        ),
    ),
    *in_file(
        "jobs/tables.py",
        "tests/unit/jobs/test_ledger_query.py",
        ("a merged range forgets rows", "SUM(CAST(m.rows_written AS bigint))", "MAX(m.rows_written)"),
        ("retries are merged with their neighbours", "ELSE -commit_number END", "ELSE -1 END"),
        ("a first run reads each replay of the history", "if span.after == 0 else", "if span.after < 0 else"),
    ),
    *in_file(
        "jobs/sign_in.py",
        "tests/unit/jobs/test_sign_in.py",
        ("Synapse is asked for an address", 'getToken("DW") or', "getToken(RESOURCE) or"),
        ("a first failure ends the sign-in", "            continue\n", "            raise\n"),
        ("an empty token is used", "        if token:\n", "        if token is not None:\n"),
    ),
    *in_file(
        "core/remote/spark/package.py",
        "tests/unit/jobs/test_package.py",
        (
            "a changed module keeps the version",
            '        content.update(f"{name}\\0{text}\\0".encode())\n',
            "        content.update(name.encode())\n",
        ),
    ),
    *in_file(
        "jobs/package.py",
        "tests/unit/jobs/test_package.py",
        (
            "wheels that differ are merged",
            "    if found.setdefault(name, content) != content:",
            "    if not found.setdefault(name, content):",
        ),
        ("modules do not look for the packages of the batch", "    sys.path.insert(0, _packages)\n", "    pass\n"),
    ),
    *in_file(
        "core/aggregation/store/commits.py",
        "tests/unit/core/store/test_power_loss.py",
        (
            "the mark of slices is a separate transaction",
            "        return self._is_first(portion_script(run, staged, portion))",
            "        whole = portion_script(run, staged, portion)\n"
            "        mark, *others = (Script(whole.subject, (step,), durable=False) for step in whole.steps)\n"
            "        return self._is_first(mark) and all(self._is_first(other) for other in others)",
        ),
        (
            "the cut moves without a wait for the disk",
            '    return Script(f"result of {run.run_id}", steps, gives_way=True)',
            '    return Script(f"result of {run.run_id}", steps, durable=False, gives_way=True)',
        ),
    ),
    *in_file(
        "core/store/sqlite/database.py",
        "tests/unit/core/store/test_power_loss.py",
        (
            "every portion waits for the disk",
            "connection = self._connection(script.durable)",
            "connection = self._connection()",
        ),
        (
            "no transaction waits for the disk",
            "for pragma in () if durable else NOT_DURABLE:",
            "for pragma in NOT_DURABLE:",
        ),
        ("the log grows without a copy", "        self._unchecked += changed\n", ""),
        ("the log is copied after each portion", "if self._unchecked < CHECKPOINT_AFTER:", "if False:"),
    ),
    *in_file(
        "core/aggregation/commit.py",
        "tests/unit/core/aggregation/test_commit.py",
        ("a slow disk takes portions as before", "size // 2 if taken > SLOW", "size if taken > SLOW"),
        ("a small portion stays small", "2 * size if taken < FAST", "size if taken < FAST"),
    ),
)
