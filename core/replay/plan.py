"""Decide what a piece of a replay writes: run the current transform over its events, with the states of that time.

A replayed event sees each state in its newest version from before the event: the version that this replay wrote and
carries from piece to piece, or the one from before the replay. The newest is the last one, or the greatest by the
column that orders the states. If there is no such version, because states have no history, the event sees the current
state, as the retry of a letter does.

Where the events of a partition key are kept in order, an event after an open letter of its key is not applied: its rows
are retracted, and it is held until that letter is settled.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import cast
from uuid import UUID

from core.model.commits import PartitionState
from core.model.events import Event, SequenceNumber
from core.model.letters import LetterPolicy
from core.model.ports import Clock
from core.model.rows import ReferenceKey, References, Row, RowType, row_table
from core.model.transforms import Transform
from core.replay.pieces import PartitionProgress, Piece, ReplayCommit, StandingState, WrittenState
from core.settle.settle import KeyOrder, scheduled, settle


class ReplayReferences(References):
    """The references of a replay, as they were before event `at`: the current states that a piece refers to, and those
    that the replay carries from piece to piece."""

    __slots__ = ("_standing", "at", "carried")

    def __init__(
        self,
        standing: Mapping[ReferenceKey, StandingState],
        carried: Mapping[ReferenceKey, WrittenState],
    ) -> None:
        super().__init__({})
        self._standing = dict(standing)
        self.carried = dict(carried)
        self.at = SequenceNumber(0)

    def find(self, row_class: type[RowType], *key: object) -> RowType | None:
        wanted = ReferenceKey(row_class, key)
        stands, carried = self._standing.get(wanted), self.carried.get(wanted)
        if carried is None:
            return None if stands is None else cast(RowType, stands.row)
        rank_of = row_table(row_class).rank_of
        if stands is None or stands.written_by is None or stands.written_by >= self.at:
            return cast(RowType, carried.row)
        is_newer = rank_of(carried.row, carried.number) < rank_of(stands.row, stands.written_by)
        return cast(RowType, stands.row if is_newer else carried.row)

    def learn(self, row: Row) -> None:
        key, rank_of = ReferenceKey.of(row), row_table(type(row)).rank_of
        carried, stands = self.carried.get(key), self._standing.get(key)
        if stands is not None and stands.written_by == self.at:
            del self._standing[key]  # the event writes it again
        if carried is None or rank_of(carried.row, carried.number) <= rank_of(row, self.at):
            self.carried[key] = WrittenState(self.at, row)


@dataclass(frozen=True, slots=True)
class ReplayTrial:
    """The means to replay a piece of one partition.

    `order` knows the last open letter before the piece of each partition key. Without it, the events of a partition key
    are not kept in order.
    """

    job_id: UUID
    state: PartitionState
    transform: Transform
    letters: LetterPolicy = LetterPolicy()  # noqa: RUF009 - it is frozen
    order: KeyOrder | None = None


def plan_replay(
    piece: Piece,
    progress: PartitionProgress,
    references: ReplayReferences,
    trial: ReplayTrial,
    clock: Clock,
) -> ReplayCommit:
    """Return the outcome of every event of a piece, as one value."""
    transform, order = trial.transform, trial.order

    def rows_of(event: Event, learning: References) -> Iterable[Row]:
        references.at = event.sequence_number
        return transform.rows_of(event, learning)

    following = replace(transform, rows_of=rows_of)
    settled, now = settle(piece.events, references, following, order, trial.state.partition), clock.now()
    carried = {key: state for key, state in references.carried.items() if state.number >= piece.span.first}
    opened = {} if order is None else order.last  # the events after the piece have to wait for its letters
    return ReplayCommit(
        job_id=trial.job_id,
        state=trial.state,
        piece=piece,
        settled=scheduled(settled, trial.letters, clock, now),
        carried=carried if transform.references_of else {},
        row_classes=tuple(dict.fromkeys((*transform.row_classes, *settled.rows))),
        progress=progress,
        transform_version=transform.version,
        committed_at=now,
        opened={key: one for key, one in opened.items() if one.sequence_number >= piece.span.first},
    )
