"""core/ledger/explain.py: a search for a key goes downwards, page by page, and says what it cannot find."""

from itertools import count

import pytest

from core.ledger.explain import Before, KeyPlace, KeySearch, find_places, sentence_of
from core.model.events import PartitionId, SequenceNumber, Span, span
from examples.flight_info.transform import FlightStatus
from examples.home_security.transform import Home, HomeAlert, SensorReading

PIECE = 10
SPANS = {PartitionId("10"): span(0, 99), PartitionId("2"): span(50, 149), PartitionId("3"): span(5, -1)}
KEPT = {"10": {0, 7, 8, 9, 10, 55, 99}, "2": {49, 50, 148, 149, 150}, "3": {0}}
ALL = [("10", n) for n in (99, 55, 10, 9, 8, 7, 0)] + [("2", n) for n in (149, 148, 50)]


def read(id: PartitionId, reach: Span) -> tuple[list[KeyPlace], int]:
    begins = max(reach.first, reach.last - PIECE + 1)
    numbers = [n for n in range(reach.last, begins - 1, -1) if n in KEPT[id]]
    return [KeyPlace(id, SequenceNumber(n), True, ()) for n in numbers], begins


def walked(most: int, lasts: int) -> list[list[tuple[PartitionId, int]]]:
    """Return the places of every page; a page is over after so many pieces."""
    pages, after = [], None
    for _ in range(100):
        looks = count(1)
        found, after = find_places(KeySearch(SPANS, most, lambda looks=looks: next(looks) >= lasts), after, read)  # type: ignore[misc]
        pages.append([(one.partition_id, int(one.sequence_number)) for one in found])
        if after is None:
            return pages
    raise AssertionError("a search ends")


@pytest.mark.parametrize("most", [1, 2, 3, 500])
@pytest.mark.parametrize("lasts", [1, 2, 7, 1000])
def test_the_pages_have_every_place_once_the_newest_of_each_partition_first(most: int, lasts: int) -> None:
    pages = walked(most, lasts)
    assert [one for page in pages for one in page] == ALL
    assert max(map(len, pages)) <= most


def test_a_page_whose_time_is_over_ends_after_one_piece() -> None:
    found, after = find_places(KeySearch(SPANS, 50, lambda: True), ("10", 55), read)  # type: ignore[arg-type]
    assert (found, after) == ([], ("10", 45))


def test_a_cursor_of_a_partition_that_is_not_searched_begins_at_the_next_one() -> None:
    after: Before = PartitionId("11"), 3
    found, ends = find_places(KeySearch(SPANS, 50, lambda: False), after, read)
    assert ([one.sequence_number for one in found], ends) == ([149, 148, 50], None)


def test_the_sentence_names_the_subjects_and_the_tables_without_one() -> None:
    said = sentence_of((SensorReading, FlightStatus))
    assert "in the partition keys of letters and in sensor_reading.home_id." in said
    assert "a row of flight_status, because no subject is declared there" in said
    assert "whose state a newer event has replaced" in said
    assert "replaced" not in sentence_of((HomeAlert,))
    assert "no subject" not in sentence_of((Home, HomeAlert))


def test_the_sentence_of_a_room_without_a_subject_promises_only_letters() -> None:
    assert sentence_of((FlightStatus,)).startswith("Searched in the partition keys of letters. ")
