"""Every store finds the places of a key: the letters and the rows that an erasure of it would find."""

import pytest

from core.ledger import explain
from core.model.events import PartitionId, span
from tests.core.conftest import Office
from tests.fakes.builders import event, home, letter, partition, reading, settled

ONE = PartitionId("0")


def places(office: Office, key: str, first: int = 0, last: int = 99) -> list[tuple[int, bool, tuple[str, ...]]]:
    found, _ = office.desk.explanations.find_places(key, ONE, span(first, last))
    return [(one.sequence_number, one.letter, one.tables) for one in found]


def keyed(number: int, key: str | None) -> object:
    return letter(event(number, key=key))


def test_letters_by_partition_key_and_rows_by_subject_the_newest_first(office: Office) -> None:
    office.commit(0, 3, settled({0: [home("h")], 1: [reading("h"), reading("h")], 2: [reading("other")]}, filtered=1))
    office.letters(keyed(5, "h"), keyed(6, "other"), keyed(7, None), keyed(8, "h "))  # type: ignore[arg-type]
    office.commit(9, 9, settled({9: [reading("h")]}), partition("1"))
    assert places(office, "h") == [(5, True, ()), (1, False, ("sensor_reading",)), (0, False, ("home",))]
    assert places(office, "h", 1, 4) == [(1, False, ("sensor_reading",))]
    assert places(office, "H") == []
    assert places(office, "unknown") == []


def test_a_search_reads_a_piece_and_says_where_it_begins(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.letters(*[keyed(number, "h") for number in range(6)])  # type: ignore[arg-type]
    monkeypatch.setattr(explain, "LOOKED_AT", 4)
    found, begins = office.desk.explanations.find_places("h", ONE, span(0, 5))
    assert ([one.sequence_number for one in found], begins) == ([5, 4, 3, 2], 2)
    monkeypatch.setattr(explain, "LETTERS_LOOKED_AT", 2)
    found, begins = office.desk.explanations.find_places("h", ONE, span(0, 5))
    assert ([one.sequence_number for one in found], begins) == ([5, 4], 4)
