"""The operator's desk: all that the HTTP API asks of the store, over an engine of its own."""

from dataclasses import dataclass

from core.model.events import Stream
from core.settings import Settings
from core.store import NamedQueries
from core.store.books import BookReading
from core.store.connect import open_engine
from core.store.explanation import Explaining
from core.store.homes import HomeReading
from core.store.keys import Keys
from core.store.listing import LetterListing
from core.store.matching import LetterMatching
from core.store.named import NamedStream


@dataclass(frozen=True, slots=True)
class StoreDesk:
    """One reader of each kind, all of one stream but homes and keys, which are of all.

    They wait for nothing: an operator sees at once what is wrong.
    """

    stream: NamedStream
    books: BookReading
    letters: LetterListing
    matching: LetterMatching
    explaining: Explaining
    keys: Keys
    homes: HomeReading


def desk_over(engine: NamedQueries, of: Stream, row_classes: tuple[type, ...]) -> StoreDesk:
    """The desk of a stream; `row_classes` are those that its events become."""
    stream = NamedStream(engine, of)
    return StoreDesk(
        stream,
        BookReading(stream, row_classes),
        LetterListing(stream),
        LetterMatching(stream),
        Explaining(stream, row_classes),
        Keys(engine),
        HomeReading(engine),
    )


def open_desk(settings: Settings, row_classes: tuple[type, ...]) -> StoreDesk:
    """The desk of the stream that the settings name; it connects on first use."""
    return desk_over(open_engine(settings), settings.stream, row_classes)
