"""local/stack/store_totals.py"""

from contextlib import closing
from pathlib import Path

import pytest

from local.feed.businesses import HOMES
from local.stack.app_totals import Books, BooksUnavailable
from local.stack.stack import Place, app_settings
from local.stack.store_totals import StoreBooks
from tests.local.feed.builders import story
from tests.local.stores import ingest

NOWHERE = "Endpoint=sb://localhost:1;SharedAccessKeyName=k;SharedAccessKey=s;UseDevelopmentEmulator=true"


def test_the_books_are_the_ledgers_although_the_hub_is_silent_and_a_store_that_cannot_be_read_has_none(
    tmp_path: Path,
) -> None:
    place, minutes = Place(tmp_path), story(events=300)
    with closing(StoreBooks(app_settings(NOWHERE, place, HOMES.transform))) as reader:
        with pytest.raises(BooksUnavailable, match=r"^here: "):
            reader.read("here")
        ingest(place.store, minutes)
        outcomes = [event.expected.outcome for minute in minutes for event in minute.events]
        written, filtered = outcomes.count("written"), outcomes.count("filtered")
        assert reader.read("here") == Books(None, 300, written, filtered, 300 - written - filtered, balanced=True)
