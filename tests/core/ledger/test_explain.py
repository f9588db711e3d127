from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest

from core.audit.audit import LAST_NUMBER, audit, recount_rows
from core.errors import PoisonEvent
from core.ledger import explain as module
from core.ledger.explain import Explanation, KeyPlace, KeySearch, explain, find_places, first_commit_since, sentence_of
from core.ledger.store import read_books
from core.ledger.totals import LedgerRange
from core.letters.retry import Keeper, claim_due, retry_chunk
from core.model.commits import DeadLetter, SequenceGap
from core.model.events import Event, PartitionId, SequenceNumber, Span, span
from core.model.rows import References, Row
from examples.flight_info.transform import FlightStatus
from examples.home_security.transform import Home, HomeAlert, SensorReading
from tests.core.conftest import Office
from tests.fakes.builders import EPOCH, STREAM, commit, event, home, letter, partition, reading, settled
from tests.fakes.plain_transform import transform
from tests.fakes.replaying import World, changed, log_of, order

ONE = PartitionId("0")


def asked(office: Office, number: int) -> Explanation:
    found = explain(ONE, SequenceNumber(number), office.desk.explanations)
    assert found is not None
    return found


def outcomes(office: Office, *numbers: int) -> list[str]:
    return [asked(office, number).outcome for number in numbers]


def test_a_number_outside_of_the_ledger_or_in_a_hole_of_it_is_explained(office: Office) -> None:
    office.commit(5, 9)
    office.commit(12, 13)
    assert outcomes(office, 4, 5, 10, 11) == ["before_first", "filtered", "missing", "missing"]
    assert outcomes(office, 14, 2**63 - 1) == ["not_yet", "not_yet"]
    assert explain(PartitionId("9"), SequenceNumber(0), office.desk.explanations) is None


def test_a_written_number_shows_its_rows_by_table_and_its_range(office: Office) -> None:
    office.commit(0, 0, settled({0: [reading()]}), of=partition("1"))
    office.commit(0, 2, settled({1: [reading("home-9"), home("home-9")]}, filtered=2))
    assert outcomes(office, 0, 2) == ["written_or_filtered"] * 2  # whatever other partitions have
    found = asked(office, 1)
    rows = {row.table: row for row in found.found.rows}
    assert (found.outcome, set(rows)) == ("written", {"sensor_reading", "home"})
    assert (rows["sensor_reading"].ordinal, rows["home"].ordinal) == (0, None)
    assert rows["sensor_reading"].columns["home_id"] == "home-9"
    assert found.found.range is not None
    assert (found.found.range.commit_number, found.found.range.first, found.found.range.last) == (1, 0, 2)
    assert found.found.range.invocation_id == "invocation-1"
    for number in (3, 4):
        office.commit(number, number, settled({number: [home("home-1", armed=True)]}))
    assert outcomes(office, 3, 4) == ["written", "written"], "although a newer event replaced the state of one"


def test_a_letter_is_explained_with_its_status_and_the_letter_that_it_waits_for(office: Office) -> None:
    first = replace(letter(event(1, "body", key="k")), status="exhausted")
    held = replace(first, event=event(2, "body", key="k"), status="held", held_behind=SequenceNumber(1))
    office.commit(0, 2, settled({}, letters=[first, held], filtered=1))
    found, waits = asked(office, 1), asked(office, 2)
    assert (found.outcome, "the app does not try it again: retry or discard" in found.sentence) == (
        "dead_lettered",
        True,
    )
    assert found.found.letter is not None
    assert (waits.outcome, "waits for letter 1 of its partition key" in waits.sentence) == ("held", True)
    assert audit(office.desk.audits, None).balanced


def replayed(office: Office, rows_of: Callable[[Event, References], Iterable[Row]], *bodies: str) -> World:
    world = World(office.store, {"0": log_of(*bodies)})
    world.transform = changed(rows_of)
    return world


def only_doubles(event: Event, references: References) -> Iterable[Row]:
    if event.body.startswith(b"look"):
        raise PoisonEvent("no looks any more")
    return transform(event, references) if event.body.startswith(b"double") else []


def test_what_a_replay_filtered_or_made_a_letter_of_is_so_and_the_books_balance(office: Office) -> None:
    replayed(office, only_doubles, "home h 1", "look h", "reading h", "reading h").replay()
    assert outcomes(office, 1, 2, 3) == ["dead_lettered", "filtered", "filtered"]
    found = asked(office, 2)
    assert "a replay" in found.sentence
    assert [(change.kind, change.commit_number) for change in found.found.changes] == [("replay", 2)]
    assert_balanced(office, 0, replay_letters=(1, 1, 1))
    letters = read_books(office.desk.ledger).letters
    assert (letters.dead_lettered, letters.replayed) == (0, 1)


def test_a_dry_run_touches_no_number_and_what_a_replay_found_gone_stands_as_it_was(office: Office) -> None:
    def refusing(event: Event, references: References) -> Iterable[Row]:
        raise PoisonEvent("nothing any more")

    world = replayed(office, refusing, "home h 1", "look h", "reading h")
    world.replay(order(dry_run=True))
    assert (asked(office, 1).outcome, asked(office, 1).found.changes) == ("written", ())
    assert_balanced(office, 0)
    world.hub.expire_before("0", 3)
    world.replay()
    assert outcomes(office, 0, 1, 2) == ["written", "written", "written"]
    assert_balanced(office, 0)


def assert_balanced(office: Office, absent: int, replay_letters: tuple[int, int, int] = (0, 0, 0)) -> None:
    books, done = read_books(office.desk.ledger), audit(office.desk.audits, None)
    assert (books.balanced, done.faults) == (True, ())
    (one,) = done.partitions
    assert one.ledger.absent == absent
    whole = Span(one.ledger.first, SequenceNumber(LAST_NUMBER))
    assert recount_rows(one, whole, office.desk.audits).faults == ()
    assert office.desk.audits.count_replay_letters(ONE) == replay_letters


def staged(office: Office, *given: Event) -> World:
    """Replay ten events of which 6 and 7 had left the hub when they were due, and some of them were staged later."""
    world = World(office.store, {"0": log_of(*["reading h"] * 5)})
    state = office.store.read_partition(partition())
    gap = SequenceGap(SequenceNumber(6), SequenceNumber(7), "absent")
    office.store.commit_batch(replace(commit(state, 5, 9, settled({}, filtered=3)), absent=2, gaps=(gap,)))
    world.hub.publish("0", [event(number, "quiet") for number in (5, 8, 9)])
    if given:
        office.engine.stage(office.store.read_partition(partition()), given)
        assert world.replay(order(["0"], 5, 9, dry_run=True)).counts.events == 3 + len(given)
        assert outcomes(office, 6, 7) == ["absent", "absent"]
    world.replay(order(["0"], 5, 9) if given else order(["0"], 6, 7))
    return world


def test_what_was_absent_and_is_replayed_is_what_became_of_it_and_the_books_balance(office: Office) -> None:
    staged(office, event(6, "double h"), event(7, "quiet"))
    assert outcomes(office, 6, 7) == ["written", "written_or_filtered"]
    found = asked(office, 6)
    assert found.sentence == "Commit 3, a replay, wrote 2 rows of it."
    assert [row.ordinal for row in found.found.rows] == [0, 1]
    assert_balanced(office, 2)  # they were absent, when they were due


def test_a_letter_of_an_absent_event_is_explained_and_the_books_balance(office: Office) -> None:
    staged(office, event(6, "reading h"), event(7, "poison"))
    assert outcomes(office, 6, 7) == ["written", "dead_lettered"]
    assert_balanced(office, 2, replay_letters=(1, 1, 1))


@pytest.mark.parametrize("given", [(), (event(6, "quiet"),)], ids=["nothing", "a part"])
def test_the_explanation_of_a_staged_part_says_that_it_may_have_left_no_row(
    office: Office, given: tuple[Event, ...]
) -> None:
    staged(office, *given)
    said = "The hub no longer had it: numbers 6 to 7 are absent"
    since = "; commit 3, a replay, had only some events of its range, and may have left no row for this event."
    for number in (6, 7):
        assert (asked(office, number).outcome, asked(office, number).sentence) == (
            "absent",
            said + (since if given else "."),
        )
    assert_balanced(office, 2)


def test_retries_of_other_letters_around_a_number_are_not_its_own(office: Office) -> None:
    world = World(office.store, {"0": log_of("look h", "reading h", "look h", "home h 1")})
    world.clock.advance(3_600.0)
    keeper = Keeper(STREAM, office.store, world.transform, world.hub.find_event, world.own)
    for chunk in claim_due(keeper):
        retry_chunk(chunk, keeper, "a retry")
    kinds = [[change.kind for change in asked(office, number).found.changes] for number in (0, 1, 2)]
    assert kinds == [["retry"], [], ["retry"]]


ROW = LedgerRange(1, "batch", SequenceNumber(0), SequenceNumber(9), 10, 0, 0, 0, 0, 10, "v", "i", EPOCH)


@pytest.mark.parametrize(
    ("purged", "minutes", "expected"),
    [
        (0, -5, 1),
        (0, 1, 1),
        (0, 1.5, 2),
        (0, 700, 700),
        (0, 1000, 1000),
        (0, 1000.5, None),
        (400, 3, 401),
        (400, 650, 650),
    ],
)
def test_the_first_commit_at_or_after_a_time_takes_few_reads(purged: int, minutes: float, expected: int | None) -> None:
    kept = range(purged + 1, 1001)  # commits come a minute apart, and the first ones are gone
    rows = [replace(ROW, commit_number=n, committed_at=EPOCH + timedelta(minutes=n)) for n in kept]
    reads: list[int] = []

    def read_range(after: int) -> LedgerRange | None:
        reads.append(after)
        return next((row for row in rows if row.commit_number > after), None)

    found = first_commit_since(EPOCH + timedelta(minutes=minutes), 1000, read_range)
    assert (None if found is None else found.commit_number) == expected
    assert len(reads) <= 11


PIECE = 10
SPANS = {PartitionId("10"): span(0, 99), PartitionId("2"): span(50, 149), PartitionId("3"): span(5, -1)}
KEPT = {"10": {0, 7, 8, 9, 10, 55, 99}, "2": {49, 50, 148, 149, 150}, "3": {0}}
ALL = [("10", n) for n in (99, 55, 10, 9, 8, 7, 0)] + [("2", n) for n in (149, 148, 50)]


def read(id: PartitionId, reach: Span) -> tuple[list[KeyPlace], int]:
    begins = max(reach.first, reach.last - PIECE + 1)
    numbers = [n for n in range(reach.last, begins - 1, -1) if n in KEPT[id]]
    return [KeyPlace(id, SequenceNumber(n), True, ()) for n in numbers], begins


@pytest.mark.parametrize("most", [1, 2, 3, 500])
@pytest.mark.parametrize("lasts", [1, 2, 7, 1000])
def test_the_pages_have_every_place_once_the_newest_of_each_partition_first(most: int, lasts: int) -> None:
    pages, after = list[list[tuple[str, int]]](), None
    while after is not None or not pages:  # a page is over after so many pieces
        looks = count(1)
        found, after = find_places(KeySearch(SPANS, most, lambda looks=looks: next(looks) >= lasts), after, read)  # type: ignore[misc]
        pages.append([(one.partition_id, int(one.sequence_number)) for one in found])
        assert len(pages) < 100
    assert [one for page in pages for one in page] == ALL
    assert max(map(len, pages)) <= most
    found, _ = find_places(KeySearch(SPANS, 50, lambda: False), (PartitionId("11"), 3), read)  # none searched
    assert [one.sequence_number for one in found] == [149, 148, 50]


def test_the_sentence_names_the_subjects_and_the_tables_without_one() -> None:
    said = sentence_of((SensorReading, FlightStatus))
    assert "in the partition keys of letters and in sensor_reading.home_id." in said
    assert "a row of flight_status, because no subject is declared there" in said
    assert "whose state a newer event has replaced" in said
    assert "replaced" not in sentence_of((HomeAlert,))
    assert "no subject" not in sentence_of((Home, HomeAlert))
    assert sentence_of((FlightStatus,)).startswith("Searched in the partition keys of letters. ")


def places(office: Office, key: str, first: int = 0, last: int = 99) -> list[tuple[int, bool, tuple[str, ...]]]:
    found, _ = office.desk.explanations.find_places(key, ONE, span(first, last))
    return [(one.sequence_number, one.letter, one.tables) for one in found]


def keyed(number: int, key: str | None) -> DeadLetter:
    return letter(event(number, key=key))


def test_letters_by_partition_key_and_rows_by_subject_the_newest_first(office: Office) -> None:
    office.commit(0, 3, settled({0: [home("h")], 1: [reading("h"), reading("h")], 2: [reading("other")]}, filtered=1))
    office.letters(keyed(5, "h"), keyed(6, "other"), keyed(7, None), keyed(8, "h "))
    office.commit(9, 9, settled({9: [reading("h")]}), partition("1"))
    assert places(office, "h") == [(5, True, ()), (1, False, ("sensor_reading",)), (0, False, ("home",))]
    assert places(office, "h", 1, 4) == [(1, False, ("sensor_reading",))]
    assert places(office, "H") == places(office, "unknown") == []


def test_a_search_reads_a_piece_and_says_where_it_begins(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.letters(*[keyed(number, "h") for number in range(6)])
    for limit, most in (("LOOKED_AT", 4), ("LETTERS_LOOKED_AT", 2)):
        monkeypatch.setattr(module, limit, most)
        found, begins = office.desk.explanations.find_places("h", ONE, span(0, 5))
        assert ([one.sequence_number for one in found], begins) == ([*range(5, 5 - most, -1)], 6 - most)
