"""Prepare the interpreter and open the record of attempts, in the Functions host and in the worker."""

import gc
import sys
from contextlib import ExitStack

from core.model.ports import Clock
from core.settings import Settings
from core.settle.attempts import Attempts, Flight, StoredJournal, flight_folder
from core.settle.child_process import Children
from core.store.database import Database, seconds_left

YOUNG_OBJECTS = 20_000  # new objects until Python looks for cycles, not 700: events wait by the thousand and have none
TURN = 0.001  # seconds, not 0.005: while a thread waits for the one that receives, its transaction holds the store


def prepare_interpreter() -> None:
    """Set both for this process."""
    gc.set_threshold(YOUNG_OBJECTS)
    sys.setswitchinterval(TURN)


def open_journal(settings: Settings, database: Database, clock: Clock, closing: ExitStack) -> StoredJournal:
    """Return the journal. `closing` ends its children and removes its flight record."""
    children = Children(settings.transform, settings.rows_per_event, settings.transform_deadline, seconds_left)
    flight = Flight(flight_folder(settings.store_connection, str(settings.stream)))
    closing.callback(children.close)
    closing.callback(flight.close)
    return StoredJournal(Attempts(database), clock, flight, children.lone, children.careful)
