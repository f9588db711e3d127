"""Every store finds the evidence about one sequence number, from which its explanation follows."""

from collections.abc import Iterable
from dataclasses import replace

from core.audit.audit import LAST_NUMBER, audit, recount_rows
from core.errors import PoisonEvent
from core.ledger.explain import Explanation, explain
from core.ledger.store import read_books
from core.letters.retry import Keeper, claim_due, retry_chunk
from core.model.commits import SequenceGap
from core.model.events import Event, PartitionId, SequenceNumber, Span
from core.model.rows import References, Row
from tests.core.conftest import Office
from tests.fakes.builders import STREAM, commit, event, home, letter, partition, reading, settled
from tests.fakes.plain_transform import transform
from tests.fakes.replaying import World, changed, log_of, order


def asked(office: Office, number: int, partition_id: str = "0") -> Explanation | None:
    return explain(PartitionId(partition_id), SequenceNumber(number), office.desk.explanations)


def outcome(office: Office, number: int) -> str:
    found = asked(office, number)
    assert found is not None
    return found.outcome


def test_a_partition_without_a_commit_explains_nothing(office: Office) -> None:
    office.commit(0, 0)
    assert asked(office, 0, "9") is None


def test_a_number_after_the_checkpoint_is_not_committed_yet(office: Office) -> None:
    office.commit(5, 9)
    assert outcome(office, 10) == "not_yet"
    assert outcome(office, 2**63 - 1) == "not_yet"


def test_a_number_before_the_first_is_explained(office: Office) -> None:
    office.commit(5, 9)
    assert outcome(office, 4) == "before_first"


def test_a_number_in_a_hole_is_missing(office: Office) -> None:
    office.commit(0, 4)
    office.commit(8, 9)
    assert [outcome(office, number) for number in (4, 5, 7, 8)][1:3] == ["missing", "missing"]


def test_a_written_number_shows_its_rows_by_table_and_its_range(office: Office) -> None:
    office.commit(0, 2, settled({1: [reading("home-9"), home("home-9")]}, filtered=2))
    found = asked(office, 1)
    assert found is not None
    assert found.outcome == "written"
    rows = {row.table: row for row in found.found.rows}
    assert set(rows) == {"sensor_reading", "home"}
    assert (rows["sensor_reading"].ordinal, rows["home"].ordinal) == (0, None)
    assert rows["sensor_reading"].columns["home_id"] == "home-9"
    assert found.found.range is not None
    assert (found.found.range.commit_number, found.found.range.first, found.found.range.last) == (1, 0, 2)
    assert found.found.range.invocation_id == "invocation-1"


def test_a_dead_letter_is_explained_with_its_status(office: Office) -> None:
    office.letters(replace(letter(event(3)), status="exhausted"))
    found = asked(office, 3)
    assert found is not None
    assert (found.outcome, "that nothing retries any more" in found.sentence) == ("dead_lettered", True)
    assert found.found.letter is not None


def test_a_held_letter_is_explained_with_the_letter_that_it_waits_for(office: Office) -> None:
    first = replace(letter(event(1, "body", key="k")), status="exhausted")
    held = replace(first, event=event(2, "body", key="k"), status="held", held_behind=SequenceNumber(1))
    office.commit(0, 2, settled({}, letters=[first, held], filtered=1))
    found = asked(office, 2)
    assert found is not None
    assert (found.outcome, "waits for letter 1 of its partition key" in found.sentence) == ("held", True)
    assert audit(office.desk.audits, None).balanced


def test_a_number_of_a_range_in_which_all_was_filtered_was_filtered(office: Office) -> None:
    office.commit(0, 9)
    assert outcome(office, 5) == "filtered"


def test_a_state_that_a_newer_event_replaced_leaves_a_written_number_without_rows(office: Office) -> None:
    office.commit(0, 0, settled({0: [home("home-1")]}))
    office.commit(1, 1, settled({1: [home("home-1", armed=True)]}))
    assert [outcome(office, number) for number in (0, 1)] == ["written", "written"]


def test_where_it_cannot_be_known_that_is_said(office: Office) -> None:
    office.commit(0, 1, settled({0: [home("home-1")]}, filtered=1))
    office.commit(2, 2, settled({2: [home("home-1")]}))
    assert outcome(office, 0) == "written_or_filtered"


def test_the_rows_of_other_partitions_are_not_those_of_this_number(office: Office) -> None:
    office.commit(0, 0, settled({0: [reading()]}), of=partition("1"))
    office.commit(0, 0)
    assert outcome(office, 0) == "filtered"


class TestReplayed:
    """Numbers of which a replay made something else than their batch did."""

    def replayed(self, office: Office, *bodies: str) -> World:
        """Ingested, then replayed with a transform to which only doubles are worth a row, and looks are poison."""

        def other(event: Event, references: References) -> Iterable[Row]:
            if event.body.startswith(b"look"):
                raise PoisonEvent("no looks any more")
            return transform(event, references) if event.body.startswith(b"double") else []

        world = World(office.store, {"0": log_of(*bodies)})
        world.transform = changed(other)
        world.replay()
        return world

    def test_what_a_replay_filtered_is_filtered_although_its_batch_wrote_it(self, office: Office) -> None:
        self.replayed(office, "reading h", "reading h")
        assert [outcome(office, number) for number in (0, 1)] == ["filtered", "filtered"]
        found = asked(office, 0)
        assert found is not None
        assert "a replay" in found.sentence
        assert [(change.kind, change.commit_number) for change in found.found.changes] == [("replay", 2)]

    def test_a_letter_that_a_replay_made_is_explained_and_the_books_balance(self, office: Office) -> None:
        self.replayed(office, "home h 1", "look h", "reading h")
        assert outcome(office, 1) == "dead_lettered"
        books, done = read_books(office.desk.ledger), audit(office.desk.audits, None)
        assert (books.letters.dead_lettered, books.letters.replayed, books.balanced) == (0, 1, True)
        assert done.faults == ()
        (one,) = done.partitions
        whole = Span(one.ledger.first, SequenceNumber(LAST_NUMBER))
        assert recount_rows(one, whole, office.desk.audits).faults == ()
        assert office.desk.audits.count_replay_letters(PartitionId("0")) == (1, 1, 1)

    def test_a_dry_run_touches_no_number_and_makes_no_letter(self, office: Office) -> None:
        world = World(office.store, {"0": log_of("home h 1", "look h")})

        def refusing(event: Event, references: References) -> Iterable[Row]:
            raise PoisonEvent("nothing any more")

        world.transform = changed(refusing)
        world.replay(order(dry_run=True))
        found = asked(office, 1)
        assert found is not None
        assert (found.outcome, found.found.changes) == ("written", ())
        assert office.desk.audits.count_replay_letters(PartitionId("0")) == (0, 0, 0)
        assert read_books(office.desk.ledger).balanced

    def test_what_a_replay_found_gone_stands_as_it_was(self, office: Office) -> None:
        world = World(office.store, {"0": log_of("reading h", "reading h", "reading h")})
        world.hub.expire_before("0", 2)
        world.replay()
        assert [outcome(office, number) for number in (0, 1, 2)] == ["written", "written", "written"]
        assert audit(office.desk.audits, None).faults == ()


class TestStaged:
    """Numbers that were absent when they were due, and of which a replay had staged events later."""

    def lost(self, office: Office) -> World:
        """Ten events, of which 6 and 7 had left the hub."""
        world = World(office.store, {"0": log_of(*["reading h"] * 5)})
        state = office.store.read_partition(partition())
        gap = SequenceGap(SequenceNumber(6), SequenceNumber(7), "absent")
        office.store.commit_batch(replace(commit(state, 5, 9, settled({}, filtered=3)), absent=2, gaps=(gap,)))
        world.hub.publish("0", [event(number, "quiet") for number in (5, 8, 9)])
        return world

    def replayed(self, office: Office, *staged: Event) -> None:
        world = self.lost(office)
        office.engine.stage(office.store.read_partition(partition()), staged)
        assert world.replay(order(["0"], 5, 9, dry_run=True)).counts.events == 3 + len(staged)
        assert [outcome(office, number) for number in (6, 7)] == ["absent", "absent"]
        world.replay(order(["0"], 5, 9))

    def assert_balanced(self, office: Office) -> None:
        books, done = read_books(office.desk.ledger), audit(office.desk.audits, None)
        assert (books.balanced, done.faults) == (True, ())
        (one,) = done.partitions
        assert one.ledger.absent == 2  # they were, when they were due
        whole = Span(one.ledger.first, one.ledger.checkpoint)
        assert recount_rows(one, whole, office.desk.audits).faults == ()

    def test_what_was_absent_and_is_replayed_is_what_became_of_it_and_the_books_balance(self, office: Office) -> None:
        self.replayed(office, event(6, "double h"), event(7, "quiet"))
        assert [outcome(office, number) for number in (6, 7)] == ["written", "written_or_filtered"]
        found = asked(office, 6)
        assert found is not None
        assert found.sentence == "Commit 3, a replay, wrote 2 rows of it."
        assert [row.ordinal for row in found.found.rows] == [0, 1]
        self.assert_balanced(office)

    def test_a_letter_of_an_absent_event_is_explained_and_the_books_balance(self, office: Office) -> None:
        self.replayed(office, event(6, "reading h"), event(7, "poison"))
        assert [outcome(office, number) for number in (6, 7)] == ["written", "dead_lettered"]
        assert office.desk.audits.count_replay_letters(PartitionId("0")) == (1, 1, 1)
        self.assert_balanced(office)

    def test_the_explanation_of_a_staged_part_says_that_it_may_have_left_no_row(self, office: Office) -> None:
        self.replayed(office, event(6, "quiet"))
        lost = "The hub no longer had it: numbers 6 to 7 are absent"
        since = "; commit 3, a replay, had only some events of its range, and may have left no row for this event."
        found = [asked(office, number) for number in (6, 7)]
        assert [(one.outcome, one.sentence) for one in found if one] == [("absent", lost + since)] * 2
        self.assert_balanced(office)

    def test_a_replay_of_which_all_was_gone_leaves_it_absent(self, office: Office) -> None:
        world = self.lost(office)
        world.replay(order(["0"], 6, 7))
        found = asked(office, 7)
        assert found is not None
        assert found.sentence == "The hub no longer had it: numbers 6 to 7 are absent."


def test_retries_of_other_letters_around_a_number_are_not_its_own(office: Office) -> None:
    world = World(office.store, {"0": log_of("look h", "reading h", "look h", "home h 1")})
    world.clock.advance(3_600.0)
    keeper = Keeper(STREAM, office.store, world.transform, world.hub.find_event, world.own)
    for chunk in claim_due(keeper):
        retry_chunk(chunk, keeper, "a retry")
    kinds = {}
    for number in (0, 1, 2):
        found = asked(office, number)
        assert found is not None
        kinds[number] = [change.kind for change in found.found.changes]
    assert kinds == {0: ["retry"], 1: [], 2: ["retry"]}
