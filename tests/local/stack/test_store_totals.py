"""local/stack/store_totals.py"""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from local.event_hubs import Emulator, HubSettings
from local.feed.businesses import HOMES
from local.stack.app_totals import Books, BooksUnavailable
from local.stack.stack import CONSUMER_GROUP, HUB, Place, app_settings
from local.stack.store_totals import StoreBooks
from tests.local.feed.builders import story
from tests.local.stores import ingest

NOWHERE = "Endpoint=sb://localhost:1;SharedAccessKeyName=k;SharedAccessKey=s;UseDevelopmentEmulator=true"


def settings_of(connection: str, place: Place) -> dict[str, str]:
    return app_settings(connection, place, HOMES.transform)


def test_the_books_are_the_ledgers_beside_the_ends_of_the_hub_while_it_answers(tmp_path: Path) -> None:
    place, minutes = Place(tmp_path), story(events=300)
    ingest(place.store, minutes)
    outcomes = [event.expected.outcome for minute in minutes for event in minute.events]
    written, filtered = outcomes.count("written"), outcomes.count("filtered")
    expected = Books(0, 300, written, filtered, 300 - written - filtered, balanced=True)
    emulator = Emulator([HubSettings(HUB, 4, (CONSUMER_GROUP,))])
    with emulator.running(), closing(StoreBooks(settings_of(emulator.connection_string, place))) as reader:
        assert reader.read("here") == expected
    with closing(StoreBooks(settings_of(NOWHERE, place))) as reader:
        assert reader.read("here") == replace(expected, in_hub=None)


def test_a_store_that_cannot_be_read_has_no_books(tmp_path: Path) -> None:
    with pytest.raises(BooksUnavailable, match=r"^here: "):
        StoreBooks(settings_of(NOWHERE, Place(tmp_path))).read("here")
