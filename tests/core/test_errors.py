"""core/errors.py: every error is one of ours, and messages say what, which and now what."""

import inspect

import pytest

from core import errors
from core.errors import CheckpointConflict, HubledgerError, StreamIncarnationChanged
from core.model.events import SequenceNumber
from tests.fakes.builders import partition

CLASSES = [each for _, each in inspect.getmembers(errors, inspect.isclass) if each.__module__ == errors.__name__]


@pytest.mark.parametrize("each", CLASSES, ids=lambda each: each.__name__)
def test_every_error_is_one_of_ours(each: type) -> None:
    assert issubclass(each, HubledgerError)


@pytest.mark.parametrize(("expected", "where"), [(None, "no longer absent"), (SequenceNumber(41), "no longer at 41")])
def test_a_conflict_says_which_checkpoint_and_that_nothing_was_written(
    expected: SequenceNumber | None, where: str
) -> None:
    conflict = CheckpointConflict(partition("3"), expected)
    assert str(conflict) == (
        f"checkpoint of telemetry/hubledger/3 is {where}: another owner committed first; nothing was written"
    )


def test_a_changed_incarnation_names_partition_event_and_checkpoint() -> None:
    text = str(StreamIncarnationChanged(partition("3"), "the hub ends at 7, before the checkpoint at 41"))
    assert text.startswith("telemetry/hubledger/3: the hub ends at 7, before the checkpoint at 41, so the hub was")
