"""The log of batches: it writes a batch's own line at once, sums after their minute, and the rest at the end.

The next batch writes the sums of the minute before. When no batch follows, a timer writes them: the trigger has
instances of its own, so no other function of the app could.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from datetime import datetime

from core.errors import InfrastructureFault
from core.ingest.batch_log import BatchLine, BatchLines
from core.ingest.ingest import IngestReport, recurrence_facts
from core.model.events import EventBatch, PartitionId

log = logging.getLogger("hubledger.ingest")
Ring = Callable[[], None]


def ring_later(seconds: float, ring: Ring) -> Ring:
    """Call `ring` after some seconds in a daemon thread; return the function that cancels the call."""
    timer = threading.Timer(seconds, ring)
    timer.daemon = True
    timer.start()
    return timer.cancel


class BatchLog:
    """Logs batches as their lines come due. `later` is a timer."""

    def __init__(
        self,
        lines: BatchLines,
        now: Callable[[], datetime],
        later: Callable[[float, Ring], Ring] = ring_later,
    ) -> None:
        self._lines, self._now, self._later = lines, now, later
        self._alone = threading.Lock()
        self._cancel: Ring | None = None
        self.faults: dict[PartitionId, str] = {}  # the name of the last fault of each partition, until a batch succeeds

    def fail(self, batch: EventBatch, fault: InfrastructureFault) -> None:
        """Remember the fault of a batch. Log a repeated one with its count: Azure gets no such line from the host."""
        self.faults[batch.partition.partition_id] = type(fault).__name__
        if batch.retries:
            log.warning("a batch failed again; will retry", extra=recurrence_facts(batch, fault))

    def add(self, report: IngestReport, seconds: float) -> None:
        """Log a batch that took so many seconds, or add it to the sums of its minute."""
        self.faults.pop(report.batch.partition.partition_id, None)
        _log(self._lines.add(report, seconds, self._now()))
        self._set()

    def close(self) -> None:
        """Log all sums."""
        with self._alone:
            if self._cancel is not None:
                self._cancel()
        _log(self._lines.rest())

    def _set(self) -> None:
        """Set the timer, unless it is set or nothing is due."""
        with self._alone:
            wait = self._lines.wait(self._now())
            if self._cancel is None and wait is not None:
                self._cancel = self._later(wait.total_seconds(), self._ring)

    def _ring(self) -> None:
        with self._alone:
            self._cancel = None
        _log(self._lines.due(self._now()))
        self._set()  # a batch of this minute may have been added since


def _log(lines: Iterable[BatchLine]) -> None:
    for line in lines:
        log.info(line.text, extra=line.facts)
