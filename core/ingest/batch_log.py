"""The log lines of batches: one for each of a minute's first batches, and sums for the others.

A partition delivers about one batch a second, even under a small load, so a line for each batch would cost too much. In
each minute a process logs the first ordinary batches and the first unusual ones. At the end of the minute one line for
each partition sums the others. Each count is in exactly one line, so totals over all lines are exact. A process that is
killed loses the sums of its last minute, but the ledger has each batch.
"""

from collections import Counter
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from core.ingest.ingest import IngestReport

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
    """Decides which batches have a line of their own, and sums the others. `alone` is a lock."""

    def __init__(self, own_lines: int, alone: AbstractContextManager[object]) -> None:
        self._own_lines = own_lines
        self._alone = alone
        self._minute = EPOCH
        self._logged: Counter[bool] = Counter()
        self._sums: dict[str, Sums] = {}

    def add(self, report: IngestReport, seconds: float, now: datetime) -> list[BatchLine]:
        """Return the lines to log now: sums of a minute that has ended, then the batch's own line if it has one."""
        counts = {"batches": 1, **report.facts()}
        unusual = counts["commits"] != 1 or any(counts[name] for name in TROUBLES)
        with self._alone:
            lines = self._due(now)
            if self._logged[unusual] < self._own_lines:
                self._logged[unusual] += 1
                lines.append(_own_line(report, counts, seconds))
            else:
                self._sum(report, counts, seconds)
            return lines

    def due(self, now: datetime) -> list[BatchLine]:
        """Return the sums of a minute that has ended."""
        with self._alone:
            return self._due(now)

    def rest(self) -> list[BatchLine]:
        """Return all sums, because the process ends."""
        with self._alone:
            return self._take()

    def wait(self, now: datetime) -> timedelta | None:
        """Return the time until sums are due, or None when there are none."""
        with self._alone:
            return max(self._minute + MINUTE - now, timedelta()) if self._sums else None

    def _due(self, now: datetime) -> list[BatchLine]:
        minute = now.replace(second=0, microsecond=0)
        if minute == self._minute:
            return []
        self._minute = minute
        self._logged.clear()
        return self._take()

    def _take(self) -> list[BatchLine]:
        lines = [sums.line(partition) for partition, sums in self._sums.items()]
        self._sums.clear()
        return lines

    def _sum(self, report: IngestReport, counts: dict[str, int], seconds: float) -> None:
        first, last = _first_and_last(report)
        sums = self._sums.setdefault(str(report.batch.partition), Sums(self._minute, first, last, Counter(), Counter()))
        sums.first, sums.last = min(sums.first, first), max(sums.last, last)
        sums.counts.update(counts)
        sums.raised.update(_raised(report))
        sums.seconds += seconds
        sums.slowest = max(sums.slowest, seconds)


def _own_line(report: IngestReport, counts: dict[str, int], seconds: float) -> BatchLine:
    first, last = _first_and_last(report)
    facts = {
        "action": "ingest",
        "partition": str(report.batch.partition),
        "first": first,
        "last": last,
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


def _first_and_last(report: IngestReport) -> tuple[int, int]:
    events = report.batch.events
    return events[0].sequence_number, events[-1].sequence_number
