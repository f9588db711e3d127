"""All at once over one store: skipped batches, healing, silence, retries, a person, replays, and what fails or dies.

A world of replays, whose batches are handed over as in a world of gaps, by owners that remember and die.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from core.errors import InfrastructureFault
from core.ingest.gaps import Healing
from core.ingest.ingest import Means, ingest_batch
from core.ingest.silence import SilenceCheck, Unhealed
from core.letters.moves import Mover, discard, requeue
from core.letters.port import Keeper
from core.letters.retry import claim_due, retry_chunk
from core.model.events import PartitionId
from core.model.letters import LetterChunk, LetterPosition
from core.model.spans import SequenceNumber
from core.store.database import Waiting
from tests.fakes.builders import LATEST, STREAM, batch, partition
from tests.fakes.faulty_database import Killed
from tests.fakes.store import Store
from tests.simulation.held_letters import HeldLetters
from tests.simulation.joint_books import JointBooks
from tests.simulation.replay_world import ReplayWorld
from tests.simulation.world import GRACE, OWNERS, Owner, handed_over

LATE = 8  # chunks that are kept, for an activity may run again, much later
PERSON = Mover("somebody", "the world asks")


class JointWorld(ReplayWorld):
    """`lost` are the numbers that left the hub before they were committed: only these may be absent."""

    def __init__(self, seed: int, store: Store) -> None:
        super().__init__(seed, Store(HeldLetters(store.database)))
        self._skips = self.chance.choice([0.0, 0.1, 0.5])
        self.retention = self.chance.random() < 0.5
        self.seen: Counter[str] = Counter()
        self.told: set[tuple[str, int]] = set()  # what the person was told was discarded
        self.lost: dict[str, set[int]] = {id: set() for id in self.logs}
        for id, log in self.logs.items():
            self.begins[id] = self.chance.choice([0, 0, 0, self.chance.randrange(len(log))])
            self.expired[id] = self.begins[id]
            self.hub.expire_before(id, self.begins[id])
            self.logs[id] = log[self.begins[id] :]
        self.books = JointBooks(self.logs, self.lost)
        self._chunks: list[LetterChunk] = []
        self._owners = [self._new_owner() for _ in range(OWNERS)]

    def _acts(self) -> list[Callable[[], None]]:
        deliver = [lambda: self._deliver(self.chance.choice(list(self.logs)))] * 2
        return [*super()._acts(), *deliver, self._look, self._look, self._retry, self._person]

    def _step(self) -> None:
        super()._step()
        if self._depth == 0:
            self.books.check(self.record)

    def _new_owner(self) -> Owner:
        """A process, with the transform of the latest deployment."""
        waiting = Waiting(self.clock.monotonic, self.clock.sleep, self.chance.random)
        patient = self._troubled().patient(timedelta(seconds=1), waiting)
        store = patient.remembering(timedelta(seconds=60), self.clock.monotonic)
        healing = Healing(self.hub)
        check = SilenceCheck(Means(patient, self.transform, self._own, healing), GRACE)
        return Owner(Means(store, self.transform, self._own, healing), check)

    def _deploy(self) -> None:
        super()._deploy()
        self._owners = [self._new_owner() for _ in range(OWNERS)]

    def _as_owner(self, act: Callable[[Owner], None]) -> None:
        number = self.chance.randrange(OWNERS)
        try:
            act(self._owners[number])
        except Killed:
            self.seen["deaths"] += 1
            self._owners[number] = self._new_owner()

    def _deliver(self, id: str) -> None:
        given = handed_over(self.logs[id], self._committed(id) - self.begins[id], self._skips, self.chance)
        if given:
            self._as_owner(lambda owner: self._ingest(id, given, owner.means))

    def _ingest(self, id: str, given: list, means: Means) -> None:
        done = ingest_batch(batch(given, partition(id)), means)
        self.seen["healed"] += done.healed

    def _look(self) -> None:
        self._as_owner(self._look_of)

    def _look_of(self, owner: Owner) -> None:
        for looked in owner.check.run("timer"):
            assert self._trouble or not isinstance(looked, Unhealed), looked
            self.seen["silent"] += not isinstance(looked, Unhealed)

    def _expire(self) -> None:
        """Retention moves on, over events that were not read as well, once it is settled where a partition begins."""
        id = self.chance.choice(list(self.logs))
        state = self.record.read_partition(partition(id))
        held = sorted(self.hub.held[id])
        if not self.retention or not held or (state.checkpoint is None and state.anchor is None):
            return
        cut = self.chance.choice([*held, held[-1] + 1])  # with luck all of it goes
        self.lost[id].update(one for one in held if self._committed(id) <= one < cut)
        self.expired[id] = max(self.expired[id], cut)
        self.hub.expire_before(id, cut)

    def _retry(self) -> None:
        """Letters are claimed now, and tried at once, later or twice, by whoever comes."""
        keeper = self._keeper(self._troubled().remembering(timedelta(seconds=60), self.clock.monotonic))
        if self.chance.random() < 0.6:
            self._chunks = [*self._chunks, *claim_due(keeper)][-LATE:]
        if self._chunks:
            chunk = LetterChunk.from_json(self.chance.choice(self._chunks).to_json())
            report = retry_chunk(chunk, keeper, f"activity-{self.chance.getrandbits(32)}")
            self.retried += report.resolved
            self.seen["lost claims"] += report.lost

    def _keeper(self, store: Store) -> Keeper:
        return Keeper(STREAM, store, self.transform, self.hub.find_event, self._own)

    def _person(self) -> None:
        some = [
            LetterPosition(PartitionId(id), SequenceNumber(number))
            for id in self.logs
            for number in range(self._committed(id))
            if self.chance.random() < 0.15
        ]
        keeper = self._keeper(self._troubled().remembering(timedelta(seconds=60), self.clock.monotonic))
        act = self.chance.choice([discard, requeue, requeue])
        report = act(some, keeper, PERSON)
        if act is discard:
            self.told.update((one.partition_id, int(one.sequence_number)) for one in report.moved)

    def _committed(self, id: str) -> int:
        checkpoint = self.record.read_partition(partition(id)).checkpoint
        return self.begins[id] if checkpoint is None else checkpoint.sequence_number + 1

    def _come_to_rest(self) -> None:
        """The host loses nothing more; what it lost at the end comes by the timer or before the next batch."""
        self._skips = 0.0
        self._owners = [self._new_owner() for _ in range(OWNERS)]
        for id, log in self.logs.items():
            while self._committed(id) < self.begins[id] + len(log):
                self.clock.advance(45.0)
                self._look() if self.chance.random() < 0.5 else self._deliver(id)
        self._settle_letters()
        self.books.check(self.record)

    def _settle_letters(self) -> None:
        """Time passes until no letter waits any more."""
        store = self._troubled().remembering(timedelta(seconds=60), self.clock.monotonic)
        for _ in range(2_000):
            due = store.next_due_at(STREAM, LATEST)
            if due is None:
                return
            self.clock.seconds += max(0.0, (due - self.clock.now()).total_seconds())
            keeper = self._keeper(store)
            with suppress(InfrastructureFault):
                for chunk in claim_due(keeper):
                    self.retried += retry_chunk(chunk, keeper, "at rest").resolved
        raise AssertionError("letters never come to rest")

    def _end(self) -> None:
        super()._end()
        for id in self.logs:
            self.record.close_gaps(partition(id))
        self.books.check(self.record)
