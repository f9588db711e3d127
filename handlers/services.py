"""What the handlers of one process share, made on first use: settings, store, transform, and the door to the hub."""

import atexit
import os
import random
import threading
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from core.hub import HubReader
from core.ingest import Stamps
from core.remote.hub_ends import HubEnds
from core.remote.no_hub_reader import NoHubReader
from core.settings import Settings, read_settings
from core.store import AppStore, ReplayStore
from core.transforms import Transform, load_transform

STAMPS = Stamps(now=lambda: datetime.now(UTC), new_id=uuid.uuid4, chance=random.random)


@dataclass(frozen=True, slots=True)
class Services:
    """One of each for the whole process."""

    settings: Settings
    store: AppStore
    transform: Transform
    hub_ends: HubEnds
    stamps: Stamps
    replays: ReplayStore
    hub: HubReader


_lock = threading.Lock()
_made: list[Services] = []


def services() -> Services:
    """The services; SettingsRefused, InvalidTransform or SchemaMismatch, each time, while they cannot be made."""
    with _lock:
        if not _made:
            _made.append(_make())
        return _made[0]


def _make() -> Services:
    from core.store.connect import around, open_engine  # the drivers are not needed to index the functions

    settings = read_settings(os.environ)
    transform, engine = load_transform(settings.transform), open_engine(settings)
    stamps = replace(STAMPS, letters=settings.letters)
    atexit.register(engine.close)
    store, ends = around(engine, settings), HubEnds(settings)
    return Services(settings, store, transform, ends, stamps, engine, NoHubReader())
