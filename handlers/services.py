"""What the handlers of one process share, made on first use: settings, store, transform, and the doors to the hub."""

import atexit
import os
import random
import threading
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

from core.ingest.gaps import Healing
from core.ingest.ingest import Means
from core.ingest.silence import SilenceCheck
from core.letters.retry import Keeper
from core.model.clock import Clock
from core.model.transform import Transform
from core.remote.hub.ends import HubEnds
from core.remote.hub.reader import SdkHubReader
from core.replay.port import ReplayStore
from core.settings import Settings, read_settings
from core.store import AppStore
from core.transforms import load_transform

CLOCK = Clock(now=lambda: datetime.now(UTC), new_id=uuid.uuid4, chance=random.random)


@dataclass(frozen=True, slots=True)
class Services:
    """One of each for the whole process."""

    settings: Settings
    store: AppStore
    transform: Transform
    hub: SdkHubReader
    hub_ends: HubEnds
    clock: Clock
    healing: Healing
    silence: SilenceCheck
    replays: ReplayStore

    @property
    def means(self) -> Means:
        """What a batch is ingested with."""
        return Means(self.store, self.transform, self.clock, self.healing, self.settings.letters)

    @property
    def keeper(self) -> Keeper:
        """What keeps the letters of the trigger's stream."""
        own = self.settings
        return Keeper(own.stream, self.store, self.transform, self.hub.find_event, self.clock, own.letters)


_lock = threading.Lock()
_made: list[Services] = []


def services() -> Services:
    """The services; SettingsRefused, InvalidTransform or SchemaMismatch, each time, while they cannot be made."""
    with _lock:
        if not _made:
            _made.append(_make())
        return _made[0]


def _make() -> Services:
    from core.store.connect import (
        around,
        open_engine,
        patient,
        patient_replays,
    )  # the drivers are not needed to index the functions

    settings = read_settings(os.environ)
    transform, hub, engine = load_transform(settings.transform), SdkHubReader(settings), open_engine(settings)
    atexit.register(engine.close)
    atexit.register(hub.close)
    store = around(engine, settings)
    healing = Healing(hub, settings.anchoring, settings.heal_deadline)
    silence = SilenceCheck(
        Means(patient(engine, settings), transform, CLOCK, healing, settings.letters), settings.gap_grace
    )
    replays = patient_replays(engine, settings)
    return Services(settings, store, transform, hub, HubEnds(hub), CLOCK, healing, silence, replays)
