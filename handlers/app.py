"""The app of this process, put together on first use: its settings, and everything that its functions use."""

import atexit
import os
import random
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Generic, Protocol, TypeVar

from core.aggregation.lake_tables import lake_rows
from core.aggregation.orders import Pipelines
from core.aggregation.runs import RunLimits
from core.aggregation.store import Aggregations
from core.aggregation.tick import Aggregation
from core.api.room_operations import RoomMeans, RoomStore, Signer
from core.app import open_journal, prepare_interpreter
from core.audit.store import AuditStore
from core.errors import StoreUnavailable
from core.incarnations.hub_check import HubVerification, VerifiedHub
from core.incarnations.next_incarnation import IncarnationMeans, Incarnations
from core.ingest.batch_log import BatchLines
from core.ingest.gaps import Healing
from core.ingest.ingest import Means
from core.ingest.stalled_partitions import SilenceCheck
from core.ledger.explain import Explanations
from core.ledger.store import BurnDowns, Ledger, read_open_letters
from core.ledger.totals import LetterBooks
from core.ledger.watch import BurnDown, BurnDownMeans, read_burn_down
from core.letters.listing import LetterListing
from core.letters.redrive import Redrives
from core.letters.retry import Keeper
from core.letters.store import Letters
from core.model.events import PartitionId
from core.model.ports import Clock, HubReader
from core.model.transforms import Transform
from core.purge.store import Purges
from core.remote.hub.host_values import to_host_event
from core.remote.hub.reader import KEEP, SdkHubReader, read_ends
from core.remote.telemetry.opening import open_telemetry
from core.remote.trigger_blobs import BlobCheckpoints
from core.replay.store import Replays
from core.settings import Settings, read_settings
from core.settle.partition_store import Partitions
from core.settle.watchdog import Watchdog
from core.store.connect import briefly_patient, open_database
from core.store.database import LONGEST_INVOCATION, Database, OneStream, PatientDatabase, invocation, store_clock
from core.store.memory import Memory
from core.tasks.store import Tasks
from core.transforms.loading import load_aggregates, load_transform
from handlers.batch_log import BatchLog
from handlers.remembered import Lifetime, Remembered

CLOCK = Clock(now=lambda: datetime.now(UTC), new_id=uuid.uuid4, chance=random.random)
LETTER_COUNTS = Lifetime(fresh=5.0, limit=60.0, quick=0.010)  # millions of open letters take a while
WAITING_LIMIT = LONGEST_INVOCATION
HUB_ENDS = Lifetime(fresh=KEEP, limit=KEEP)
BURN_DOWN = Lifetime(fresh=30.0, limit=120.0)  # it calls the hub for each partition
Made = TypeVar("Made")


class Closeable(Protocol):
    """A part of the app that has a connection or a thread to close."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class LetterCount:
    """The open letters of the stream, and when they were counted."""

    letters: LetterBooks
    at: datetime


@dataclass(frozen=True, slots=True)
class App:
    """The parts of the app, one of each for the whole process.

    `letters`, `means`, `silence`, `replays` and `redrives` wait for a database that does not answer. The others outlast
    a deadlock, but no lost connection: a person sees that at once, and a timer retries. `find_stream` only shows
    whether the database can be reached. `hub` is read unverified only to compare it with the books or to show its ends.
    All else reads `stream_hub`.
    """

    settings: Settings
    transform: Transform
    hub: SdkHubReader
    hub_ends: Remembered[Mapping[PartitionId, int]]
    letters: Letters
    means: Means
    batch_log: BatchLog
    silence: SilenceCheck
    incarnations: Incarnations
    replays: Replays
    redrives: Redrives
    aggregation_store: Aggregations
    pipelines: Pipelines
    ledger: Ledger
    audits: AuditStore
    explanations: Explanations
    listing: LetterListing
    room: RoomMeans
    tasks: Tasks
    purges: Purges
    find_stream: Callable[[], int | None]
    letter_counts: Remembered[LetterCount]
    burn_down: Remembered[BurnDown]
    close: Callable[[], None]

    def open_stream(self) -> int:
        """Return the id of the stream, whose first commit opens it; StoreUnavailable if it has just been closed."""
        found = self.find_stream()
        if found is None:
            raise StoreUnavailable("the stream has no open incarnation at this moment")
        return found

    @property
    def clock(self) -> Clock:
        """The time of the database: no time of this process's clock is stored, or compared with a stored one."""
        return self.means.clock

    @property
    def stream_hub(self) -> VerifiedHub:
        """The hub, for as long as it is the one that the stream was read from."""
        return VerifiedHub(self.hub, _verification(self.hub), self.incarnations.partitions)

    @property
    def jobs(self) -> tuple[str, ...]:
        """The names of the jobs: the aggregates of the transform, and the rows that they read if the lake has those."""
        aggregates = load_aggregates(self.transform.row_classes)
        rows = lake_rows(aggregates) if self.settings.spark.keeps_rows else ()
        return (*(one.name for one in aggregates), *(one.job for one in rows))

    @property
    def succession(self) -> IncarnationMeans:
        """The means to open the next incarnation of the stream."""
        return IncarnationMeans(self.settings.stream, self.incarnations, self.hub, self.clock)

    @property
    def keeper(self) -> Keeper:
        """The keeper of the stream's letters."""
        own, journal = self.settings, self.means.journal
        clock = self.letters.keepers_clock(CLOCK)
        return Keeper(
            own.stream,
            self.letters,
            self.transform,
            self.stream_hub.find_event,
            clock,
            own.letters,
            journal,
            own.erasure,
        )


class OnFirstUse(Generic[Made]):
    """A value of the process, made at its first use. While it cannot be made, every use raises the fault."""

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make
        self.value: Made | None = None

    def __call__(self) -> Made:
        """Return the value."""
        with _lock:
            if self.value is None:
                self.value = self._make()
            return self.value


def _open_app() -> App:
    """Put the app together. Nothing connects yet: the store and the hub do so on first use."""
    prepare_interpreter()
    settings = read_settings(os.environ)
    watchdog = Watchdog(settings.transform_deadline)
    transform = load_transform(settings.transform, settings.rows_per_event, watchdog.over)
    database, patient, brief = _open_databases(settings, transform)
    ledger = Ledger(stream := OneStream(brief, settings.stream))
    clock, partitions = store_clock(patient, CLOCK), Partitions(patient, Memory(settings.reference_memory))
    fresh = Partitions(patient)
    hub, host = SdkHubReader(settings, to_host_event, clock.now), BlobCheckpoints(os.environ)
    closing, healing = _closing(database, hub, watchdog, host), Healing(hub, settings.anchoring, settings.heal_deadline)
    journal = open_journal(settings, patient, clock, closing)
    means = Means(partitions, transform, clock, healing, settings.letters, settings.fuse, _verification(hub), journal)
    unremembered = replace(means, store=fresh, incarnations=_verification(hub))
    open_telemetry(os.environ)
    batch_log = BatchLog(BatchLines(settings.batch_lines, threading.Lock()), CLOCK.now)
    closing.callback(batch_log.close)
    return App(
        settings=settings,
        transform=transform,
        hub=hub,
        hub_ends=Remembered(lambda: read_ends(hub), HUB_ENDS),
        letters=Letters(patient, partitions),
        means=means,
        batch_log=batch_log,
        silence=SilenceCheck(unremembered, settings.gap_grace, host, hub.suspect),
        incarnations=Incarnations(brief, Partitions(brief)),
        replays=Replays(patient, fresh),
        redrives=Redrives(patient),
        aggregation_store=Aggregations(brief, transform.row_classes),
        pipelines=Pipelines(brief),
        ledger=ledger,
        audits=AuditStore(stream, transform.row_classes),
        explanations=Explanations(stream, transform.row_classes),
        listing=LetterListing(stream),
        room=_room(settings, brief, transform),
        tasks=Tasks(brief),
        purges=Purges(stream),
        find_stream=stream.find,
        letter_counts=Remembered(lambda: LetterCount(read_open_letters(ledger), datetime.now(UTC)), LETTER_COUNTS),
        burn_down=Remembered(lambda: read_losses(datetime.now(UTC)), BURN_DOWN),
        close=closing.close,
    )


def in_time(limit: timedelta = WAITING_LIMIT) -> AbstractContextManager[None]:
    """End every wait for the database before the host ends this invocation, and the process with it."""
    return invocation(limit)


def _open_databases(settings: Settings, transform: Transform) -> tuple[Database, Database, Database]:
    """Return the database, the same for work that waits for it, and for calls that do not."""
    connection, patience = settings.store_connection, settings.store_patience
    database = open_database(connection, transform.row_classes)
    return database, PatientDatabase(database, patience), briefly_patient(database, patience)


def _closing(*opened: Closeable) -> ExitStack:
    """Return what closes these parts in reverse order; the end of the process does so too."""
    closing = ExitStack()
    for each in opened:
        closing.callback(each.close)
    atexit.register(closing.close)
    return closing


def _room(settings: Settings, database: Database, transform: Transform) -> RoomMeans:
    access = settings.access
    store = RoomStore(database, Aggregations(database, transform.row_classes))
    return RoomMeans(store, Signer(access.link_secrets, access.link_life))


def _verification(hub: HubReader) -> HubVerification:
    return HubVerification(hub, time.monotonic, threading.RLock())


def read_losses(now: datetime) -> BurnDown:
    """Return what the hub will forget."""
    own = app()
    means = BurnDownMeans(own.settings.stream, BurnDowns(own.purges.stream), own.stream_hub, own.settings.hub_retention)
    return read_burn_down(means, now)


def _open_aggregation() -> Aggregation | None:
    """Open the engine that SPARK_ENGINE names; None for `none`."""
    own = app()
    spark = own.settings.spark
    if spark.engine == "none":
        return None
    from core.remote.spark.open import job_arguments, open_lake  # needed only with an engine
    from core.remote.spark.open import open_engine as open_spark

    engine, lake = open_spark(own.settings), open_lake(own.settings)
    if engine is None:
        return None
    limits = RunLimits(grace=spark.grace, deadline=spark.deadline, rows=spark.rows)
    now, arguments = own.clock.now, job_arguments(own.settings)
    return Aggregation(own.aggregation_store, engine, lake, now, limits, arguments, own.jobs)


_lock = threading.RLock()
app = OnFirstUse(_open_app)  # raises SettingsRefused or InvalidTransform until the settings are corrected
aggregation = OnFirstUse(_open_aggregation)
