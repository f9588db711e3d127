"""Open the aggregation's side of the store that the settings name. No patience: a timer is its own retry."""

from core.aggregation.port import AggregationStore
from core.settings import Settings, embedded_path


def open_aggregation_store(settings: Settings) -> AggregationStore:
    """A store ready for use; it connects on first use, and says then what is wrong with the database."""
    path = embedded_path(settings.store_connection)
    if path is not None:
        from core.store.sqlite_aggregation import SqliteAggregationStore

        return SqliteAggregationStore(path)
    from core.store.server_aggregation import SqlServerAggregationStore

    return SqlServerAggregationStore(settings.store_connection)
