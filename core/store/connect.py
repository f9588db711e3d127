"""Make the store that the settings name: an engine, patience around it, memory around both."""

from core.replay.port import ReplayStore
from core.settings import Settings, embedded_path
from core.store import AppStore, DatabaseEngine
from core.store.patient import PatientStore
from core.store.patient_replays import PatientReplays
from core.store.remembered import RememberingStore


def open_store(settings: Settings) -> AppStore:
    """A store ready for use; it connects on first use, and says then what is wrong with the database."""
    return around(open_engine(settings), settings)


def around(engine: AppStore, settings: Settings) -> AppStore:
    """Patience and memory around an engine."""
    return RememberingStore(patient(engine, settings), settings.reference_memory)


def patient(engine: AppStore, settings: Settings) -> AppStore:
    """Patience alone, for those who must see what other processes commit."""
    return PatientStore(engine, settings.store_patience)


def patient_replays(engine: ReplayStore, settings: Settings) -> ReplayStore:
    """Patience around what an engine keeps of replays."""
    return PatientReplays(engine, settings.store_patience)


def open_engine(settings: Settings) -> DatabaseEngine:
    """The engine alone, without patience and memory."""
    path = embedded_path(settings.store_connection)
    if path is not None:
        from core.store.sqlite import SqliteStore

        return SqliteStore(path)
    from core.store.sqlserver import SqlServerStore

    return SqlServerStore(settings.store_connection)
