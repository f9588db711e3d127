"""Promises of every store about letters as operators look at them: filters, pages, groups, one whole."""

import random
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from msgspec import structs

from core.letters.listing import FIRST_PAGE, LetterChoice, ListedLetter
from core.letters.retry import Keeper
from core.model.commits import DeadLetter
from core.model.events import Event, PartitionId, SequenceNumber
from core.model.letters import LetterPosition
from core.transforms.loading import load_transform
from tests.core.conftest import Office
from tests.fakes.builders import EPOCH, STREAM, commit, event, letter, partition, settled, stamps
from tests.fakes.moving import discard, requeue

ALL = LetterChoice()
HOSTILE = ["'; DROP TABLE home; --", "<script>alert(1)</script>", "%", "_", "../..", "{{7*7}}", "a\x00b", "ß👩‍👩‍👧", ""]


def fill(office: Office, count: int = 40) -> list[DeadLetter]:
    """Letters of all kinds in three partitions, several of one moment."""
    chance = random.Random(7)
    made = []
    for number in range(count):
        of = partition(str(number % 3))
        one = replace(
            letter(event(number // 3, str(number), key=chance.choice([None, "home-1", "Home-1", "home-2"]))),
            error_class=chance.choice(["poison", "reference", "unknown"]),
            fingerprint=chance.choice(["aaaa", "bbbb", "cccc"]),
            status=chance.choice(["waiting", "exhausted", "resolved", "discarded", "held"]),
        )
        state = office.store.read_partition(of)
        given = commit(state, number // 3, number // 3, settled({}, letters=[one]))
        office.store.commit_batch(replace(given, committed_at=EPOCH + timedelta(minutes=chance.randrange(6))))
        made.append(one)
    return made


def pages(office: Office, wanted: LetterChoice, most: int) -> list[ListedLetter]:
    """All letters of a filter, page by page."""
    found: list[ListedLetter] = []
    behind = FIRST_PAGE
    while page := office.desk.letters.list_letters(wanted, behind, most):
        found += page
        assert page[-1].key != behind, "the page behind a key ends with it"
        behind = page[-1].key
    return found


def order(one: ListedLetter) -> Any:
    return one.failed_at, one.partition_id, one.sequence_number


@pytest.mark.parametrize("most", [1, 3, 7, 40, 500])
def test_pages_hold_every_letter_once_those_that_failed_last_first(office: Office, most: int) -> None:
    fill(office)
    found = pages(office, ALL, most)
    assert len({(one.partition_id, one.sequence_number) for one in found}) == len(found) == 40
    assert found == sorted(found, key=order, reverse=True)


FILTERS: dict[str, dict[str, Any]] = {
    "status": {"status": "waiting"},
    "class": {"error_class": "poison"},
    "fingerprint": {"fingerprint": "bbbb"},
    "partition": {"partition_id": PartitionId("2")},
    "key": {"partition_key": "home-1"},
    "from": {"failed_from": EPOCH + timedelta(minutes=3)},
    "before": {"failed_before": EPOCH + timedelta(minutes=3)},
    "all of them": {
        "status": "exhausted",
        "fingerprint": "aaaa",
        "error_class": "poison",
        "failed_from": EPOCH + timedelta(minutes=1),
        "failed_before": EPOCH + timedelta(minutes=5),
    },
}


def fits(one: ListedLetter, given: dict[str, Any]) -> bool:
    times = {"failed_from": lambda limit: one.failed_at >= limit, "failed_before": lambda limit: one.failed_at < limit}
    return all(times[name](value) if name in times else getattr(one, name) == value for name, value in given.items())


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_leaves_those_that_fit_and_no_other(office: Office, name: str) -> None:
    fill(office, 90)
    everything, given = pages(office, ALL, 500), FILTERS[name]
    wanted = [one for one in everything if fits(one, given)]
    assert 0 < len(wanted) < len(everything)
    assert pages(office, LetterChoice(**given), 4) == wanted


@pytest.mark.parametrize("name", FILTERS)
def test_groups_sum_to_the_letters_of_the_filter(office: Office, name: str) -> None:
    fill(office, 90)
    wanted = LetterChoice(**FILTERS[name])
    listed, groups = pages(office, wanted, 500), office.desk.letters.group_letters(wanted, 100)
    assert sum(group.letters for group in groups) == len(listed)
    for group in groups:
        own = [one for one in listed if one.fingerprint == group.fingerprint]
        assert (group.letters, group.sample) == (len(own), own[0])
        assert group.settled == sum(one.status in ("resolved", "discarded") for one in own)
        assert group.retryable == sum(one.status in ("waiting", "exhausted") for one in own)
        assert (group.first_failed_at, group.last_failed_at) == (own[-1].failed_at, own[0].failed_at)
    order = [(group.letters - group.settled, group.letters) for group in groups]
    assert order == sorted(order, reverse=True)


def test_a_cause_with_an_open_letter_comes_before_a_larger_one_that_is_settled(office: Office) -> None:
    closed = [replace(letter(event(at)), fingerprint="settled", status="discarded") for at in range(3)]
    office.letters(*closed, replace(letter(event(3)), fingerprint="open"))
    listed = [office.desk.letters.group_letters(wanted, 10) for wanted in (ALL, LetterChoice(error_class="unknown"))]
    assert [[group.fingerprint for group in groups] for groups in listed] == [["open", "settled"]] * 2
    assert office.desk.letters.group_letters(ALL, 1)[0].fingerprint == "open"


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_hostile_texts_are_texts(office: Office, text: str) -> None:
    office.letters(letter(event(0, key=text), error=text), letter(event(1, key="other")))
    (found,) = pages(office, LetterChoice(partition_key=text), 10)
    assert (found.partition_key, found.error) == (text, text)
    assert pages(office, LetterChoice(fingerprint=text.replace("\x00", "") or "x"), 10) == []


def test_one_letter_is_read_whole_and_its_body_only_when_asked(office: Office) -> None:
    properties = {"tenant": "a", "deep": {"list": [1, "ß"]}}
    given = Event(SequenceNumber(3), "192-x", EPOCH, "key", properties, bytes(range(256)))
    office.letters(letter(given))
    found = office.desk.letters.read_letter(PartitionId("0"), SequenceNumber(3))
    assert found is not None
    assert (found.offset, dict(found.properties), found.letter.body_bytes) == ("192-x", properties, 256)
    assert office.desk.letters.read_letter_body(PartitionId("0"), SequenceNumber(3), 1_000) == bytes(range(256))
    assert office.desk.letters.read_letter_body(PartitionId("0"), SequenceNumber(3), 10) == bytes(range(10))


def test_an_empty_body_is_read_as_one(office: Office) -> None:
    office.letters(letter(event(3, b"")))
    found = office.desk.letters.read_letter(PartitionId("0"), SequenceNumber(3))
    assert found is not None
    assert (found.letter.body_kept, found.letter.body_bytes) == (True, 0)
    assert office.desk.letters.read_letter_body(PartitionId("0"), SequenceNumber(3), 10) == b""


def test_a_missing_letter_is_none(office: Office) -> None:
    office.letters(letter(event(3)))
    for partition_id, number in [("0", 4), ("1", 3), ("0", 2**63 - 1)]:
        position = PartitionId(partition_id), SequenceNumber(number)
        assert office.desk.letters.read_letter(*position) is None
        assert office.desk.letters.read_letter_body(*position, 10) == b""


def test_letters_of_another_stream_are_not_listed(office: Office) -> None:
    office.letters(letter(event(0)), of=partition("0", group="other"))
    office.letters(letter(event(5)))
    assert [one.sequence_number for one in pages(office, ALL, 10)] == [5]


def test_the_requests_about_a_letter_are_shown_with_author_and_reason(office: Office) -> None:
    office.letters(letter(event(3)))
    keeper = Keeper(STREAM, office.store, load_transform("examples.home_security"), nobody, stamps())
    position = LetterPosition(PartitionId("0"), SequenceNumber(3))
    requeue([position], keeper, "ada", "the home is registered now")
    discard([position], keeper, "bob", "no use")
    found = office.desk.letters.read_letter(PartitionId("0"), SequenceNumber(3))
    assert found is not None
    told = [(one.attempt, one.kind, one.status, one.done_by, one.why) for one in found.attempts]
    assert told == [
        (1, "requeue", "waiting", "ada", "the home is registered now"),
        (2, "discard", "discarded", "bob", "no use"),
    ]
    assert (found.letter.status, found.letter.settled_why) == ("discarded", "no use")


class TestMatching:
    def chosen(self, office: Office, **given: Any) -> list[int]:
        found = office.desk.letters.find_matching(LetterChoice(**given), ("waiting", "exhausted"), 1_000)
        return [one.sequence_number for one in found]

    def test_those_of_a_filter_are_found_and_counted_in_the_statuses_that_are_asked(self, office: Office) -> None:
        fill(office, 60)
        wanted = LetterChoice(fingerprint="aaaa")
        listed = [one for one in pages(office, wanted, 500) if one.status in ("waiting", "exhausted")]
        found = office.desk.letters.find_matching(wanted, ("waiting", "exhausted"), 1_000)
        assert [(one.partition_id, one.sequence_number) for one in found] == [
            (one.partition_id, one.sequence_number) for one in reversed(listed)
        ]
        assert office.desk.letters.count_matching(wanted, ("waiting", "exhausted")) == len(listed) > 0

    def test_no_more_are_found_than_asked_for_those_that_failed_first_first(self, office: Office) -> None:
        fill(office, 60)
        all_of_them = self.chosen(office)
        found = office.desk.letters.find_matching(ALL, ("waiting", "exhausted"), 3)
        assert [one.sequence_number for one in found] == all_of_them[:3]

    def test_of_a_selection_those_are_found_that_are_there_in_such_a_status(self, office: Office) -> None:
        office.letters(letter(event(0)), replace(letter(event(1)), status="discarded"), letter(event(2)))
        named = [
            LetterPosition(PartitionId(id), SequenceNumber(at))
            for id, at in [("0", 2), ("0", 1), ("0", 9), ("7", 0), ("0", 0)]
        ]
        found = office.desk.letters.find_selected(tuple(named), ("waiting",))
        assert [one.sequence_number for one in found] == [0, 2]

    def test_a_missing_stream_has_none(self, office: Office) -> None:
        assert office.desk.letters.count_matching(ALL, ("waiting",)) == 0
        assert office.desk.letters.find_matching(ALL, ("waiting",), 10) == ()


def nobody(partition: Any, number: Any) -> None:
    """No hub is asked."""


def test_the_properties_of_a_letter_are_shown_as_json_with_tags(office: Office) -> None:
    properties = {"nan": float("nan"), "raw": b"\x00", "large": 2**63 - 1, "deep": {"$binary": "AA=="}}
    office.letters(letter(structs.replace(event(0), properties=properties)))
    found = office.desk.letters.read_letter(PartitionId("0"), SequenceNumber(0))
    assert found is not None
    assert found.properties == {
        "nan": {"$double": "NaN"},
        "raw": {"$binary": "AA=="},
        "large": {"$integer": "9223372036854775807"},
        "deep": {"$map": [["$binary", "AA=="]]},
    }
