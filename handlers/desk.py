"""What the operations of the API share, made on first use: the operator's view of the store, and the hub's ends."""

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.ledger.books import read_letter_books
from core.letters.port import Keeper
from core.model.hub import HubReader
from core.model.rows import declared
from core.remote.hub.ends import HubEnds
from core.settings import Settings
from handlers.letter_counts import LetterCounts
from handlers.services import services

if TYPE_CHECKING:
    from core.store.desk import StoreDesk


@dataclass(frozen=True, slots=True)
class Desk:
    """One of each for the whole process."""

    settings: Settings
    store: "StoreDesk"
    hub_ends: HubEnds
    keeper: Keeper
    letter_counts: LetterCounts
    hub: HubReader


_lock = threading.Lock()
_made: list[Desk] = []


def desk() -> Desk:
    """The desk; SettingsRefused, each time, while the settings are wrong. The database is reached on first use."""
    with _lock:
        if not _made:
            _made.append(_make())
        return _made[0]


def _make() -> Desk:
    from core.store.desk import open_desk

    own = services()
    store = open_desk(own.settings, declared())
    counts = LetterCounts(lambda: read_letter_books(store.books))
    return Desk(own.settings, store, own.hub_ends, own.keeper, counts, own.hub)
