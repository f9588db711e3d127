"""The commands of the app, which run with its settings and without its API.

`next-incarnation` does what POST /api/streams/next-incarnation does. `rebuild-arguments` prints the arguments with
which `jobs/rebuild_aggregate.py` reads the rows in the lake. `remake-table` makes a damaged table of the lake anew.
"""

import argparse
import getpass
import shlex
import sys
from uuid import uuid4

import msgspec

from core.aggregation.lake_publication import hand_over_tables
from core.aggregation.lake_tables import rows_job
from core.aggregation.lake_upkeep import remake_table
from core.aggregation.orders import Pipelines
from core.api.problems import Problem
from core.errors import AggregationConflict, HubledgerError
from handlers.app import aggregation, app
from handlers.operations.incarnations import IncarnationShape, open_incarnation

REFUSED = 1
EPILOG = """
exit codes: 0 done, 1 refused or failed (one line on standard error), 2 a bad request

examples:
  python -m handlers.commands next-incarnation '{"expected_incarnation": 1, "reason": "the hub was recreated"}'
  python -m handlers.commands next-incarnation '{"expected_incarnation": 1, "reason": "the hub was recreated",
    "dry_run": false, "expected_hub_created_at": "2026-11-22T06:00:00Z"}'
  python -m handlers.commands rebuild-arguments
  python -m handlers.commands remake-table silver/TABLE
"""


def main(arguments: list[str] | None = None) -> int:
    """Return 0 when it was done, 1 with a line on standard error when it was refused, 2 for a bad request."""
    parser = argparse.ArgumentParser(
        prog="python -m handlers.commands",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    opening = commands.add_parser("next-incarnation", help="open the next incarnation of the stream; a dry run first")
    opening.add_argument("request", metavar="REQUEST", help="the body of POST /api/streams/next-incarnation, as JSON")
    rebuilding = commands.add_parser("rebuild-arguments", help="print the arguments of a rebuild that reads the lake")
    rebuilding.add_argument("--job", help="an aggregate; default: the first of the transform by name")
    making = commands.add_parser("remake-table", help="make a damaged table of the lake anew")
    making.add_argument("table", metavar="TABLE", help="a table of the lake, gold/NAME or silver/TABLE")
    making.add_argument("--accept-loss", action="store_true", help="leave out rows that neither SQL nor the files have")
    given = parser.parse_args(arguments)
    try:
        if given.command == "next-incarnation":
            body = msgspec.json.decode(given.request, type=IncarnationShape)
            said = msgspec.json.encode(open_incarnation(body, f"command:{getpass.getuser()}")).decode()
        elif given.command == "remake-table":
            said = remake(given.table, given.accept_loss)
        else:
            said = hand_over_rows(given.job)
        print(said)  # noqa: T201
    except msgspec.DecodeError as fault:
        opening.error(str(fault))
    except (Problem, HubledgerError) as refusal:
        why = refusal.detail if isinstance(refusal, Problem) else refusal
        print(f"{parser.prog} {given.command}: {why}", file=sys.stderr)  # noqa: T201
        return REFUSED
    return 0


def hand_over_rows(job: str | None) -> str:
    """Hand the rows of a job over to a reader, and return the arguments that name them."""
    own, names = aggregation(), app().jobs
    if not names or (job or names[0]) not in names:
        raise AggregationConflict(f"--job is one of {', '.join(names)}" if names else "the transform has no aggregate")
    of = job or names[0]
    if own is None or own.lake is None or rows_job(of) not in own.jobs:
        raise AggregationConflict(f"the lake does not keep the rows of {of}: set SPARK_ENGINE, LAKE and LAKE_ROWS")
    rows = hand_over_tables(own.store, own.lake, (rows_job(of),), f"reader-{uuid4().hex}")
    return shlex.join(("--transform", app().settings.transform, *rows))


def remake(table: str, accepts_loss: bool) -> str:
    """Order a table of the lake anew, and return what follows."""
    own = aggregation()
    if own is None:
        raise AggregationConflict("there is no lake: set SPARK_ENGINE and LAKE")
    by = (f"command:{getpass.getuser()}", own.now())
    return remake_table(own, Pipelines(app().brief), table, accepts_loss, by)


if __name__ == "__main__":
    sys.exit(main())
