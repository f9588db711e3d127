"""The app of this process, put together on first use: its settings, and everything that its functions use."""

import atexit
import os
import random
import threading
import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar

from core.aggregation.lake_tables import lake_rows
from core.aggregation.runs import RunLimits
from core.aggregation.store import Aggregations
from core.aggregation.tick import Aggregation
from core.app import Core, Sources, open_core, prepare_interpreter, verified_hub
from core.incarnations.hub_check import VerifiedHub
from core.ingest.batch_log import BatchLog
from core.ingest.stalled_partitions import SilenceCheck
from core.ledger.store import BurnDowns, Ledger
from core.ledger.totals import LetterBooks
from core.ledger.watch import BurnDown, read_burn_down
from core.model.event_keys import keying
from core.model.events import PartitionId
from core.model.ports import Clock
from core.model.transforms import Transform
from core.remote.hub.events import to_host_event
from core.remote.hub.reader import KEEP, SdkHubReader, read_ends
from core.remote.telemetry.opening import open_telemetry
from core.remote.trigger_blobs import BlobCheckpoints
from core.settings import Settings, read_settings
from core.settle.watchdog import Watchdog
from core.store.connect import briefly_patient, open_database
from core.store.database import LONGEST_INVOCATION, Database, OneStream, PatientDatabase, invocation, store_clock
from core.transforms.loading import load_aggregates, load_transform
from handlers.remembered import Lifetime, Remembered

CLOCK = Clock(now=lambda: datetime.now(UTC), new_id=uuid.uuid4, chance=random.random)
LETTER_COUNTS = Lifetime(fresh=5.0, limit=60.0, quick=0.010)  # millions of open letters take a while
WAITING_LIMIT = LONGEST_INVOCATION
HUB_ENDS = Lifetime(fresh=KEEP, limit=KEEP)
BURN_DOWN = Lifetime(fresh=30.0, limit=120.0)  # it calls the hub for each partition
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class LetterCount:
    """The open letters of the stream, and when they were counted."""

    letters: LetterBooks
    at: datetime


@dataclass(frozen=True, slots=True)
class App:
    """The objects that live as long as the process. Stores are cheap, so each use makes its own.

    The databases of `brief` and `stream` outlast a deadlock, but no lost connection: a person sees that at once, and a
    timer retries. `hub` is read unverified only to compare it with the books or to show its ends. All else reads
    `stream_hub`.
    """

    core: Core
    hub: SdkHubReader
    hub_ends: Remembered[Mapping[PartitionId, int]]
    brief: Database
    stream: OneStream
    stalled: SilenceCheck
    batch_log: BatchLog
    letter_counts: Remembered[LetterCount]
    burn_down: Remembered[BurnDown]
    close: Callable[[], None]

    @property
    def settings(self) -> Settings:
        """The settings of the process."""
        return self.core.settings

    @property
    def transform(self) -> Transform:
        """The transform of the process."""
        return self.core.transform

    @property
    def clock(self) -> Clock:
        """The time of the database."""
        return self.core.clock

    @property
    def stream_hub(self) -> VerifiedHub:
        """The hub, for as long as it is the one that the stream was read from."""
        return verified_hub(self.hub, self.brief)

    @property
    def jobs(self) -> tuple[str, ...]:
        """The names of the jobs: the aggregates of the transform, and the rows that they read if the lake has those."""
        aggregates = load_aggregates(self.transform.row_classes)
        rows = lake_rows(aggregates) if self.settings.spark.keeps_rows else ()
        return (*(one.name for one in aggregates), *(one.job for one in rows))


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
    settings, closing = read_settings(os.environ), ExitStack()
    watchdog = Watchdog(settings.transform_deadline)
    transform = load_transform(settings.transform, settings.rows_per_event, watchdog.over, settings.event_key)
    database = open_database(settings.store_connection, transform.row_classes)
    patient, brief = (one(database, settings.store_patience) for one in (PatientDatabase, briefly_patient))
    convert = keying(to_host_event, transform.key_of)
    hub, host = SdkHubReader(settings, convert, store_clock(patient, CLOCK).now), BlobCheckpoints(os.environ)
    for each in (database, hub, watchdog, host):
        closing.callback(each.close)
    atexit.register(closing.close)
    core = open_core(Sources(settings, database, hub, transform), CLOCK, closing)
    open_telemetry(os.environ)
    batch_log = BatchLog(settings.batch_lines, CLOCK.now)
    closing.callback(batch_log.close)
    ledger = Ledger(stream := OneStream(brief, settings.stream))
    return App(
        core=core,
        hub=hub,
        hub_ends=Remembered(lambda: read_ends(hub), HUB_ENDS),
        brief=brief,
        stream=stream,
        stalled=SilenceCheck(core.without_memory(), settings.gap_grace, host, hub.suspect),
        batch_log=batch_log,
        letter_counts=Remembered(lambda: LetterCount(ledger.count_open(), datetime.now(UTC)), LETTER_COUNTS),
        burn_down=Remembered(lambda: read_losses(datetime.now(UTC)), BURN_DOWN),
        close=closing.close,
    )


def in_time(limit: timedelta = WAITING_LIMIT) -> AbstractContextManager[None]:
    """End every wait for the database before the host ends this invocation, and the process with it."""
    return invocation(limit)


def read_losses(now: datetime) -> BurnDown:
    """Return what the hub will forget."""
    own = app()
    given = own.settings
    return read_burn_down(given.stream, BurnDowns(own.stream), own.stream_hub, given.hub_retention, now)


def _open_aggregation() -> Aggregation | None:
    """Open the engine that SPARK_ENGINE names, or return None for `none`."""
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
    store = Aggregations(own.brief, own.transform.row_classes)
    return Aggregation(store, engine, lake, now, limits, arguments, own.jobs)


_lock = threading.RLock()
app = OnFirstUse(_open_app)  # raises SettingsRefused or InvalidTransform until the settings are corrected
aggregation = OnFirstUse(_open_aggregation)
