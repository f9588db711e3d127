"""`python -m handlers.pipeline`: show the aggregation, pause and resume it, cancel a job, discard a run or its result,
repair or backfill an aggregate, withdraw such an order, and hand over the lake's rows to a rebuild.

All but the last do the same as the routes under /api/aggregations. They need the app's settings in the environment.
"""

import argparse
import shlex
import sys
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any
from uuid import uuid4

from core.aggregation import orders
from core.aggregation.kinds import Days, Move, Order, RunOrder
from core.aggregation.publish import hand_over_rows
from core.aggregation.quality import quality_from, quality_line
from core.aggregation.runs import AggregationRun
from core.aggregation.silver import rows_job
from core.errors import AggregationConflict, HubledgerError
from handlers.app import aggregation, app
from handlers.arguments import author, reason_of
from handlers.operations.aggregation_orders import open_spark

REFUSED = 1
JOB = "an aggregate, or rows.TABLE, which keeps rows in the lake; default: the first aggregate of the transform by name"
EPILOG = """
exit codes: 0 done, 1 refused or failed (one line on standard error), 2 a bad argument

examples:
  python -m handlers.pipeline show
  python -m handlers.pipeline pause --reason "the database is restored"
  python -m handlers.pipeline cancel 4f1e2f2b52c84c5f --reason "the job hangs"
  python -m handlers.pipeline discard 4f1e2f2b52c84c5f --what run --reason "smaller runs"
  python -m handlers.pipeline repair --since 2026-02-01 --until 2026-02-03 --reason "rows were changed by hand"
  python -m handlers.pipeline backfill --job flight_punctuality --reason "declared today"
  python -m handlers.pipeline lake --job home_activity
"""


def main(arguments: list[str] | None = None) -> int:
    """Return 0 when it was done, 1 with a line on standard error when it was refused, 2 for a bad argument."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        print("\n".join(COMMANDS[given.command](given)))  # noqa: T201
    except HubledgerError as refusal:
        print(f"{parser.prog}: {refusal}", file=sys.stderr)  # noqa: T201
        return REFUSED
    return 0


def _show(given: argparse.Namespace) -> list[str]:
    own, job = app(), _job(given)
    standing = own.aggregation_store.read_standing(job)
    pause = standing.pause
    lines = [f"cut {standing.cut}", f"checkpoints {standing.reached}"]
    lines += [] if pause is None else [f"paused since {pause.at.isoformat()} by {pause.who}: {pause.reason}"]
    waiting = standing.order
    if waiting is not None:
        lines.append(f"{waiting.kind} of {waiting.days} waits, ordered by {waiting.who}: {waiting.reason}")
    for run in own.aggregation_store.read_runs(job, standing.number + 1, given.runs):
        kind = "" if run.kind == "increment" else f" {run.kind} of {run.days} from {run.rows_from},"
        told = f"{kind} {run.status}, attempt {run.attempt} {run.failure or ''}"
        lines.append(f"run {run.number} {run.run_id}:{told}".rstrip())
        quality = quality_from(run.quality)
        if quality is not None:
            lines.append(f"  quality: {quality_line(quality)}")
            lines += [] if quality.fault is None else [f"  FAULT: {quality.fault}"]
        for failure in own.pipelines.read_failures(run.run_id):
            lines.append(
                f"  submit {failure.submit}: {failure.why}: {failure.reason or 'no reason'} {failure.link or ''}"
            )
    return lines


def _pause(given: argparse.Namespace) -> list[str]:
    orders.pause(_order("pause", given), app().pipelines)
    return [f"{_job(given)} is paused"]


def _resume(given: argparse.Namespace) -> list[str]:
    orders.resume(_order("resume", given), app().pipelines)
    return [f"{_job(given)} goes on with the next tick"]


def _cancel(given: argparse.Namespace) -> list[str]:
    run = _run(given)
    orders.cancel(_order("cancel", given, run), run, app().pipelines, open_spark())
    return [f"the engine was asked to end the job {run.engine_job_id} of run {run.number}; the next attempt follows"]


def _discard(given: argparse.Namespace) -> list[str]:
    run = _run(given)
    if given.what == "result":
        orders.discard_result(_order("discard_result", given, run), run, app().pipelines)
        return [f"the staged result of run {run.number} was discarded; the next attempt follows"]
    orders.discard_run(_order("discard_run", given, run), run, app().pipelines, open_spark())
    return [f"run {run.number} was discarded; the next run takes over its commits"]


def _place(given: argparse.Namespace) -> list[str]:
    order, own, job = _order(given.command, given), app(), _job(given)
    wanted = RunOrder(given.command, Days(given.since, given.until), order.at, order.who, order.reason)
    orders.place(order, wanted, own.aggregation_store.read_standing(job), own.pipelines)
    return [f"{wanted.kind} of {job}, {wanted.days}: the next tick without an open run begins it"]


def _withdraw(given: argparse.Namespace) -> list[str]:
    own, job = app(), _job(given)
    orders.withdraw(_order("withdraw", given), own.aggregation_store.read_standing(job), own.pipelines)
    return [f"no order about {job} waits"]


def _lake(given: argparse.Namespace) -> list[str]:
    own, job, name = aggregation(), _job(given), f"reader-{uuid4().hex}"
    if own is None or own.lake is None or rows_job(job) not in own.jobs:
        raise AggregationConflict(f"the lake does not keep the rows of {job}: set SPARK_ENGINE, LAKE and LAKE_ROWS")
    transform = ("--transform", app().settings.transform)
    return [shlex.join((*transform, *hand_over_rows(own.store, own.lake, job, name)))]


COMMANDS: Mapping[str, Callable[[Any], list[str]]] = {
    "show": _show,
    "pause": _pause,
    "resume": _resume,
    "cancel": _cancel,
    "discard": _discard,
    "repair": _place,
    "backfill": _place,
    "withdraw": _withdraw,
    "lake": _lake,
}


def _order(move: Move, given: argparse.Namespace, run: AggregationRun | None = None) -> Order:
    job = _job(given) if run is None else run.job
    return Order(job, move, author(), given.reason, app().clock.now(), None if run is None else run.run_id)


def _run(given: argparse.Namespace) -> AggregationRun:
    for job in app().jobs:
        run = app().pipelines.find_run(job, given.run_id)
        if run is not None:
            return run
    raise AggregationConflict(f"there is no run {given.run_id}: python -m handlers.pipeline show lists them")


def _job(given: argparse.Namespace) -> str:
    """Return the named job, or the first one of the app's transform."""
    names = app().jobs
    if given.job in names or (given.job is None and names):
        return str(given.job or names[0])
    raise AggregationConflict(f"--job is one of {', '.join(names)}" if names else "the transform has no aggregate")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m handlers.pipeline",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    show = commands.add_parser("show", help="show the cut, the newest runs and their failures")
    show.add_argument("--runs", type=int, default=5, choices=range(1, 101), metavar="N", help="1 to 100; default: 5")
    show.add_argument("--job", help=JOB)
    lake = commands.add_parser("lake", help="print the arguments with which jobs/rebuild_aggregate.py reads the lake")
    lake.add_argument("--job", help=JOB)
    for name in ("pause", "resume", "cancel", "discard", "repair", "backfill", "withdraw"):
        command = commands.add_parser(name)
        if name in ("cancel", "discard"):
            command.add_argument("run_id", help="the id of the run, as show prints it")
        else:
            command.add_argument("--job", help=JOB)
        if name == "discard":
            command.add_argument("--what", choices=("run", "result"), required=True)
        if name in ("repair", "backfill"):
            command.add_argument("--since", type=_day, metavar="DAY", help="the first day, in UTC; default: all before")
            command.add_argument("--until", type=_day, metavar="DAY", help="the last day, in UTC; default: all after")
        command.add_argument("--reason", required=True, type=reason_of, help="it is stored; 3 to 400 characters")
    return parser


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no day like 2026-02-01") from None


if __name__ == "__main__":
    sys.exit(main())
