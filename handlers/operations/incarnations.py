"""Open the next incarnation of the stream: a dry run by default, which shows the numbers that will be read."""

import logging
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from core.api.operation import Call, operation
from core.api.problems import CONFLICT, STATE_DIFFERS, Problem, invalid
from core.errors import IncarnationConflict
from core.incarnations.next_incarnation import (
    HubFits,
    IncarnationMeans,
    IncarnationOrder,
    Incarnations,
    StateDiffers,
    next_incarnation,
)
from core.model.policies import anchoring_of
from core.model.shapes import Answered, Instant, Nothing, Reason, Shape, utc, written
from core.settle.partition_store import Partitions
from handlers.app import app

log = logging.getLogger("hubledger.api")
Anchor = Annotated[str, msgspec.Meta(max_length=40, description="`first`, `latest`, or RFC 3339 with its zone.")]


class IncarnationShape(Shape):
    """The state that the operator saw, and the reason. Nothing is changed unless `dry_run` is false. A change requires
    `expected_hub_created_at`: the dry run returns it as `hub_created_at`. `force` opens an incarnation although the hub
    still fits."""

    reason: Reason
    expected_incarnation: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
    expected_hub_created_at: Instant | None = None
    anchor: Anchor = "first"
    dry_run: bool = True
    force: bool = False


class BeginningAnswer(Answered):
    """A partition of the next incarnation, which begins at `anchor`. The hub holds the numbers from `hub_beginning` to
    `hub_end`, of which `numbers` will be read. `evidence` is null where the hub does not contradict the checkpoint."""

    partition_id: str
    anchor: str
    hub_beginning: str
    hub_end: str
    numbers: int
    evidence: str | None


class IncarnationAnswer(Answered):
    """The next incarnation, opened or only planned. `evidence` says how its hub differs. It is null after `force`."""

    outcome: Literal["dry_run", "opened"]
    incarnation: int
    hub_created_at: datetime
    evidence: str | None
    numbers: int
    partitions: list[BeginningAnswer]


@operation(
    "Open the next incarnation of the stream; a dry run by default", "streams", problems=(CONFLICT, STATE_DIFFERS)
)
def open_next_incarnation(call: Call[Nothing, Nothing, IncarnationShape]) -> IncarnationAnswer:
    """Close the books of the former hub, and begin those of the present one."""
    return open_incarnation(call.body, call.who)


def open_incarnation(body: IncarnationShape, who: str) -> IncarnationAnswer:
    """Do what the request says, and record it under a name. Raises Problem and the faults of hub and store."""
    own, expected = app(), body.expected_hub_created_at
    if not body.dry_run and expected is None:
        raise invalid("expected_hub_created_at", "give the hub_created_at of the dry run, to open the incarnation")
    try:
        anchoring = anchoring_of(body.anchor)
    except ValueError:
        wanted = "not first, latest or a time with its zone, such as 2026-01-01T00:00:00Z"
        raise invalid("anchor", f"{body.anchor!r} is {wanted}") from None
    order = IncarnationOrder(
        requested_by=who,
        reason=body.reason,
        expected_incarnation=body.expected_incarnation,
        expected_created_at=None if expected is None else utc(expected, "expected_hub_created_at"),
        is_dry_run=body.dry_run,
        anchoring=anchoring,
        is_forced=body.force,
    )
    means = IncarnationMeans(own.settings.stream, Incarnations(own.brief, Partitions(own.brief)), own.hub, own.clock)
    try:
        report = next_incarnation(order, means)
    except StateDiffers as differs:
        found = {"incarnation": differs.incarnation, "hub_created_at": differs.hub_created_at}
        raise Problem(STATE_DIFFERS, str(differs), more=found) from differs
    except (HubFits, IncarnationConflict) as refusal:
        raise Problem(CONFLICT, str(refusal)) from refusal
    if report.is_opened:
        own.letter_counts.forget()
        facts = {"who": who, "incarnation": report.closed.number + 1}
        log.warning("next incarnation opened", extra={"action": "next_incarnation", **facts})
    return written(
        IncarnationAnswer,
        report,
        outcome="opened" if report.is_opened else "dry_run",
        incarnation=report.closed.number + 1,
        numbers=sum(one.numbers for one in report.beginnings),
        partitions=[
            written(BeginningAnswer, one, hub_beginning=str(one.beginning), hub_end=str(one.end))
            for one in report.beginnings
        ],
    )
