"""The log of batches: one line for each of a minute's first batches, and sums for the others.

A partition delivers about one batch a second, even under a small load, so a line for each batch would cost too much. In
each minute a process logs the first ordinary batches and the first unusual ones. At the end of the minute one line for
each partition sums the others. Each count is in exactly one line, so totals over all lines are exact. A process that is
killed loses the sums of its last minute, but the ledger has each batch.

The next batch writes the sums of the minute before. When no batch follows, a timer of the process writes them.
"""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from core.errors import InfrastructureFault
from core.ingest.gaps import gap_facts
from core.ingest.ingest import IngestReport
from core.model.events import EventBatch, PartitionId

log = logging.getLogger("hubledger.ingest")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
PLACES = 5  # of errors that a line names: those with the most letters
TROUBLES = ("dead_lettered", "held", "redelivered", "healed", "absent")


@dataclass(frozen=True, slots=True)
class BatchLine:
    """A line to log: its text, and the fields of one batch or of the sums of several."""

    text: str
    facts: dict[str, object]


@dataclass(slots=True)
class Sums:
    """The sums of the batches of one partition in one minute."""

    minute: datetime
    first: int
    last: int
    counts: Counter[str]
    raised: Counter[str]
    seconds: float = 0.0
    slowest: float = 0.0

    def line(self, partition: str) -> BatchLine:
        """Return the line. The field `seconds` is a sum too."""
        facts = {
            "action": "ingest",
            "partition": partition,
            "minute": self.minute.isoformat(),
            "first": self.first,
            "last": self.last,
            **self.counts,
            **_raised_at(self.raised),
            "seconds": round(self.seconds, 3),
            "slowest_seconds": round(self.slowest, 3),
        }
        return BatchLine("batches ingested", facts)


class BatchLines:
    """Decides which batches have a line of their own, and sums the others."""

    def __init__(self, own_lines: int) -> None:
        self._own_lines = own_lines
        self._minute = EPOCH
        self._logged: Counter[bool] = Counter()
        self._sums: dict[str, Sums] = {}

    def add(self, report: IngestReport, seconds: float, now: datetime) -> list[BatchLine]:
        """Return the lines to log now: sums of a minute that has ended, then the batch's own line if it has one."""
        counts = {"batches": 1, **report.facts()}
        unusual = counts["commits"] != 1 or any(counts[name] for name in TROUBLES)
        lines = self.due(now)
        if self._logged[unusual] < self._own_lines:
            self._logged[unusual] += 1
            lines.append(_own_line(report, counts, seconds))
        else:
            first, last = report.batch.events[0].sequence_number, report.batch.events[-1].sequence_number
            begun = Sums(self._minute, first, last, Counter(), Counter())
            sums = self._sums.setdefault(str(report.batch.partition), begun)
            sums.first, sums.last = min(sums.first, first), max(sums.last, last)
            sums.counts.update(counts)
            sums.raised.update(_raised(report))
            sums.seconds += seconds
            sums.slowest = max(sums.slowest, seconds)
        return lines

    def due(self, now: datetime) -> list[BatchLine]:
        """Return the sums of a minute that has ended."""
        minute = now.replace(second=0, microsecond=0)
        if minute == self._minute:
            return []
        self._minute = minute
        self._logged.clear()
        return self.rest()

    def rest(self) -> list[BatchLine]:
        """Return all sums."""
        lines = [sums.line(partition) for partition, sums in self._sums.items()]
        self._sums.clear()
        return lines

    def wait(self, now: datetime) -> timedelta | None:
        """Return the time until sums are due, or None when there are none."""
        return max(self._minute + MINUTE - now, timedelta()) if self._sums else None


def _own_line(report: IngestReport, counts: dict[str, int], seconds: float) -> BatchLine:
    facts = {
        "action": "ingest",
        "partition": str(report.batch.partition),
        "first": report.batch.events[0].sequence_number,
        "last": report.batch.events[-1].sequence_number,
        **counts,
        **_raised_at(_raised(report)),
        "gaps": [[gap.first, gap.last] for gap in report.gaps],
        "invocation_id": report.batch.invocation_id,
        "seconds": round(seconds, 3),
    }
    return BatchLine("batch ingested", facts)


def _raised(report: IngestReport) -> Counter[str]:
    """Count the letters by the file and line of the room that raised the error, and its class."""
    letters = (letter for commit in report.commits for letter in commit.settled.letters if letter.error_at)
    return Counter(f"{one.error_at} {one.error_type.rpartition('.')[2]}" for one in letters)


def _raised_at(raised: Counter[str]) -> dict[str, object]:
    return {"raised_at": dict(raised.most_common(PLACES))} if raised else {}


def ring_later(seconds: float, ring: Callable[[], None]) -> Callable[[], None]:
    """Call `ring` after some seconds in a daemon thread. Return the function that cancels the call."""
    timer = threading.Timer(seconds, ring)
    timer.daemon = True
    timer.start()
    return timer.cancel


class BatchLog:
    """Logs batches as their lines come due. Several threads may use it. `later` is a timer. Close it with the app."""

    def __init__(
        self,
        own_lines: int,
        now: Callable[[], datetime],
        later: Callable[[float, Callable[[], None]], Callable[[], None]] = ring_later,
    ) -> None:
        self._lines, self._now, self._later = BatchLines(own_lines), now, later
        self._alone = threading.Lock()
        self._cancel: Callable[[], None] | None = None
        self.faults: dict[PartitionId, str] = {}  # the name of the last fault of each partition, until a batch succeeds

    def fail(self, batch: EventBatch, fault: InfrastructureFault) -> None:
        """Remember the fault of a batch. Log a repeated one with its count: Azure gets no such line from the host."""
        self.faults[batch.partition.partition_id] = type(fault).__name__
        if batch.retries:
            place = {"action": "fault_repeated", "partition": str(batch.partition)}
            facts = {**place, "error": f"{type(fault).__name__}: {fault}", "count": batch.retries + 1}
            log.warning("a batch failed again; will retry", extra={**facts, "invocation_id": batch.invocation_id})

    def add(self, report: IngestReport, seconds: float) -> None:
        """Log the gaps of a batch, and the batch, which took so many seconds, or add it to the sums of its minute."""
        for gap in report.gaps:
            log.warning("gap healed", extra=gap_facts(report.batch.partition, gap, report.healed, report.absent))
        self.faults.pop(report.batch.partition.partition_id, None)
        with self._alone:
            self._log(self._lines.add(report, seconds, self._now()))

    def close(self) -> None:
        """Log all sums."""
        with self._alone:
            if self._cancel is not None:
                self._cancel()
            self._log(self._lines.rest())

    def _ring(self) -> None:
        with self._alone:
            self._cancel = None
            self._log(self._lines.due(self._now()))

    def _log(self, lines: Iterable[BatchLine]) -> None:
        """Log lines, and set the timer for those that are due later."""
        for line in lines:
            log.info(line.text, extra=line.facts)
        wait = self._lines.wait(self._now())
        if self._cancel is None and wait is not None:
            self._cancel = self._later(wait.total_seconds(), self._ring)
