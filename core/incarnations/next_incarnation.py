"""Open the next incarnation of a stream after its hub was recreated, and close the former one.

A person requests it (docs/operator.md). The old books stay as they are, with their rows and letters. The new ones begin
in every partition of the hub at an anchor. A dry run shows beforehand which events will be read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from core.errors import CommitOutcomeUnknown, HubledgerError, HubUnreachable, IncarnationConflict
from core.incarnations.hub_check import choose_anchor, contradiction, created_differently
from core.model.commits import PartitionState
from core.model.events import Incarnation, PartitionId, SequenceNumber, Stream
from core.model.policies import Anchoring
from core.model.ports import Clock, HubReader
from core.settle.partition_store import Partitions
from core.store.columns import WHO_LENGTH, WHY_LENGTH, cut, instant_text
from core.store.database import Database
from core.store.script import Script, Step
from core.tasks.store import forget_states

WHY_CANCELLED = "the next incarnation of the stream was opened: the numbers of this job are of the old hub"


@dataclass(frozen=True, slots=True)
class Opening:
    """The values that the transaction of the next incarnation writes."""

    closed: Incarnation
    stream: Stream
    hub_created_at: datetime
    anchors: Mapping[PartitionId, SequenceNumber]
    opened_by: str
    opened_why: str
    opened_at: datetime


class Incarnations:
    """Opens the next incarnations of streams."""

    def __init__(self, database: Database, partitions: Partitions) -> None:
        self._database = database
        self.partitions = partitions

    def open_incarnation(self, opening: Opening) -> None:
        """Close an incarnation and open the next one with its anchors, in one transaction.

        Stops of reason `incarnation` end, and so do open replays of the closed stream. Raises IncarnationConflict.
        """
        self._database.run(opening_script(opening))
        forget_states(self._database)


def opening_script(opening: Opening) -> Script:
    """Return the transaction of the next incarnation. The row of the closed one is its lock."""
    closed, at = opening.closed, instant_text(opening.opened_at)
    stream_id = {"stream_id": closed.stream_id}
    opened = {
        "anchored_at": at,
        "hub_created_at": instant_text(opening.hub_created_at),
        "opened_by": cut(opening.opened_by, WHO_LENGTH),
        "opened_why": cut(opening.opened_why, WHY_LENGTH),
    }
    anchors = [{"partition_id": id, "sequence_number": number} for id, number in opening.anchors.items()]
    conflict = partial(
        IncarnationConflict, f"{opening.stream.event_hub} {opening.stream.consumer_group}", closed.number
    )
    closing = {**stream_id, "incarnation": closed.number, "closed_at": at}
    return Script(
        opening.stream.event_hub,
        (
            Step("close_incarnation", closing, expect=1, otherwise=conflict),
            Step("open_incarnation", {**stream_id, **opened}),
            Step("anchor_incarnation", {**stream_id, "anchored_at": at}, many=anchors),
            Step("clear_incarnation_stops", stream_id),
            Step("carry_erasures", stream_id),
            Step("cancel_tasks_of_stream", {**stream_id, "moved_at": at, "fault": WHY_CANCELLED}),
        ),
    )


@dataclass(frozen=True, slots=True)
class IncarnationOrder:
    """The request of a person, with the state that the person saw: the stream's incarnation, and the time at which the
    present hub was created (None: not seen yet). `is_forced` opens an incarnation of a hub that still fits."""

    requested_by: str
    reason: str
    expected_incarnation: int
    expected_created_at: datetime | None = None
    is_dry_run: bool = True
    anchoring: Anchoring = "first"
    is_forced: bool = False


@dataclass(frozen=True, slots=True)
class Beginning:
    """The anchor of a partition in the next incarnation, and the numbers that the hub holds.

    `evidence` says how the hub contradicts the old checkpoint, or None where it does not.
    """

    partition_id: PartitionId
    anchor: SequenceNumber
    beginning: SequenceNumber
    end: SequenceNumber
    evidence: str | None

    @property
    def numbers(self) -> int:
        """The count of numbers from the anchor to the hub's end."""
        return max(0, self.end - self.anchor + 1)


@dataclass(frozen=True, slots=True)
class IncarnationReport:
    """The report of an opening or of its dry run: the closed incarnation, and the beginnings of the next."""

    closed: Incarnation
    hub_created_at: datetime
    is_opened: bool
    evidence: str | None
    beginnings: tuple[Beginning, ...]


class StateDiffers(HubledgerError):
    """The stream or the hub is not as the person saw it. Nothing was changed."""

    def __init__(self, found: Incarnation, hub_created_at: datetime) -> None:
        super().__init__(
            f"the stream is in incarnation {found.number}, and its hub was created at {hub_created_at.isoformat()}:"
            " repeat the dry run, and expect this state; nothing was changed"
        )
        self.incarnation = found.number
        self.hub_created_at = hub_created_at


class HubFits(HubledgerError):
    """The hub is the one that the stream was read from. Nothing was changed."""

    def __init__(self, found: Incarnation) -> None:
        super().__init__(
            f"the hub is still the one of incarnation {found.number}, and all its checkpoints fit; nothing was changed."
            " To open the next incarnation anyway, force it (--force)"
        )


@dataclass(frozen=True, slots=True)
class IncarnationMeans:
    """The means to open the next incarnation of a stream."""

    stream: Stream
    store: Incarnations
    hub: HubReader
    clock: Clock


def next_incarnation(order: IncarnationOrder, means: IncarnationMeans) -> IncarnationReport:
    """Open the next incarnation, or only report it in a dry run. The same order is refused the second time.

    Raises StateDiffers, HubFits, IncarnationConflict, HubUnreachable and the faults of the store.
    """
    found, created_at = means.store.partitions.read_incarnation(means.stream), means.hub.created_at()
    expected = (order.expected_incarnation, order.expected_created_at or created_at)
    if expected != (found.number, created_at):
        raise StateDiffers(found, created_at)
    beginnings: list[Beginning] = []
    for partition in means.hub.partitions():
        extent = means.hub.extent(partition)
        fresh = PartitionState(partition, 0, None, opened_at=means.clock.now())
        anchor = choose_anchor(fresh, order.anchoring, means.hub)
        contrary = contradiction(means.store.partitions.read_partition(partition), means.hub)
        beginnings.append(Beginning(partition.partition_id, anchor, extent.beginning, extent.last, contrary))
    stored = found.hub_created_at
    if stored is None or stored == created_at:
        evidence = next((f"partition {one.partition_id}: {one.evidence}" for one in beginnings if one.evidence), None)
    else:
        evidence = created_differently(created_at, stored)
    if evidence is None and not order.is_forced:
        raise HubFits(found)
    if means.hub.created_at() != created_at:
        raise HubUnreachable("the hub was recreated while it was read: repeat the dry run")
    if not order.is_dry_run:
        anchors = {one.partition_id: one.anchor for one in beginnings}
        by, why, now = order.requested_by, order.reason, means.clock.now()
        opening = Opening(found, means.stream, created_at, anchors, by, why, now)
        try:
            means.store.open_incarnation(opening)
        except CommitOutcomeUnknown:
            after = means.store.partitions.read_incarnation(means.stream)
            if (after.number, after.opened_at) != (found.number + 1, now):
                raise
    return IncarnationReport(found, created_at, not order.is_dry_run, evidence, tuple(beginnings))
