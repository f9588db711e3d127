"""Incarnations in SQL: the transaction that closes one and opens the next."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from core.errors import IncarnationConflict
from core.model.events import Incarnation, PartitionId, Stream
from core.model.spans import SequenceNumber
from core.replay.store.scripts import forget_states
from core.settle.store.partitions import Partitions
from core.store.columns import WHO_LENGTH, WHY_LENGTH, cut, instant_text
from core.store.script import Script, Step

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


class Incarnations(Partitions):
    """Opens the next incarnations of streams."""

    def open_incarnation(self, opening: Opening) -> None:
        """Close an incarnation and open the next one with its anchors, in one transaction.

        Stops of reason `incarnation` end, and so do open replays of the closed stream. Raises IncarnationConflict.
        """
        self._database.run(opening_script(opening))
        forget_states(self._database)


def opening_script(opening: Opening) -> Script:
    """Return the transaction of the next incarnation; the row of the closed one is its lock."""
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
            Step("cancel_tasks_of_stream", {**stream_id, "moved_at": at, "fault": WHY_CANCELLED}),
        ),
    )
