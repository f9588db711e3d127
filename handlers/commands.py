"""The commands of the app: open the next incarnation of the stream, with a reason and a name.

It does what POST /api/streams/next-incarnation does, with the app's settings and without the API. REQUEST is the body
of the request, as JSON. By default it is a dry run; the answer is printed.
"""

import argparse
import getpass
import sys

import msgspec

from core.api.problems import Problem
from core.errors import HubledgerError
from handlers.operations.incarnations import IncarnationShape, open_incarnation

REFUSED = 1
EPILOG = """
exit codes: 0 done, 1 refused or failed (one line on standard error), 2 a bad request

examples:
  python -m handlers.commands '{"expected_incarnation": 1, "reason": "the hub was recreated"}'
  python -m handlers.commands '{"expected_incarnation": 1, "reason": "the hub was recreated",
    "dry_run": false, "expected_hub_created_at": "2026-11-22T06:00:00Z"}'
"""


def main(arguments: list[str] | None = None) -> int:
    """Return 0 when it was done, 1 with a line on standard error when it was refused, 2 for a bad request."""
    parser = argparse.ArgumentParser(
        prog="python -m handlers.commands",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("request", help="the body of POST /api/streams/next-incarnation")
    try:
        body = msgspec.json.decode(parser.parse_args(arguments).request, type=IncarnationShape)
    except msgspec.DecodeError as fault:
        parser.error(str(fault))
    try:
        answer = open_incarnation(body, f"command:{getpass.getuser()}")
    except (Problem, HubledgerError) as refusal:
        said = refusal.detail if isinstance(refusal, Problem) else refusal
        print(f"{parser.prog}: {said}", file=sys.stderr)  # noqa: T201
        return REFUSED
    print(msgspec.json.encode(answer).decode())  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
