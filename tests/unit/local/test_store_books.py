"""local/store_books.py"""

from contextlib import closing
from pathlib import Path

import pytest

from local.books import Books, BooksUnavailable
from local.event_hubs import Emulator, HubSettings
from local.feed.domains import HOMES
from local.stack import CONSUMER_GROUP, HUB, Place, app_settings
from local.store_books import StoreBooks
from tests.unit.local.feed.builders import story
from tests.unit.local.stores import ingest

NOWHERE = "Endpoint=sb://localhost:1;SharedAccessKeyName=k;SharedAccessKey=s;UseDevelopmentEmulator=true"


def settings_of(connection: str, place: Place) -> dict[str, str]:
    return app_settings(connection, place, HOMES.transform)


def test_the_books_are_the_ledgers_beside_the_ends_of_the_hub(tmp_path: Path) -> None:
    place, minutes = Place(tmp_path), story(events=300)
    ingest(place.store, minutes)
    outcomes = [event.expected.outcome for minute in minutes for event in minute.events]
    written, filtered = outcomes.count("written"), outcomes.count("filtered")
    emulator = Emulator([HubSettings(HUB, 4, (CONSUMER_GROUP,))])
    with emulator.running(), closing(StoreBooks(settings_of(emulator.connection_string, place))) as reader:
        books = reader.read("here")
    assert books == Books(0, 300, written, filtered, 300 - written - filtered, balanced=True)


def test_while_the_hub_cannot_be_asked_its_end_is_not_known(tmp_path: Path) -> None:
    place = Place(tmp_path)
    ingest(place.store, story(events=300))
    books = StoreBooks(app_settings(NOWHERE, place, HOMES.transform)).read("here")
    assert (books.in_hub, books.accounted) == (None, 300)


def test_a_store_that_cannot_be_read_has_no_books(tmp_path: Path) -> None:
    with pytest.raises(BooksUnavailable, match=r"^here: "):
        StoreBooks(app_settings(NOWHERE, Place(tmp_path), HOMES.transform)).read("here")
