"""Mutants of the levels of an aggregate and of their retention."""

from tests.mutants.mutant import in_file

LEVELS = "tests/contract/test_levels.py"
RETRACTION = "tests/spark/test_retraction.py"
RETENTION = "tests/unit/core/aggregation/test_retention.py"

MUTANTS = (
    *in_file(
        "core/aggregation/store/commits.py",
        LEVELS,
        (
            "a commit adds to the finest level only",
            "for level in find_aggregate(run.job).levels for one",
            "for level in find_aggregate(run.job).levels[:1] for one",
        ),
    ),
    *in_file(
        "core/aggregation/commit.py",
        LEVELS,
        (
            "a result of a job that knew fewer levels is committed",
            "    if declared != staged.levels.keys():",
            "    if False:",
        ),
        (
            "deleted facts and rows of a rollup are not missed",
            "    if +counted != +Counter(staged.levels) or",
            "    if",
        ),
    ),
    *in_file(
        "sql/queries/aggregation_cut.sql",
        LEVELS,
        (
            "an app that does not know all levels commits",
            " WHERE job = :job AND levels = :levels\n",
            " WHERE job = :job\n",
        ),
    ),
    *in_file(
        "core/aggregation/store/levels.py",
        LEVELS,
        (
            "the staging of a level is not compared with its facts",
            "values, expect=part.slices, otherwise=otherwise)",
            "values)",
        ),
    ),
    *in_file(
        "core/aggregation/store/levels.py",
        "tests/contract/test_aggregation.py",
        ("windows are not added", '    yield Step(of_rows("add_windows", level), values)\n', ""),
        (
            "a result leaves the windows that it replaces",
            '        yield Step(of_rows("replace_windows", level), values)\n',
            "        pass\n",
        ),
    ),
    *in_file(
        "hubledger/cli/ddl/aggregates.py",
        "tests/sql/test_aggregate_ddl.py",
        ("a filled level has the least of all values", '"most": "MAX"', '"most": "MIN"'),
        (
            "a day is filled from the quarters of an hour",
            "(level, finer) for finer, level in pairwise(one.levels)}",
            "(level, one) for level in one.rollups}",
        ),
    ),
    *in_file(
        "core/model/aggregates.py",
        "tests/unit/core/model/test_rollups.py",
        (
            "a part of a day is kept",
            "now - self.keep - (now - self.keep - EPOCH) % DAY",
            "now - self.keep",
        ),
    ),
    *in_file(
        "core/model/rollups.py",
        "tests/unit/core/model/test_rollups.py",
        (
            "windows of a level overlap two of the next one",
            "window <= below or window % below or",
            "window <= below or",
        ),
        ("a coarser level may be kept for a shorter time", "kept < kept_below)", "kept < DAY)"),
    ),
    *in_file(
        "core/aggregation/tick.py",
        RETENTION,
        (
            "old windows are never removed",
            "removed = remove_old_windows(own.store, job, own.now)",
            "removed = {}",
        ),
    ),
    *in_file(
        "core/aggregation/retention.py",
        RETENTION,
        (
            "only the first part of the old windows goes",
            "            if count < ROWS_AT_ONCE:",
            "            if count:",
        ),
        ("a tick removes windows without an end", " and now() - began < TIME:", ":"),
    ),
    *in_file(
        "jobs/transforms.py",
        "tests/spark/test_retention.py",
        (
            "a late event opens a window that is not kept",
            "    if horizon is None:\n        return windows",
            "    if True:\n        return windows",
        ),
    ),
    *in_file(
        "jobs/retraction.py",
        f"{RETRACTION}::test_a_lost_day_is_computed_from_its_rows_where_retention_removed_its_hours",
        (
            "a lost day lacks the hours that retention removed",
            'both.where(F.col(level.count) == F.col("__rows"))',
            'both.where(F.col(level.count) <= F.col("__rows"))',
        ),
        ("a lost hour is computed from its rows", "0 < len(inner) <= SEEKS", "len(inner) < 0"),
    ),
    *in_file(
        "jobs/retraction.py",
        f"{RETRACTION}::test_slices_that_a_different_attempt_commits_during_a_computation_count_once",
        (
            "rows of a slice that was just committed count twice in the hour and the day",
            'both.where(F.col(level.count) == F.col("__rows"))',
            'both.where(F.col(level.count) >= F.col("__rows"))',
        ),
    ),
)
