"""The books of workers, who answer no questions: the store's own ledgers beside the hub's ends."""

from collections.abc import Mapping

from core.errors import HubledgerError, HubUnreachable
from core.remote.hub.ends import HubEnds
from core.remote.hub.reader import SdkHubReader
from core.settings import read_settings
from core.store.connect import open_database
from core.store.ledger import Ledger
from core.store.stream import OneStream
from local.books import Books, BooksUnavailable


class StoreBooks:
    """For one reader at a time; `settings` are those of the workers."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        own = read_settings(settings)
        self._database = open_database(own)
        self._ledger = Ledger(OneStream(self._database, own.stream), ())
        self._hub = SdkHubReader(own)
        self._hub_ends = HubEnds(self._hub)

    def read(self, place: str) -> Books:
        """The books now; BooksUnavailable when the store cannot be read. `place` only says where in that case."""
        try:
            ledgers = self._ledger.audit_ledgers(None)
        except HubledgerError as error:
            raise BooksUnavailable(f"{place}: {error}") from error
        return Books(
            in_hub=self._in_hub(),
            accounted=sum(ledger.accounted for ledger in ledgers),
            written=sum(ledger.written for ledger in ledgers),
            filtered=sum(ledger.filtered for ledger in ledgers),
            dead_lettered=sum(ledger.dead_lettered for ledger in ledgers),
            balanced=all(ledger.balanced for ledger in ledgers),
        )

    def close(self) -> None:
        """Close the store and the hub."""
        self._database.close()
        self._hub.close()

    def _in_hub(self) -> int | None:
        try:
            return sum(end + 1 for end in self._hub_ends.read().values())
        except HubUnreachable:
            return None
