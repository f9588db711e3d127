"""Looks at a run: the events that are accounted for, and the memory, CPU time and files of its processes."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median

from bench.usage import cpu_of, resident_of
from local.stack.app_totals import select
from local.stack.processes import Child
from local.stack.stack import Place

_CHECKPOINTS = "SELECT sequence_number + 1, enqueued_at, updated_at FROM event_hub_checkpoint"


@dataclass(frozen=True, slots=True)
class Usage:
    """The resident bytes of a process, and the seconds of the processor that it has used since it began."""

    resident: int
    cpu: float


@dataclass(frozen=True, slots=True)
class Look:
    """One look, `seconds` after the first: events, lags in seconds by partition, usage by process, bytes by file."""

    seconds: float
    accounted: int
    lags: tuple[float, ...]
    usage: Mapping[str, Usage]
    files: Mapping[str, int]

    @property
    def lag(self) -> float:
        """The middle lag of the partitions: from enqueued to committed, of the newest event that is committed."""
        return median(self.lags) if self.lags else 0.0

    def together(self, name: str) -> Usage:
        """Return the usage of all processes whose names begin with this one."""
        found = [usage for process, usage in self.usage.items() if process.startswith(name)]
        return Usage(sum(one.resident for one in found), sum(one.cpu for one in found))


def look_at(place: Place, children: Mapping[str, Child], seconds: float, before: Look | None = None) -> Look:
    """Look once. Of a process that has ended since the look `before`, the usage is the one that it had then."""
    used = {name: Usage(resident_of(child.pid), cpu_of(child.pid)) for name, child in children.items() if child.running}
    found = select(place.store, _CHECKPOINTS)
    return Look(
        seconds,
        sum(number for number, _, _ in found),
        tuple((_instant(updated_at) - _instant(enqueued_at)).total_seconds() for _, enqueued_at, updated_at in found),
        {**(before.usage if before else {}), **used},
        {"store": _bytes(place.store), "log": _bytes(_log(place.store)), "hub": _bytes(place.hub, _log(place.hub))},
    )


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _log(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _bytes(*paths: Path) -> int:
    return sum(path.stat().st_size for path in paths if path.exists())
