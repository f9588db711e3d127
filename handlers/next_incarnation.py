"""`python -m handlers.next_incarnation`: open the next incarnation of the stream, after the hub was recreated.

By default it only prints which events would be read, and from where. With --open it opens the incarnation without a
question: give it the incarnation and the time of creation that the dry run printed.
"""

import argparse
import sys
from datetime import datetime

import msgspec

from core.errors import HubledgerError
from core.ingest.anchor import Anchoring, anchoring_of
from core.ledger.next_incarnation import IncarnationOrder, next_incarnation
from core.model.clock import parse_instant
from handlers.app import app
from handlers.arguments import author, reason_of
from handlers.operations.streams import IncarnationAnswer, answer_of

REFUSED = 1
A_TIME = "a time with its zone, such as 2026-01-01T00:00:00Z"
EPILOG = """
exit codes: 0 done, 1 refused or failed (one line on standard error), 2 a bad argument

examples:
  python -m handlers.next_incarnation --reason "the hub was recreated"
  python -m handlers.next_incarnation --reason "the hub was recreated" --open 1 --hub-created-at 2026-11-22T06:00:00Z
"""


def main(arguments: list[str] | None = None) -> int:
    """Return 0 when it was done, 1 with a line on standard error when it was refused, 2 for a bad argument."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if (given.open is None) != (given.hub_created_at is None):
        parser.error("--open and --hub-created-at go together: give both as the dry run printed them")
    try:
        own = app()
        number = given.open or own.incarnations.read_incarnation(own.settings.stream).number
        order = IncarnationOrder(
            author(),
            given.reason,
            number,
            given.hub_created_at,
            given.open is None,
            given.anchor,
            given.force,
        )
        answer = answer_of(next_incarnation(order, own.succession))
    except HubledgerError as refusal:
        print(f"{parser.prog}: {refusal}", file=sys.stderr)  # noqa: T201
        return REFUSED
    print(msgspec.json.encode(answer).decode() if given.json else _lines(answer))  # noqa: T201
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m handlers.next_incarnation",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--reason", required=True, type=reason_of, help="the reason, which is stored; 3 to 400 characters")
    add("--open", type=int, metavar="N", help="open it; N is the incarnation to close, as the dry run printed it")
    add("--hub-created-at", type=_instant, metavar="TIME", help="when the hub was created, as the dry run printed it")
    add(
        "--anchor",
        type=_anchoring,
        default="first",
        help="where partitions begin: first (default), latest, or a time in RFC 3339",
    )
    add("--force", action="store_true", help="open an incarnation although the hub still fits")
    add("--json", action="store_true", help="print the answer of POST /api/streams/next-incarnation")
    return parser


def _instant(text: str) -> datetime:
    try:
        return parse_instant(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not {A_TIME}") from None


def _anchoring(text: str) -> Anchoring:
    try:
        return anchoring_of(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not first, latest or {A_TIME}") from None


def _lines(answer: IncarnationAnswer) -> str:
    """Return the answer as lines for a person."""
    old, done = answer.old_books, answer.outcome == "opened"
    created = answer.hub_created_at.isoformat().replace("+00:00", "Z")
    lines = [
        f"incarnation {answer.incarnation} {'is opened' if done else 'would be opened (dry run: nothing was changed)'}",
        f"  evidence: {answer.evidence or 'none: it was forced'}",
        f"  the hub was created at {created}; {answer.numbers} of its numbers will be read",
    ]
    lines += [
        f"  partition {one.partition_id}: from {one.anchor}; the hub holds {one.hub_beginning} to {one.hub_end},"
        f" of which {one.numbers} will be read"
        for one in answer.partitions
    ]
    balanced = "balanced" if old.balanced else "not balanced"
    lines += [
        f"  the books of incarnation {old.incarnation} end with {old.accounted} of {old.numbers} numbers accounted for"
        f" ({balanced}); its {old.letters_open} open letters stay in it and are not retried",
    ]
    if not done:
        lines.append(f"  to open it: --open {old.incarnation} --hub-created-at {created}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
