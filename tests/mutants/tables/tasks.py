"""Mutants of tasks: a piece that is done twice or never, a rate that is not kept, and tasks that do not stop."""

from tests.mutants.mutant import in_file

AUDITS, JOBS, RUN = (
    "tests/core/audit/test_task.py",
    "tests/core/letters/test_redrive.py",
    "tests/core/tasks/test_run.py",
)

MUTANTS = (
    *in_file(
        "sql/queries/task.sql",
        "tests/core/replay/test_task.py",
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
        JOBS,
        (
            "two drivers move the same piece of a redrive",
            "- :moved)\n WHERE task_id = :task_id AND part = :part AND step = :expected",
            "- :moved)\n WHERE task_id = :task_id AND part = :part AND step >= :expected - 100",
        ),
        ("one key has two open tasks", "AND k.task_key = :task_key\n", "AND k.task_key = ''\n"),
    ),
    *in_file(
        "sql/queries/task.sql",
        AUDITS,
        (
            "the tasks of a closed stream go on",
            "SET status = 'cancelled', updated_at = :moved_at, ended_at = :moved_at, fault = :fault\n",
            "SET updated_at = :moved_at, fault = :fault\n",
        ),
    ),
    *in_file(
        "core/tasks/run.py",
        RUN,
        (
            "a piece whose answer was lost ends the slice",
            "        except (TaskConflict, CommitOutcomeUnknown):\n",
            "        except TaskConflict:\n",
        ),
        (
            "what a failed task carried stays",
            '    if moved and verb == "fail":\n',
            '    if moved and verb == "begin":\n',
        ),
    ),
)
