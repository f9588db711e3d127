"""The sample events of a room become rows, nothing, or letters with a reason; each event has one outcome for ever."""

import pytest

from core.errors import MissingReference, PoisonEvent
from core.transforms.loading import Room
from hubledger.testing import check_deterministic, check_replay_identity
from local.trials.outcomes import fault_of_rows, shown
from tests.rooms.found import known_after, lines_of, outcomes_of, samples_of, transform_of


def test_a_sample_becomes_rows_nothing_or_a_letter_with_a_reason(room: Room) -> None:
    faults = []
    for line, found in zip(lines_of(room), outcomes_of(room), strict=True):
        where = f"events.jsonl:{line.number}: {shown(line.body)}"
        if found.error is not None and not isinstance(found.error, PoisonEvent | MissingReference):
            faults.append(f"{where} raised {found}: raise PoisonEvent for a bad event")
        elif fault := fault_of_rows(transform_of(room), found.rows):
            faults.append(f"{where}: {fault}")
    assert not faults, "\n".join(faults)


def test_some_sample_becomes_a_row_of_each_class(room: Room) -> None:
    written = {type(row) for found in outcomes_of(room) for row in found.rows}
    missing = [each.__name__ for each in transform_of(room).row_classes if each not in written]
    assert not missing, f"events.jsonl: no sample becomes a {', '.join(missing)}: add an event that does"


@pytest.mark.slow  # it starts three processes
def test_a_sample_has_one_outcome(room: Room) -> None:
    check_deterministic(room.name, samples_of(room), references=known_after(room))


def test_a_replay_of_the_samples_writes_the_same_rows(room: Room) -> None:
    check_replay_identity(room.name, samples_of(room))
