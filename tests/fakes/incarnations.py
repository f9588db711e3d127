"""The next incarnation of a stream, as an operator opens it."""

from core.incarnations.next_incarnation import Incarnations, Opening
from core.model.events import PartitionId, SequenceNumber
from core.settle.partition_store import Partitions
from tests.fakes.builders import NOON, STREAM
from tests.fakes.store import Store


def opening(store: Store, first: int = 0) -> Opening:
    anchors = {PartitionId(id): SequenceNumber(first) for id in ("0", "1")}
    return Opening(store.read_incarnation(STREAM), STREAM, NOON, anchors, "ada", "the hub was recreated", NOON)


def open_next(store: Store, first: int = 0) -> None:
    Incarnations(store.database, Partitions(store.database)).open_incarnation(opening(store, first))
