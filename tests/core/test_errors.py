"""core/errors.py: every error is one of ours, and messages say what, which and now what."""

import inspect

from core import errors
from core.errors import CheckpointConflict, HubledgerError, StreamIncarnationChanged
from core.model.events import SequenceNumber
from tests.fakes.builders import partition

CLASSES = [each for _, each in inspect.getmembers(errors, inspect.isclass) if each.__module__ == errors.__name__]


def test_every_error_is_one_of_ours() -> None:
    assert [each for each in CLASSES if not issubclass(each, HubledgerError)] == []


def test_a_conflict_or_a_changed_incarnation_says_which_checkpoint_and_that_nothing_was_written() -> None:
    for expected, where in ((None, "no longer absent"), (SequenceNumber(41), "no longer at 41")):
        said = f"is {where}: another owner committed first; nothing was written"
        assert str(CheckpointConflict(partition("3"), expected)) == f"checkpoint of telemetry/hubledger/3 {said}"
    text = str(StreamIncarnationChanged(partition("3"), "the hub ends at 7, before the checkpoint at 41"))
    assert text.startswith("telemetry/hubledger/3: the hub ends at 7, before the checkpoint at 41, so the hub was")
