"""Mutants of tasks: a piece that is done twice or never, a rate that is not kept, and tasks that do not stop."""

from tests.mutants.mutant import in_file

AUDITS, JOBS, RUN, OPEN, TIMER = (
    "tests/contract/operator/test_audit_tasks.py",
    "tests/contract/test_redrives.py",
    "tests/unit/core/tasks/test_run.py",
    "tests/contract/test_open_replays.py",
    "tests/unit/handlers/test_tasks.py",
)

MUTANTS = (
    *in_file(
        "sql/queries/task.sql",
        "tests/contract/test_replay_jobs.py",
        (
            "a piece that a different driver did is done again",
            "retracted)\n WHERE task_id = :task_id AND part = :part AND step = :expected AND closed_at IS NULL;",
            "retracted)\n WHERE task_id = :task_id AND part = :part AND step >= :expected - 100 AND closed_at IS NULL;",
        ),
        (
            "a task takes numbers that a different task holds",
            "          AND p.first_sequence_number <= r.last_sequence_number\n"
            "          AND p.last_sequence_number >= r.first_sequence_number));",
            "          AND p.first_sequence_number > r.last_sequence_number\n"
            "          AND p.last_sequence_number >= r.first_sequence_number));",
        ),
        (
            "a task ends while one of its parts is open",
            "p.task_id = :task_id AND p.closed_at IS NULL);",
            "p.task_id = :task_id AND p.closed_at IS NULL AND p.step < 0);",
        ),
        (
            "a piece is done while its task is paused",
            " WHERE task_id = :task_id AND status = 'running'\n   AND (per",
            " WHERE task_id = :task_id\n   AND (per",
        ),
    ),
    *in_file(
        "sql/queries/task.sql",
        OPEN,
        ("one task too many is opened", " WHERE :most_open > (", " WHERE :most_open >= ("),
    ),
    *in_file(
        "sql/queries/task.sql",
        JOBS,
        (
            "two drivers move the same piece of a redrive",
            "- :moved)\n WHERE task_id = :task_id AND part = :part AND step = :expected",
            "- :moved)\n WHERE task_id = :task_id AND part = :part AND step >= :expected - 100",
        ),
        (
            "a piece begins before its time",
            "next_piece_at <= :moved_at OR next_piece_at > :latest);",
            "next_piece_at <= :moved_at OR next_piece_at < :latest);",
        ),
        (
            "a clock that was ahead stops a task",
            " OR next_piece_at > :latest);",
            " OR next_piece_at < :latest AND 1 = 0);",
        ),
        ("one key has two open tasks", "AND k.task_key = :task_key\n", "AND k.task_key = ''\n"),
    ),
    *in_file(
        "sql/queries/task.sql",
        AUDITS,
        (
            "a driver that was overtaken records its part",
            "closed_at = CASE WHEN :is_last = 1 THEN :moved_at END\n"
            " WHERE task_id = :task_id AND part = :part AND step = :expected AND closed_at IS NULL;",
            "closed_at = CASE WHEN :is_last = 1 THEN :moved_at END\n"
            " WHERE task_id = :task_id AND part = :part AND step >= :expected - 100;",
        ),
        (
            "the tasks of a closed stream go on",
            "SET status = 'cancelled', updated_at = :moved_at, ended_at = :moved_at, fault = :fault\n",
            "SET updated_at = :moved_at, fault = :fault\n",
        ),
    ),
    *in_file(
        "core/tasks/run.py",
        RUN,
        ("a task works on all parts at once", "is None)[: kind.fan_out]", "is None)"),
        ("a conflict ends a slice", "if conflicts >= CONFLICT_LIMIT:", "if conflicts >= 1:"),
        (
            "a piece whose answer was lost ends the slice",
            "        except (TaskConflict, CommitOutcomeUnknown):\n",
            "        except TaskConflict:\n",
        ),
        (
            "a task whose opening was not answered is opened twice",
            "        if tasks.find(request.order.task_id) is None:\n",
            "        if request:\n",
        ),
        (
            "a task that is for a former hub goes on",
            '            move_task(task_id, "fail", kind, str(fault))\n',
            "",
        ),
        ("a slice of a task works on after its time", "and kind.clock.now() >= until:", "and pieces > 1_000:"),
        (
            "what a failed task carried stays",
            '    if moved and verb == "fail":\n',
            '    if moved and verb == "begin":\n',
        ),
    ),
    *in_file(
        "core/tasks/run.py",
        AUDITS,
        (
            "a task has no deadline",
            "late = kind.deadline is not None and",
            "late = kind.deadline is None and",
        ),
    ),
    *in_file(
        "core/tasks/store.py",
        "tests/sql/test_lock_order.py",
        (
            "a piece locks its part before its task",
            '        Step("hold_task", held, expect=1, otherwise=ending.conflict),\n'
            "        Step(statement, _advanced(own, ahead), expect=1, otherwise=ending.conflict),\n",
            "        Step(statement, _advanced(own, ahead), expect=1, otherwise=ending.conflict),\n"
            '        Step("hold_task", held, expect=1, otherwise=ending.conflict),\n',
        ),
    ),
    *in_file(
        "core/tasks/store.py",
        JOBS,
        (
            "a piece is done whatever its task is",
            '        Step("hold_task", held, expect=1, otherwise=ending.conflict),\n',
            '        Step("hold_task", held),\n',
        ),
    ),
    *in_file(
        "handlers/tasks.py",
        TIMER,
        ("a paused task is driven", 'and task.status != "paused":', 'and task.status != "done":'),
        ("two purges begin in one day", "if last is None or now - last >= DAY:", "if last is None or now >= last:"),
    ),
    *in_file(
        "handlers/operations/tasks.py",
        "tests/unit/handlers/operations/test_replays.py",
        ("what a cancelled task carried stays", '    if verb == "cancel":\n', '    if verb == "pause":\n'),
    ),
)
