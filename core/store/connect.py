"""Open the database that the settings name, and the stores that operators read."""

from dataclasses import dataclass
from datetime import timedelta

from core.model.events import Stream
from core.settings import Settings, embedded_path
from core.store.audits import Audits
from core.store.burn_down import BurnDowns
from core.store.database import Database, PatientDatabase
from core.store.keys import Keys
from core.store.ledger import Explanations, Ledger
from core.store.listing import LetterListing
from core.store.purges import Purges
from core.store.stream import OneStream

OPERATORS_PATIENCE = timedelta(seconds=3)  # shorter than the first pause after a lost connection


@dataclass(frozen=True, slots=True)
class OperatorStores:
    """The stores that the HTTP API and the watch use."""

    stream: OneStream
    ledger: Ledger
    letters: LetterListing
    explanations: Explanations
    keys: Keys
    audits: Audits
    purges: Purges
    burn_downs: BurnDowns


def open_database(settings: Settings, needed: tuple[type, ...] = ()) -> Database:
    """Return the database; it connects on first use, and reports its faults then.

    It is a fault too when the `needed` row classes have no fitting tables.
    """
    return database_of(settings.store_connection, needed)


def database_of(store_connection: str, needed: tuple[type, ...] = ()) -> Database:
    """Return the database of a connection string, as open_database does for settings."""
    path = embedded_path(store_connection)
    if path is not None:
        from core.store.sqlite.database import SqliteDatabase

        return SqliteDatabase(path, needed=needed)
    from core.store.sqlserver.database import SqlServerDatabase

    return SqlServerDatabase(store_connection, needed=needed)


def briefly_patient(database: Database, patience: timedelta) -> Database:
    """Return the database for the calls of operators and of timers: a deadlock or a short fault is retried.

    A lost connection needs a longer pause than a person should wait, so it is a fault at once.
    """
    return PatientDatabase(database, min(patience, OPERATORS_PATIENCE))


def operator_stores(database: Database, of: Stream, row_classes: tuple[type, ...]) -> OperatorStores:
    """Return the stores of a stream whose events become rows of these classes."""
    stream = OneStream(database, of)
    explanations = Explanations(stream, row_classes)
    letters, keys = LetterListing(stream), Keys(database)
    audits, purges, burn_downs = Audits(stream), Purges(stream), BurnDowns(stream)
    return OperatorStores(stream, Ledger(stream, row_classes), letters, explanations, keys, audits, purges, burn_downs)
