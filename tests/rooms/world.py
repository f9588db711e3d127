"""The samples of a room in a database: what the app wrote, and what it does with them later."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

from core.audit.audit import audit, recount_rows
from core.audit.store import AuditStore
from core.letters.retry import Keeper, claim_due, retry_chunk
from core.model.events import PartitionId, SequenceNumber, Span
from core.model.letters import LetterPosition
from core.model.rows import Row, row_table
from core.model.transforms import Transform
from core.store.columns import fields_of
from core.store.database import OneStream
from core.transforms.loading import Room
from tests.fakes.builders import STREAM
from tests.fakes.kept import Engine, KeptLetter
from tests.fakes.moving import requeue
from tests.fakes.replaying import World
from tests.fakes.store import Store
from tests.rooms.found import logs_of, transform_of

Written = dict[str, list[tuple[object, ...]]]


def ingested(room: Room, store: Store, transform: Transform | None = None) -> World:
    """Ingest the samples of a room in batches of a few events, partition by partition."""
    return World(store, {id: list(log) for id, log in logs_of(room).items()}, transform or transform_of(room))


def written(engine: Engine, transform: Transform) -> Written:
    """Return the rows of each class with their places, without the commits that wrote them."""
    return {
        each.__name__: [(one.partition_id, one.sequence_number, one.ordinal, one.row) for one in engine.rows(each)]
        for each in transform.row_classes
    }


def retry_all(world: World, letters: Iterable[KeptLetter]) -> None:
    """Let a person requeue these letters, and the keeper try each once."""
    keeper = Keeper(STREAM, world.store, world.transform, world.hub.find_event, world.own)
    requeue(
        [LetterPosition(PartitionId(one.partition_id), SequenceNumber(one.sequence_number)) for one in letters],
        keeper,
        why="the same code was deployed again",
    )
    world.clock.advance(3_600)
    for chunk in claim_due(keeper):
        retry_chunk(chunk, keeper, "retry-1")


def faults_of_books(world: World) -> list[str]:
    """Return all that an audit finds, which counts and sums up every row of every table."""
    audits = AuditStore(OneStream(world.store.database, STREAM), world.transform.row_classes)
    done = audit(audits, None)
    whole = Span(SequenceNumber(0), SequenceNumber(10**6))
    recounted = [fault for one in done.partitions for fault in recount_rows(one, whole, audits).faults]
    return [str(fault) for fault in (*done.faults, *recounted)]


def refused(row: Row) -> Row | None:
    """Return the row with None in a text that no column takes without a value, or else with a value of no type.

    None when the class has no field besides its key.
    """
    table = row_table(type(row))
    texts = sorted((name for name, hint in fields_of(type(row)) if hint is str), key=lambda name: name in table.key)
    others = [name for name, _ in fields_of(type(row)) if name not in table.key]
    chosen = {texts[0]: None} if texts else dict.fromkeys(others[:1], 1j)
    return cast(Row, replace(cast(Any, row), **chosen)) if chosen else None
