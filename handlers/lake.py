"""The timer of the lake: it compacts tables and removes unused files. No run waits for it, and none fails by it.

`python -m handlers.lake` prints the arguments with which `jobs/rebuild_aggregate.py` reads the rows in the lake.
"""

import argparse
import logging
import shlex
import sys
from typing import TYPE_CHECKING
from uuid import uuid4

import azure.functions as func

if TYPE_CHECKING:
    from core.aggregation.tick import Aggregation

log = logging.getLogger("hubledger.lake")
bp = func.Blueprint()


@bp.function_name("maintain_lake")
@bp.timer_trigger(arg_name="timer", schedule="0 40 3 * * *")
def maintain_lake(timer: func.TimerRequest) -> None:
    """Maintain the tables of all jobs, if there is a lake."""
    from handlers.app import aggregation

    own = aggregation()
    if own is not None:
        maintain(own)


def maintain(own: "Aggregation") -> None:
    """Maintain the tables of each job, and log them as one line each. A fault is logged, and left to the next time."""
    from core.aggregation.maintenance import maintain_job

    for job in own.jobs:
        facts: dict[str, object] = {"action": "maintain_lake", "job": job}
        try:
            did = maintain_job(own, job)
        except Exception as fault:  # noqa: BLE001 - whatever it is, no run may notice it
            log.warning("lake not maintained; the next time tries again", extra={**facts, "fault": repr(fault)})
        else:
            log.info("lake maintained", extra={**facts, "did": did})


def main(arguments: list[str] | None = None) -> int:
    """Print the arguments; return 1 with a line on standard error when the lake does not keep the rows."""
    from core.errors import HubledgerError

    parser = argparse.ArgumentParser(prog="python -m handlers.lake", description=__doc__)
    parser.add_argument("--job", help="an aggregate; default: the first of the transform by name")
    given = parser.parse_args(arguments)
    try:
        print(shlex.join(_handed_over(given.job)))  # noqa: T201
    except HubledgerError as refusal:
        print(f"{parser.prog}: {refusal}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _handed_over(job: str | None) -> tuple[str, ...]:
    from core.aggregation.publish import hand_over_rows
    from core.aggregation.silver import rows_job
    from core.errors import AggregationConflict
    from handlers.app import aggregation, app

    own, names = aggregation(), app().jobs
    if not names or (job or names[0]) not in names:
        raise AggregationConflict(f"--job is one of {', '.join(names)}" if names else "the transform has no aggregate")
    of = job or names[0]
    if own is None or own.lake is None or rows_job(of) not in own.jobs:
        raise AggregationConflict(f"the lake does not keep the rows of {of}: set SPARK_ENGINE, LAKE and LAKE_ROWS")
    rows = hand_over_rows(own.store, own.lake, of, f"reader-{uuid4().hex}")
    return ("--transform", app().settings.transform, *rows)


if __name__ == "__main__":
    sys.exit(main())
