"""A person moves letters at once: a redrive, as the app makes one."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import cast

from core.letters.listing import LetterListing
from core.letters.redrive import LetterOrder, Redrive, RedriveKind
from core.letters.retry import Keeper
from core.model.letters import MOVES, LetterPosition, OrderedMove
from core.store.columns import numbers_json
from core.store.database import OneStream
from core.tasks.run import work_on
from tests.fakes.redriving import request_redrive
from tests.fakes.store import Store

EVER = datetime.max.replace(tzinfo=UTC)


def redriving(keeper: Keeper) -> RedriveKind:
    store = cast(Store, keeper.store)  # the stores of tests have the verbs of all rooms
    listing = LetterListing(OneStream(store.database, keeper.stream, lambda: keeper.clock.now().timestamp()))
    return RedriveKind(keeper.stream, store, listing, keeper.clock, _rest)


def discard(
    positions: Iterable[LetterPosition], keeper: Keeper, by: str = "somebody", why: str = "because"
) -> tuple[LetterPosition, ...]:
    return _move("discard", positions, keeper, by, why)


def requeue(
    positions: Iterable[LetterPosition], keeper: Keeper, by: str = "somebody", why: str = "because"
) -> tuple[LetterPosition, ...]:
    return _move("requeue", positions, keeper, by, why)


def drive(keeper: Keeper) -> None:
    kind = redriving(keeper)
    for task_id, name, _ in kind.tasks.read_open(keeper.store.partitions.open_stream(keeper.stream)):
        if name == "redrive":
            work_on(task_id, None, kind, EVER)


def _move(
    move: OrderedMove, positions: Iterable[LetterPosition], keeper: Keeper, by: str, why: str
) -> tuple[LetterPosition, ...]:
    kind, chosen = redriving(keeper), tuple(dict.fromkeys(positions))
    movable = kind.listing.find_selected(chosen, MOVES[move].sources)
    job = request_redrive(LetterOrder(move, chosen, len(movable)), kind, by, why)
    if isinstance(job, int):
        return ()
    work_on(job.task.task_id, None, kind, EVER)
    return tuple(one for one in movable if _was_moved(one, job, kind))


def _was_moved(one: LetterPosition, job: Redrive, kind: RedriveKind) -> bool:
    place = {"stream_id": job.task.stream_id, "partition_id": one.partition_id, "move_id": str(job.task.task_id)}
    database = cast(Store, kind.store).database
    found = database.ask("find_moved", **place, sequence_numbers=numbers_json([one.sequence_number]))
    return [touched_by for _, _, touched_by in found] == [place["move_id"]]


def _rest(seconds: object) -> None:
    raise AssertionError("a redrive without a rate does not rest")
