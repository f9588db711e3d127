"""The books of workers, which have no HTTP API: the ledgers of the store and the ends of the hub."""

from collections.abc import Mapping

from core.errors import HubledgerError, HubUnreachable
from core.ledger.store import Ledger, read_books
from core.remote.hub.reader import KEEP, SdkHubReader, read_ends
from core.settings import read_settings
from core.store.connect import open_database
from core.store.database import OneStream
from handlers.remembered import Lifetime, Remembered
from local.stack.app_totals import Books, BooksUnavailable


class StoreBooks:
    """The books for one reader at a time. `settings` are those of the workers."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        own = read_settings(settings)
        self._database = open_database(own.store_connection)
        self._ledger = Ledger(OneStream(self._database, own.stream))
        self._hub = SdkHubReader(own)
        self._hub_ends = Remembered(lambda: read_ends(self._hub), Lifetime(fresh=KEEP, limit=KEEP))

    def read(self, place: str) -> Books:
        """Return the current books. BooksUnavailable names `place` when the store cannot be read."""
        try:
            books = read_books(self._ledger)
        except HubledgerError as error:
            raise BooksUnavailable(f"{place}: {error}") from error
        return Books(
            in_hub=self._in_hub(),
            accounted=books.accounted,
            written=sum(one.written for one in books.partitions),
            filtered=sum(one.filtered for one in books.partitions),
            dead_lettered=sum(one.dead_lettered for one in books.partitions),
            balanced=books.balanced,
        )

    def close(self) -> None:
        self._database.close()
        self._hub.close()

    def _in_hub(self) -> int | None:
        try:
            return sum(end + 1 for end in self._hub_ends.get().values())
        except HubUnreachable:
            return None
