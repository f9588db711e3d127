"""What the handlers of one process share, made on first use: settings, store, transform, and the door to the hub."""

import atexit
import os
import random
import threading
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from core.errors import HubUnreachable
from core.events import Event, Partition, PartitionId, SequenceNumber, event_hub_identity
from core.ingest import Stamps
from core.remote.hub_ends import HubEnds
from core.retrying import Keeper
from core.settings import Settings, read_settings
from core.store import AppStore
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

    @property
    def keeper(self) -> Keeper:
        """What keeps the letters of the trigger's stream."""
        own = self.settings
        hub = event_hub_identity(own.namespace, own.event_hub)
        stream = Partition(hub, own.consumer_group, PartitionId("0"))
        return Keeper(stream, self.store, self.transform, _find_event, self.stamps)


_lock = threading.Lock()
_made: list[Services] = []


def services() -> Services:
    """The services; SettingsRefused, InvalidTransform or SchemaMismatch, each time, while they cannot be made."""
    with _lock:
        if not _made:
            _made.append(_make())
        return _made[0]


def _find_event(partition: Partition, number: SequenceNumber) -> Event | None:
    raise HubUnreachable(f"{partition}: event {number} cannot be read from the hub")


def _make() -> Services:
    from core.store.connect import open_store  # the drivers are not needed to index the functions

    settings = read_settings(os.environ)
    store = open_store(settings)
    stamps = replace(STAMPS, letters=settings.letters)
    atexit.register(store.close)
    return Services(settings, store, load_transform(settings.transform), HubEnds(settings), stamps)
