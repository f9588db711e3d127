import random
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from core.letters.listing import FIRST_PAGE, LetterChoice, ListedLetter
from core.letters.retry import Keeper
from core.model.commits import DeadLetter, LetterStatus
from core.model.events import Event, PartitionId, SequenceNumber
from core.model.letters import LetterPosition
from core.transforms.loading import load_transform
from tests.core.conftest import Office
from tests.fakes.builders import EPOCH, STREAM, commit, event, letter, partition, settled, stamps
from tests.fakes.replaying import discard, requeue

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
    found: list[ListedLetter] = []
    behind = FIRST_PAGE
    while page := office.desk.letters.list_letters(wanted, behind, most):
        found += page
        assert page[-1].key != behind, "the page behind a key ends with it"
        behind = page[-1].key
    return found


@pytest.mark.parametrize("most", [1, 3, 7, 40, 500])
def test_pages_hold_every_letter_once_those_that_failed_last_first(office: Office, most: int) -> None:
    fill(office)
    office.letters(letter(event(99)), of=partition("0", group="other"))
    found = pages(office, ALL, most)
    assert len({(one.partition_id, one.sequence_number) for one in found}) == len(found) == 40
    keys = [(one.failed_at, one.partition_id, one.sequence_number) for one in found]
    assert keys == sorted(keys, reverse=True)


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
def test_a_filter_leaves_those_that_fit_and_no_other_and_groups_sum_to_them(office: Office, name: str) -> None:
    fill(office, 90)
    everything, given = pages(office, ALL, 500), FILTERS[name]
    wanted = [one for one in everything if fits(one, given)]
    assert 0 < len(wanted) < len(everything)
    assert pages(office, LetterChoice(**given), 4) == wanted
    groups = office.desk.letters.group_letters(LetterChoice(**given), 100)
    assert sum(group.letters for group in groups) == len(wanted)
    for group in groups:
        own = [one for one in wanted if one.fingerprint == group.fingerprint]
        assert (group.letters, group.sample) == (len(own), own[0])
        assert group.settled == sum(one.status in ("resolved", "discarded") for one in own)
        assert group.retryable == sum(one.status in ("waiting", "exhausted") for one in own)
        assert (group.first_failed_at, group.last_failed_at) == (own[-1].failed_at, own[0].failed_at)
    order = [(group.letters - group.settled, group.letters) for group in groups]
    assert order == sorted(order, reverse=True)


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_hostile_texts_are_texts(office: Office, text: str) -> None:
    office.letters(letter(event(0, key=text), error=text), letter(event(1, key="other")))
    (found,) = pages(office, LetterChoice(partition_key=text), 10)
    assert (found.partition_key, found.error) == (text, text)
    assert pages(office, LetterChoice(fingerprint=text.replace("\x00", "") or "x"), 10) == []


def test_one_letter_is_read_whole_and_its_body_only_when_asked(office: Office) -> None:
    properties = {"nan": float("nan"), "raw": b"\x00", "large": 2**63 - 1, "deep": {"$binary": "AA=="}}
    given = Event(SequenceNumber(3), "192-x", EPOCH, "key", properties, bytes(range(256)))
    office.letters(letter(given), letter(event(4, b"")))
    found = office.desk.letters.read_letter(PartitionId("0"), SequenceNumber(3))
    assert found is not None
    assert (found.offset, found.letter.body_bytes) == ("192-x", 256)
    assert found.properties == {
        "nan": {"$double": "NaN"},
        "raw": {"$binary": "AA=="},
        "large": {"$integer": "9223372036854775807"},
        "deep": {"$map": [["$binary", "AA=="]]},
    }
    assert office.desk.letters.read_letter_body(PartitionId("0"), SequenceNumber(3), 1_000) == bytes(range(256))
    empty = office.desk.letters.read_letter(PartitionId("0"), SequenceNumber(4))
    assert empty is not None
    assert (empty.letter.body_kept, empty.letter.body_bytes) == (True, 0)
    assert office.desk.letters.read_letter_body(PartitionId("0"), SequenceNumber(4), 10) == b""
    for missing in ((PartitionId("0"), SequenceNumber(5)), (PartitionId("1"), SequenceNumber(3))):
        assert office.desk.letters.read_letter(*missing) is None
        assert office.desk.letters.read_letter_body(*missing, 10) == b""
    assert office.desk.letters.read_letter_body(PartitionId("0"), SequenceNumber(3), 10) == bytes(range(10))


def test_the_requests_about_a_letter_are_shown_with_author_and_reason(office: Office) -> None:
    office.letters(letter(event(3)))
    keeper = Keeper(STREAM, office.store, load_transform("examples.home_security"), lambda *_: None, stamps())
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


def test_those_of_a_filter_are_found_and_counted_in_the_statuses_that_are_asked(office: Office) -> None:
    both: tuple[LetterStatus, ...] = ("waiting", "exhausted")
    letters = office.desk.letters
    assert (letters.count_matching(ALL, both), letters.find_matching(ALL, both, 10)) == (0, ())  # no stream yet
    fill(office, 60)
    for wanted in (LetterChoice(fingerprint="aaaa"), ALL):
        listed = [(one.partition_id, one.sequence_number) for one in pages(office, wanted, 500) if one.status in both]
        for most in (3, 1_000):
            found = letters.find_matching(wanted, both, most)
            assert [(one.partition_id, one.sequence_number) for one in found] == listed[::-1][:most]
        assert letters.count_matching(wanted, both) == len(listed) > 3


def test_of_a_selection_those_are_found_that_are_there_in_such_a_status(office: Office) -> None:
    office.letters(letter(event(0)), replace(letter(event(1)), status="discarded"), letter(event(2)))
    named = [("0", 2), ("0", 1), ("0", 9), ("7", 0), ("0", 0)]
    positions = tuple(LetterPosition(PartitionId(id), SequenceNumber(at)) for id, at in named)
    assert [one.sequence_number for one in office.desk.letters.find_selected(positions, ("waiting",))] == [0, 2]
