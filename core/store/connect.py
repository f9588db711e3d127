"""Make the store that the settings name: an engine, patience around it, memory around both."""

from core.settings import Settings
from core.store import Store
from core.store.patient import PatientStore
from core.store.remembered import RememberingStore
from core.store.sqlite import SqliteStore


def open_store(settings: Settings) -> Store:
    """A store ready for use; it connects on first use, and says then what is wrong with the database."""
    engine = SqliteStore(settings.store_path)
    return RememberingStore(PatientStore(engine, settings.store_patience), settings.reference_memory)
