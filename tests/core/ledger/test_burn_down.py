"""Promises of every store about the burn-down: open letters by kind and by the hub's beginning; open gaps."""

from dataclasses import replace
from datetime import timedelta

from core.ledger.store import OpenCount, OpenGap
from core.model.commits import DeadLetter, LetterStatus
from core.model.events import PartitionId, SequenceNumber, Span
from tests.core.conftest import Office
from tests.fakes.builders import EPOCH, event, letter, partition

P0 = PartitionId("0")


def failed(number: int, hour: float, status: LetterStatus = "waiting", is_kept: bool = True) -> DeadLetter:
    """Return the letter of an event that was enqueued in an hour."""
    of = letter(event(number, "body", at=EPOCH + timedelta(hours=hour)))
    return replace(of, status=status, keeps_body=is_kept)


def counted(office: Office, beginning: int = 0, id: PartitionId = P0) -> dict[str, OpenCount]:
    found = office.desk.burn_downs.count_open_letters(id, SequenceNumber(beginning))
    return {one.kind: one for one in found}


def test_open_letters_are_counted_with_and_without_a_body_and_settled_ones_are_not(office: Office) -> None:
    statuses: list[LetterStatus] = ["waiting", "retrying", "held", "exhausted", "resolved", "discarded"]
    office.letters(*(failed(number, 1, status) for number, status in enumerate(statuses)))
    office.letters(failed(6, 1, is_kept=False), failed(7, 5, "resolved", is_kept=False))
    office.letters(failed(3, 1), of=partition("1"))
    assert {kind: one.gone for kind, one in counted(office, 99).items()} == {"kept": 4, "unkept": 1}
    assert office.desk.burn_downs.read_partition_ids() == ("0", "1")
    assert counted(office, id=PartitionId("2")) == {}


def test_letters_before_the_beginning_are_gone_and_the_first_of_the_others_has_the_time(office: Office) -> None:
    office.letters(*(failed(number, hour) for number, hour in ((0, 0), (2, 0.5), (3, 1), (5, 3), (6, 10))))
    assert counted(office)["kept"] == OpenCount(P0, "kept", 0, EPOCH)
    assert counted(office, 3)["kept"] == OpenCount(P0, "kept", 2, EPOCH + timedelta(hours=1))
    assert counted(office, 7)["kept"] == OpenCount(P0, "kept", 5, None)


def test_an_open_gap_is_not_older_than_the_event_at_the_checkpoint(office: Office) -> None:
    office.commit(0, 4)
    office.store.note_gap(office.store.read_partition(partition()), Span(SequenceNumber(5), SequenceNumber(9)), EPOCH)
    bare = office.anchored(partition("1"), 3)
    found_at = EPOCH + timedelta(days=3)
    office.store.note_gap(bare, Span(SequenceNumber(3), SequenceNumber(3)), found_at)
    checkpoint = office.store.read_partition(partition()).checkpoint
    assert office.desk.burn_downs.read_open_gaps() == (
        OpenGap(P0, SequenceNumber(5), checkpoint.enqueued_at),
        OpenGap(PartitionId("1"), SequenceNumber(3), found_at),
    )
    office.commit(5, 9)
    assert [gap.partition_id for gap in office.desk.burn_downs.read_open_gaps()] == ["1"]


def test_a_stream_that_is_not_in_the_database_has_no_burn_down(office: Office) -> None:
    desk = office.desk.burn_downs
    assert (desk.read_partition_ids(), desk.read_open_gaps(), counted(office)) == ((), (), {})
