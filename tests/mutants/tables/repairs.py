"""Mutants of repairs, backfills and rebuilds: one order, runs at the right cut, slices compared at the right run."""

from tests.mutants.mutant import in_file

ORDERED = "tests/unit/core/aggregation/test_ordered.py"
CONTRACT = "tests/contract/test_ordered_runs.py"

MUTANTS = (
    *in_file(
        "core/aggregation/ordered.py",
        ORDERED,
        (
            "a repair begins before the lake has its rows",
            'if order.kind == "repair" and not covers(source.cut, standing.cut):',
            'if order.kind == "repair" and not covers(standing.cut, standing.cut):',
        ),
        (
            "a repair moves the cut",
            'cut_to = standing.cut if order.kind == "repair" else source.cut',
            "cut_to = source.cut",
        ),
        ("a waiting repair does not hold the cut", "holds=now - order.at < HOLD", "holds=False"),
        ("a repair that waits stops the aggregate", "holds=now - order.at < HOLD", "holds=True"),
        ("an increment begins before a backfill that waits", 'has rows", holds=True)', 'has rows")'),
        ("a backfill counts commits twice", "    if order.kind != fitting(standing.cut):\n", "    if False:\n"),
    ),
    *in_file(
        "core/aggregation/runs.py",
        ORDERED,
        (
            "a repair that gives up blocks the increments",
            'return not self.committed_slices or self.kind == "repair"',
            "return not self.committed_slices",
        ),
        (
            "a backfill with committed slices is given up",
            'return not self.committed_slices or self.kind == "repair"',
            'return not self.committed_slices or self.kind != "increment"',
        ),
        (
            "a repair makes the next increment larger or smaller",
            '        if last.kind != "increment":\n',
            '        if last.kind == "":\n',
        ),
    ),
    *in_file(
        "core/aggregation/tick.py",
        ORDERED,
        (
            "an order that never has a run waits for ever",
            "    if planned is not None and planned.ends:\n",
            "    if planned is None:\n",
        ),
        (
            "a repair reads the database although the lake has the rows",
            "    if own.lake is None or rows not in own.jobs:\n",
            "    if own.lake is None or rows in own.jobs:\n",
        ),
        (
            "a repair of a lake that does not answer is submitted without it",
            'if is_rows_job(run.job) or run.rows_from == "lake":',
            "if is_rows_job(run.job):",
        ),
    ),
    *in_file(
        "core/aggregation/store/plans.py",
        CONTRACT,
        (
            "an order is carried out twice",
            '        steps.append(Step("end_order", ended, expect=1, otherwise=MovedOn))\n',
            "        pass\n",
        ),
        (
            "a second run opens from a cut that has moved",
            'Step("number_run", values, expect=1, otherwise=MovedOn)',
            'Step("number_run", values)',
        ),
    ),
    *in_file(
        "sql/queries/aggregation_order.sql",
        CONTRACT,
        ("a second order takes the place of the first", "job = :job AND ordered_kind IS NULL\n", "job = :job\n"),
        ("a backfill is ordered of an aggregate with commits", "(cut = '{}' AND :kind = 'backfill')", "(:kind <> '')"),
        (
            "the plan of a withdrawn order opens its run",
            "WHERE job = :job AND ordered_kind IS NOT NULL AND ordered_at = :ordered_at",
            "WHERE job = :job AND :ordered_at <> ''",
        ),
    ),
    *in_file(
        "sql/queries/aggregation_run.sql",
        CONTRACT,
        (
            "a repair with committed slices never fails",
            "AND (committed_slices = 0 OR kind = 'repair')",
            "AND (committed_slices = 0 OR kind = '')",
        ),
        (
            "a backfill with committed slices fails",
            "AND (committed_slices = 0 OR kind = 'repair')",
            "AND (committed_slices = 0 OR kind <> 'increment')",
        ),
    ),
    *in_file(
        "jobs/comparison.py",
        "tests/unit/jobs/test_comparison.py",
        (
            "the slices of an open run are compared at the cut before it",
            "        if run.slices > first:\n",
            "        if run.slices == SLICES:\n",
        ),
        (
            "an older run decides a slice",
            "sorted(later, key=lambda one: -one.run_number)",
            "sorted(later, key=lambda one: one.run_number)",
        ),
    ),
    *in_file(
        "jobs/comparison.py",
        "tests/spark/test_comparison.py",
        (
            "a window that a later run removed is lost",
            'F.when(F.col("stored").isNull(), touched)',
            'F.when(F.col("stored").isNull(), F.lit(False))',
        ),
        (
            "a window with any number is left to the next look",
            'is_after & (F.col("run_number") == run.run_number)',
            "is_after",
        ),
    ),
    *in_file(
        "jobs/history.py",
        "tests/spark/test_repair.py",
        ("a repair removes the windows of other days", 'within(standing, "window_start", run.days)', "standing"),
        ("the last day of a repair is left out", "days.until + DAY", "days.until"),
    ),
    *in_file(
        "jobs/transforms.py",
        "tests/spark/test_repair.py",
        ("a window without a row stays", "keys.select(*key), allow", "keys.select(*key).limit(0), allow"),
    ),
)
