"""The events of a file, with a bar that shows how far a command has read it."""

from array import array
from collections.abc import Iterator
from pathlib import Path

from core.model.events import Event
from hubledger.cli.console import progress
from local.feed.event_file import FileEvent, events_in
from local.trials.outcomes import event_of


def read_events(path: Path) -> Iterator[FileEvent]:
    """Yield the events of a file as the demo reads them. Raises UnusableFile."""
    with progress() as bar:
        task = bar.add_task(path.name, total=path.stat().st_size)
        for each in events_in(path):
            bar.advance(task, len(each.body) + 1)
            yield each


class EventFile:
    """A file of events, and the line of each: the sequence numbers begin with 0, and have no gap for an empty line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = array("Q")  # by sequence number

    def __iter__(self) -> Iterator[Event]:
        for number, each in enumerate(read_events(self._path)):
            if number == len(self._lines):
                self._lines.append(each.line)
            yield event_of(each.body, number=number, partition_key=each.key, properties=each.properties)

    def line_of(self, number: int) -> int:
        """Return the line of an event that was read; 0 for the states that the store had before."""
        return self._lines[number] if number >= 0 else 0
