"""core/replay/plan.py: what a replayed event sees of the states, and which hub its events must be of."""

from collections.abc import Iterable
from dataclasses import replace

from core.model.commits import Checkpoint, PartitionState
from core.model.events import Event, SequenceNumber, Span
from core.model.rows import ReferenceKey, References, Row
from core.model.transforms import Transform
from core.replay.pieces import PartitionProgress, PartitionRange, Piece, ReplayCommit, StandingState, WrittenState
from core.replay.plan import ReplayReferences, ReplayTrial, plan_replay
from core.settle.isolate import Isolation
from examples.home_security.transform import Home
from tests.fakes.builders import event, home, ids, partition, stamps
from tests.fakes.plain_transform import PLAIN

JOB = next(iter(ids()))
CHECKPOINT = Checkpoint(SequenceNumber(99), "99", event(99).enqueued_at, 7, JOB)
STATE = PartitionState(partition(), 1, CHECKPOINT)
KEY = ReferenceKey(Home, ("h",))
OLD, NEW = home("h", armed=False), home("h", armed=True)


def plan(
    *given: Event,
    known: ReplayReferences | None = None,
    refused: dict[SequenceNumber, str] | None = None,
    transform: Transform = PLAIN,
) -> ReplayCommit:
    span = Span(given[0].sequence_number, given[-1].sequence_number)
    progress = PartitionProgress(PartitionRange(STATE.partition.partition_id, span), span.first)
    trial = ReplayTrial(JOB, STATE, Isolation(refused=refused or {}).around(transform))
    return plan_replay(Piece(span, given), progress, known or ReplayReferences({}, {}), trial, stamps())


def seen(commit: ReplayCommit) -> list[str]:
    """Return the readings of the looks: sensorTrue for a home that was armed."""
    return [
        row.sensor_id for placed in commit.settled.rows.values() for _, _, row in placed if hasattr(row, "sensor_id")
    ]


def standing(number: int | None) -> ReplayReferences:
    return ReplayReferences({KEY: StandingState(NEW, None if number is None else SequenceNumber(number))}, {})


def test_an_event_sees_the_state_that_stood_before_it() -> None:
    assert seen(plan(event(7, "look h"), known=standing(3))) == ["sensorTrue"]


def test_an_event_sees_what_an_earlier_event_of_its_piece_wrote_although_a_newer_state_stands() -> None:
    done = plan(event(5, "home h 0"), event(7, "look h"), known=standing(50))
    assert seen(done) == ["sensorFalse"]


def test_an_event_sees_what_an_earlier_piece_carried_along() -> None:
    known = ReplayReferences({KEY: StandingState(NEW, SequenceNumber(50))}, {KEY: WrittenState(SequenceNumber(5), OLD)})
    assert seen(plan(event(7, "look h"), known=known)) == ["sensorFalse"]


def test_a_state_written_between_what_was_carried_and_the_event_is_seen() -> None:
    known = ReplayReferences({KEY: StandingState(NEW, SequenceNumber(6))}, {KEY: WrittenState(SequenceNumber(5), OLD)})
    assert seen(plan(event(7, "look h"), known=known)) == ["sensorTrue"]


def test_without_any_state_before_it_an_event_sees_what_stands_now_as_a_retry_does() -> None:
    assert seen(plan(event(7, "look h"), known=standing(50))) == ["sensorTrue"]
    assert seen(plan(event(7, "look h"), known=standing(None))) == ["sensorTrue"]


def test_without_any_state_at_all_the_reference_is_missing() -> None:
    (letter,) = plan(event(7, "look h")).settled.letters
    assert letter.error_class == "reference"


def test_the_states_that_a_piece_wrote_last_are_carried_along() -> None:
    done = plan(event(5, "home h 0"), event(6, "home h 1"), event(7, "home g 1"))
    assert done.carried == {
        KEY: WrittenState(SequenceNumber(6), NEW),
        ReferenceKey(Home, ("g",)): WrittenState(SequenceNumber(7), home("g", armed=True)),
    }


def test_nothing_is_carried_for_a_transform_that_looks_nothing_up() -> None:
    assert plan(event(5, "home h 0"), transform=replace(PLAIN, references_of=None)).carried == {}


def test_a_refused_event_becomes_a_letter_with_the_words_of_the_database() -> None:
    done = plan(event(5, "reading a"), event(6, "reading b"), refused={SequenceNumber(6): "too long"})
    assert [(one.event.sequence_number, one.error_class, one.error) for one in done.settled.letters] == [
        (6, "refused", "too long")
    ]
    assert done.succeeded == (5,)


def test_rows_are_taken_out_of_every_table_of_the_transform_and_of_what_it_wrote_besides() -> None:
    def others(event: Event, references: References) -> Iterable[Row]:
        return [home("x")]

    done = plan(event(5, "x"), transform=replace(PLAIN, rows_of=others, row_classes=PLAIN.row_classes[1:]))
    assert done.row_classes == (*PLAIN.row_classes[1:], Home)


def test_an_event_that_makes_rows_without_end_becomes_a_letter() -> None:
    made = []

    def rows_of(event: Event, references: References) -> Iterable[Row]:
        for number in range(1_000):
            made.append(number)
            yield home(str(number))

    (letter,) = plan(event(5, "x"), transform=replace(PLAIN, rows_of=rows_of, rows_limit=10)).settled.letters
    assert letter.error_type == "core.errors.TooManyRows"
    assert len(made) == 11
