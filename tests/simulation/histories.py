"""A history that an audit reads: batches, gaps, retries and replays of three partitions."""

from dataclasses import replace

from core.ingest.gaps import GapReading
from core.ingest.ingest import ingest_batch
from core.letters.retry import Keeper, claim_due, retry_chunk
from core.model.events import Event, PartitionId, SequenceNumber
from core.model.letters import LetterPosition
from tests.fakes.builders import STREAM, batch, event, partition
from tests.fakes.replaying import World, discard, order, requeue
from tests.simulation.deployments import TRANSFORMS
from tests.simulation.watch import WatchedStore

VERBS = ["home {} 1", "reading {}", "look {}", "poison", "bug", "quiet", "double {}", "home {} 0"]


def log_of(id: str, first: int, last: int) -> list[Event]:
    return [event(number, VERBS[number % 8].format(f"home-{id}-{number % 16 // 8}")) for number in range(first, last)]


def history() -> WatchedStore:
    """Deliver batches to three partitions, replay them, leave gaps, settle letters by hand, and replay again."""
    store, ends = WatchedStore(), {id: 30 + 10 * int(id) for id in ("0", "1", "2")}
    world = World(store, {id: log_of(id, 0, end) for id, end in ends.items()}, TRANSFORMS[0], piece=4)
    first = replace(world.ingesting, gap_reading=GapReading(world.hub))
    for id in ends:
        world.hub.expire_before(id, 12)  # the rows of the first batches stay
    world.transform = TRANSFORMS[1]
    world.replay()
    # Deliver only the last of forty more events: the gap is healed, but for the events that left the hub.
    for id, end in ends.items():
        more = log_of(id, end, end + 40)
        world.hub.publish(id, more)
        world.hub.expire_before(id, end + 5)
        world.hub.lose(id, end + 12, end + 13)
        ingest_batch(batch(more[30:], partition(id)), first)
    # Discard a poison event, and retry a bug that the second transform mends.
    keeper = Keeper(STREAM, store, world.transform, world.hub.find_event, world.own, world.letters)
    for move, verb in ((discard, "poison"), (requeue, "bug")):
        numbers = {id: next(n for n in range(end + 20, end + 40) if VERBS[n % 8] == verb) for id, end in ends.items()}
        places = [LetterPosition(PartitionId(id), SequenceNumber(number)) for id, number in numbers.items()]
        assert len(move(places, keeper)) == len(places)
    world.clock.advance(60.0)
    while chunks := claim_due(keeper):
        for chunk in chunks:
            retry_chunk(chunk, keeper, "a retry")
    world.piece = 7
    for is_dry_run in (True, False):
        world.replay(order(dry_run=is_dry_run))
    return store
