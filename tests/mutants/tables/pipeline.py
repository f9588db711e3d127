"""Mutants of the pipeline: rows as of a cut, runs and orders, their commits to the database and to the lake."""

from tests.mutants.mutant import in_file

UNIT = "tests/core"
PUBLISH = f"{UNIT}/aggregation/test_publish.py {UNIT}/aggregation/test_publish_rows.py"

MUTANTS = (
    *in_file(
        "jobs/as_of.py",
        "tests/jobs/test_as_of.py",
        ("a row counts that a replay had removed at the cut", "AND +{REMOVED} > {cut}", "AND +{REMOVED} > 0 * {cut}"),
        (
            "a window has rows of commits after the cut",
            "s.commit_number <= c.up_to",
            "s.commit_number <= 9999 * c.up_to",
        ),
    ),
    *in_file(
        "jobs/ranges.py",
        "tests/jobs/test_as_of.py",
        ("the rows of a replay count at its own commit", "letters_only, span.up_to)", "letters_only, number)"),
    ),
    *in_file(
        "sql/queries/aggregation_cut.sql",
        "tests/core/aggregation/test_slices.py",
        (
            "a run moves a cut that is not where it began",
            "WHERE job = :job AND cut = :cut_from AND paused_at IS NULL",
            "WHERE job = :job AND :cut_from <> '' AND paused_at IS NULL",
        ),
    ),
    *in_file(
        "sql/queries/aggregation_run.sql",
        "tests/core/aggregation/test_slices.py",
        (
            "a paused job commits slices",
            "c.job = aggregation_run.job AND c.paused_at IS NOT NULL",
            "c.job = aggregation_run.job AND c.paused_at = ''",
        ),
    ),
    *in_file(
        "core/aggregation/tick.py",
        f"{UNIT}/aggregation/test_never_stuck.py",
        ("a result that the database refuses is tried again and again", "    own.store.discard_staged(staged)\n", ""),
    ),
    *in_file(
        "core/aggregation/lake_publication.py",
        PUBLISH,
        ("a run is committed again", "if last is not None and last.number >= run.number:", "if False:"),
        (
            "a change is committed to a table at a different cut",
            "(_state(standing, last).cut == run.cut_from and fits(standing, change))",
            "fits(standing, change)",
        ),
        (
            "a lake that is ahead of a restored database is trusted",
            "return found[0] if found and found[0].number == standing.run else None",
            "return replace(found[0], number=standing.run) if found else None",
        ),
        (
            "rows are committed to the lake before their run is marked",
            "if not run.committed_slices and not store.mark_lake(run):",
            "if run.number < 0:",
        ),
    ),
    *in_file(
        "core/remote/spark/delta.py",
        PUBLISH,
        (
            "a commit is rebased over others",
            "properties = CommitProperties(dict(mark.facts), max_commit_retries=0, app_transactions=[transaction])",
            "properties = CommitProperties(dict(mark.facts), app_transactions=[transaction])",
        ),
    ),
    *in_file(
        "jobs/retraction.py",
        "tests/spark/test_retraction.py::test_slices_that_a_different_attempt_commits_during_a_computation_count_once",
        (
            "rows of a slice that was just committed count twice in the hour and the day",
            "both.where(F.col(level.count) == F.col(_ROWS))",
            "both.where(F.col(level.count) >= F.col(_ROWS))",
        ),
    ),
    *in_file(
        "core/aggregation/runs.py",
        f"{UNIT}/aggregation/test_ordered.py",
        ("a backfill counts commits twice", "    if order.kind != fitting(standing.cut):\n", "    if False:\n"),
    ),
    *in_file(
        "core/aggregation/store.py",
        "tests/core/aggregation/test_ordered_runs.py",
        (
            "an order is carried out twice",
            '        steps.append(Step("end_order", ended, expect=1, otherwise=MovedOn))\n',
            "        pass\n",
        ),
    ),
    *in_file(
        "sql/queries/aggregation_run.sql",
        "tests/core/aggregation/test_ordered_runs.py",
        (
            "a repair with committed slices never fails",
            "AND (committed_slices = 0 OR kind = 'repair')",
            "AND (committed_slices = 0 OR kind = '')",
        ),
    ),
    *in_file(
        "jobs/rebuild_aggregate.py",
        "tests/spark/test_comparison.py",
        (
            "a window that a later run removed is lost",
            "F.when(F.col(STORED).isNull(), touched)",
            "F.when(F.col(STORED).isNull(), F.lit(False))",
        ),
    ),
)
