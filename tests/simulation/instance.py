"""One process of the app: its memory, its clock, and all that it does with the store and the hub."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from core.incarnations.hub_check import HubVerification, VerifiedHub
from core.incarnations.next_incarnation import IncarnationMeans, Incarnations
from core.ingest.gaps import GapReading
from core.ingest.ingest import Ingestion
from core.ingest.stalled_partitions import HostCheckpoints, SilenceCheck
from core.letters.retry import Keeper
from core.model.events import Event
from core.model.letters import LetterPolicy
from core.model.policies import Fuse
from core.model.ports import Clock
from core.model.rows import References, Row
from core.model.transforms import Transform
from core.replay.task import ReplayKind
from core.settle.attempts import StoredJournal
from core.settle.partition_store import Partitions
from core.settle.settle import EventKilled
from core.store.database import Database, Waiting, store_clock
from tests.fakes.builders import STREAM, FakeClock
from tests.fakes.faulty_database import Killed
from tests.fakes.store import Store
from tests.simulation.deployments import deadly
from tests.simulation.faults import ProcessDatabase
from tests.simulation.hub import SimulatedHub
from tests.simulation.trouble import Trouble

GRACE = timedelta(seconds=60)
PATIENCE, KEPT = timedelta(seconds=0.3), timedelta(seconds=60)


@dataclass(slots=True)
class Site:
    """The parts that all instances share: the database, the hub, the true time, and the faults."""

    database: Database
    hub: SimulatedHub
    clock: FakeClock
    trouble: Trouble
    policy: LetterPolicy
    fuse: Fuse
    dies: Callable[[Event, bool], bool]  # of an event that a batch tries, or a retry or replay
    host: HostCheckpoints | None = None

    def new_id(self) -> UUID:
        return UUID(int=self.trouble.chance.getrandbits(128), version=4)


class Instance:
    """A process; `skew` is the difference of its clock from the true time, in seconds."""

    def __init__(self, site: Site, deployed: Transform, skew: float = 0.0) -> None:
        self._site = site
        self.skew = skew
        self.process = ProcessDatabase(site.database, site.trouble.of_store)
        own = Clock(self.now, site.new_id, site.trouble.chance.random)
        waiting = Waiting(site.clock.monotonic, site.clock.sleep, site.trouble.chance.random)
        patient = Store(self.process).patient(PATIENCE, waiting)
        self.clock = store_clock(patient.database, own, monotonic=site.clock.monotonic)
        store = patient.remembering(KEPT, site.clock.monotonic)
        self.hub = VerifiedHub(site.hub, self._verification(), patient)
        gap_reading, policy = GapReading(site.hub), site.policy
        of_batches = deadly(deployed, lambda event: self._dies(event, False))
        of_letters = deadly(deployed, lambda event: self._dies(event, True))
        journal, hub = StoredJournal(patient, self.clock, self._in_child), self._verification()
        self.means = Ingestion(store, of_batches, self.clock, gap_reading, policy, site.fuse, hub, journal)
        fresh = replace(self.means, store=patient, incarnations=self._verification())
        self.silence = SilenceCheck(fresh, GRACE, site.host)
        self.keeper = Keeper(
            STREAM,
            store,
            of_letters,
            self.hub.find_event,
            patient.keepers_clock(own, site.clock.monotonic),
            policy,
            journal,
        )
        self.replays = ReplayKind(STREAM, patient, self.hub, of_letters, self.clock, policy, 7, journal=journal)

    @property
    def is_dead(self) -> bool:
        return self.process.is_dead

    def now(self) -> datetime:
        return self._site.clock.now() + timedelta(seconds=self.skew)

    @property
    def succession(self) -> IncarnationMeans:
        """The means to open the next incarnation of the stream."""
        return IncarnationMeans(
            STREAM, Incarnations(self.process, Partitions(self.process)), self._site.hub, self.clock
        )

    def _dies(self, event: Event, is_letter: bool) -> bool:
        self.process.is_dead = self._site.dies(event, is_letter)
        return self.process.is_dead

    def _in_child(self, transform: Transform, look_again: object) -> AbstractContextManager[Transform]:
        """Return the transform in a child: an event that kills two children is named."""

        def rows_of(event: Event, references: References) -> Iterable[Row]:
            try:
                return transform.rows_of(event, references)
            except Killed:
                self.process.is_dead = False
            raise EventKilled(event.sequence_number, "it ended two children")

        return nullcontext(replace(transform, rows_of=rows_of))

    def _verification(self) -> HubVerification:
        return HubVerification(self._site.hub, self._site.clock.monotonic, nullcontext())
