"""Open the parts that the Functions host and the worker share: ingestion, the retry of letters, and their stores."""

import gc
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from core.incarnations.hub_check import HubVerification, VerifiedHub
from core.ingest.gaps import GapReading
from core.ingest.ingest import Ingestion
from core.letters.retry import Keeper
from core.letters.store import Letters
from core.model.ports import Clock, HubReader
from core.model.transforms import Transform
from core.settings import Settings
from core.settle.attempts import Attempts, StoredJournal
from core.settle.child_process import Children
from core.settle.partition_store import Partitions
from core.store.database import Database, PatientDatabase, seconds_left, store_clock
from core.store.memory import Memory

Hub = TypeVar("Hub", bound=HubReader, covariant=True)

YOUNG_OBJECTS = 20_000  # new objects until Python looks for cycles, not 700: events wait by the thousand and have none
TURN = 0.001  # seconds, not 0.005: while a thread waits for the one that receives, its transaction holds the store


def prepare_interpreter() -> None:
    """Set both for this process."""
    gc.set_threshold(YOUNG_OBJECTS)
    sys.setswitchinterval(TURN)


@dataclass(frozen=True, slots=True)
class Sources(Generic[Hub]):
    """The settings of a process, and the database, the hub and the transform that they name."""

    settings: Settings
    database: Database
    hub: Hub
    transform: Transform


@dataclass(frozen=True, slots=True)
class Core:
    """The parts of a process that ingest and retry. They wait for a database that does not answer.

    `clock` has the time of the database: no time of the process's own clock is stored, or compared with a stored one.
    """

    settings: Settings
    transform: Transform
    patient: Database
    clock: Clock
    ingestion: Ingestion
    retrying: Keeper

    def without_memory(self) -> Ingestion:
        """Return the ingestion of the checks beside the batches: other processes commit to their partitions too."""
        own = self.ingestion
        store = Partitions(self.patient, key=self.settings.erasure)
        return replace(own, store=store, incarnations=verification_of(own.gap_reading.hub))


def open_core(
    sources: Sources[HubReader], own: Clock, closing: ExitStack, monotonic: Callable[[], float] = time.monotonic
) -> Core:
    """Put the parts together. Nothing connects yet. `closing` ends their children.

    `own` is the process's clock, and `monotonic` gives the seconds of one that never goes back.
    """
    settings, transform, hub = sources.settings, sources.transform, sources.hub
    patient = PatientDatabase(sources.database, settings.store_patience)
    clock = store_clock(patient, own, monotonic=monotonic)
    children = Children(settings.transform, settings.rows_per_event, settings.transform_deadline, seconds_left)
    closing.callback(children.close)
    journal = StoredJournal(Attempts(patient), clock, children.in_child)
    partitions = Partitions(patient, Memory(settings.reference_memory), settings.erasure, transform.key_name)
    letters = Letters(patient, partitions)
    gap_reading = GapReading(hub, settings.anchoring, settings.heal_deadline)
    ingestion = Ingestion(
        partitions, transform, clock, gap_reading, settings.letters, settings.fuse, verification_of(hub), journal
    )
    retrying = Keeper(
        settings.stream,
        letters,
        transform,
        verified_hub(hub, patient).find_event,
        letters.keepers_clock(own, monotonic),
        settings.letters,
        journal,
    )
    return Core(settings, transform, patient, clock, ingestion, retrying)


def verification_of(hub: HubReader) -> HubVerification:
    """Return a new verification of a hub."""
    return HubVerification(hub, time.monotonic, threading.RLock())


def verified_hub(hub: HubReader, database: Database) -> VerifiedHub:
    """Return the hub, for as long as it is the one that the stream was read from."""
    return VerifiedHub(hub, verification_of(hub), Partitions(database))
