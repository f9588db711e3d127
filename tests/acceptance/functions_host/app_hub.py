"""A hub in memory for the app that both workers run in this process: no hub listens at its address."""

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from core.incarnations.hub_check import HubVerification
from core.model.events import Event
from handlers.app import app
from tests.fakes.memory_hub import MemoryHub


def give_the_app_a_hub(log: Sequence[Event] = ()) -> None:
    """Let the app verify, heal and replay from a hub whose partition 1 holds these events."""
    hub: Any = MemoryHub({"1": log})
    own, verification = app(), HubVerification(hub, time.monotonic, threading.RLock())
    before = own.core.ingestion
    ingestion = replace(before, gap_reading=replace(before.gap_reading, hub=hub), incarnations=verification)
    stalled = replace(own.stalled, means=replace(ingestion, store=own.stalled.means.store))
    app.value = replace(own, hub=hub, core=replace(own.core, ingestion=ingestion), stalled=stalled)
