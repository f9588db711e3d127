"""The journal of a process, put together for both composition roots: its flight record, its children, its marks."""

from contextlib import ExitStack

from core.ingest.journal import StoredJournal
from core.ingest.store import Attempts
from core.model.clock import Clock
from core.settings import Settings
from core.settle.children import Children
from core.store.database import Database
from core.transforms.flight import Flight, flight_folder


def open_journal(settings: Settings, database: Database, clock: Clock, closing: ExitStack) -> StoredJournal:
    """Return the journal; `closing` ends its children and removes its flight record."""
    children = Children(settings.transform, settings.rows_per_event, settings.transform_deadline)
    flight = Flight(flight_folder(settings.store_connection, str(settings.stream)))
    closing.callback(children.close)
    closing.callback(flight.close)
    return StoredJournal(Attempts(database), clock, flight, children.lone, children.careful)
