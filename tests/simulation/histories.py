"""A bench: a store, a hub and a clock on which acts are made one by one, and a history that an audit reads."""

from collections.abc import Sequence
from datetime import timedelta

from core.ingest.gaps import GapReading
from core.ingest.ingest import Ingestion, ingest_batch
from core.letters.retry import Keeper, claim_due, retry_chunk
from core.model.events import Event, PartitionId, SequenceNumber
from core.model.letters import Backoff, LetterPolicy, LetterPosition
from core.model.transforms import Transform
from core.replay.task import ReplayKind
from core.tasks.run import open_parts, work_on
from core.tasks.task import TaskOrder
from tests.fakes.builders import STREAM, FakeClock, batch, event, partition, stamps
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.redriving import discard, requeue
from tests.fakes.replaying import order, request_replay
from tests.simulation.deployments import TRANSFORMS
from tests.simulation.watch import WatchedStore

FIRST, SECOND = TRANSFORMS[0], TRANSFORMS[1]
FEW_TRIES = LetterPolicy(Backoff(attempts=2), chunk=3)
VERBS = ["home {} 1", "reading {}", "look {}", "poison", "bug", "quiet", "double {}", "home {} 0"]


class Bench:
    """A watched store, empty or from an image, a hub and a clock."""

    def __init__(self, hub: MemoryHub, image: bytes | None = None, letters: LetterPolicy = FEW_TRIES) -> None:
        self.store, self.hub, self.clock = WatchedStore(image), hub, FakeClock()
        self.own, self.letters = stamps(11, self.clock), letters

    @property
    def order(self) -> TaskOrder:
        stream_id = self.store.open_stream(STREAM)
        return TaskOrder(self.own.new_id(), stream_id, "somebody", "why", self.clock.now())

    def ingest(self, events: Sequence[Event], id: str = "0") -> None:
        means = Ingestion(self.store, FIRST, self.own, GapReading(self.hub), self.letters)
        ingest_batch(batch(events, partition(id)), means)

    def keeper(self, transform: Transform = FIRST) -> Keeper:
        return Keeper(STREAM, self.store, transform, self.hub.find_event, self.own, self.letters)

    def retry(self, keeper: Keeper) -> None:
        while chunks := claim_due(keeper):
            for chunk in chunks:
                retry_chunk(chunk, keeper, "a retry")

    def replay(self, is_dry_run: bool, piece: int = 4) -> None:
        kind = ReplayKind(STREAM, self.store, self.hub, SECOND, self.own, self.letters, piece=piece)
        job_id = request_replay(order(dry_run=is_dry_run), kind, 10**6).task.task_id
        while ids := open_parts(job_id, kind):
            for id in ids:
                work_on(job_id, id, kind, self.clock.now() + timedelta(minutes=1))


def log_of(id: str, first: int, last: int) -> list[Event]:
    return [event(number, VERBS[number % 8].format(f"home-{id}-{number % 16 // 8}")) for number in range(first, last)]


def history() -> Bench:
    """Deliver batches to three partitions, replay them, leave gaps, settle letters by hand, and replay again."""
    logs = {id: log_of(id, 0, 30 + 10 * int(id)) for id in ("0", "1", "2")}
    bench = Bench(MemoryHub(logs), letters=LetterPolicy())
    for id, log in logs.items():
        for at in range(0, len(log), 9):
            bench.ingest(log[at : at + 9], id)
        bench.hub.expire_before(id, 12)  # the rows of the first batches stay
    bench.replay(is_dry_run=False)
    # Deliver only the last of forty more events: the gap is healed, but for the events that left the hub.
    ends = {id: len(log) for id, log in logs.items()}
    for id, end in ends.items():
        more = log_of(id, end, end + 40)
        bench.hub.publish(id, more)
        bench.hub.expire_before(id, end + 5)
        bench.hub.lose(id, end + 12, end + 13)
        bench.ingest(more[30:], id)
    # Discard a poison event, and retry a bug that the second transform mends.
    keeper = bench.keeper(SECOND)
    for move, verb in ((discard, "poison"), (requeue, "bug")):
        numbers = {id: next(n for n in range(end + 20, end + 40) if VERBS[n % 8] == verb) for id, end in ends.items()}
        places = [LetterPosition(PartitionId(id), SequenceNumber(number)) for id, number in numbers.items()]
        assert len(move(places, keeper)) == len(places)
    bench.clock.advance(60.0)
    bench.retry(keeper)
    for is_dry_run in (True, False):
        bench.replay(is_dry_run, 7)
    return bench
