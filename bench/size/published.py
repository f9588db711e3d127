"""A short record of what a feed has published: each letter, and sums of all other events. It never slows the feed.

The record is the one of the feed, so that its recount checks the ledger, the outcomes and each letter. In place of
20,000,000 rows it has one row for each outcome, with the number of its events as copies. The rows of the app are
compared by their number and the sum of their checksums, which a lost or a doubled row changes.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

from local.feed.homes import Expected
from local.feed.planned_events import LETTERS, Minute, PlannedEvent
from local.feed.record import Copies, Record

REGISTRATION = "registration"
TABLES = ("sensor_reading", "home_alert", "home")


@dataclass(slots=True)
class Sums:
    """The number of some rows, and the sum of their checksums: equal for the same rows in any order."""

    rows: int = 0
    checksum: int = 0

    def add(self, *values: object) -> None:
        """Add one row of these values."""
        self.rows += 1
        self.checksum += crc32("\x1f".join(map(str, values)).encode())


@dataclass(slots=True)
class Expectation:
    """The rows that the events of a feed lead to, by table, and the sends that the hub has not answered."""

    tables: dict[str, Sums] = field(default_factory=lambda: {name: Sums() for name in TABLES})
    doubtful: int = 0

    def save(self, path: Path) -> None:
        tables = {name: [sums.rows, sums.checksum] for name, sums in self.tables.items()}
        path.write_text(json.dumps({"tables": tables, "doubtful": self.doubtful}), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "Expectation":
        found: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return cls({name: Sums(*sums) for name, sums in found["tables"].items()}, found["doubtful"])


class SummedRecord:
    """The record of a feed of homes: its letters one by one, and sums of the rest."""

    def __init__(self, record: Record, expected: Path) -> None:
        self._record = record
        self._path = expected
        self._expected = Expectation()
        self._outcomes: Counter[str] = Counter()
        self._homes: dict[str, tuple[object, ...]] = {}

    def add(self, minute: Minute[Expected], copies: Copies) -> None:
        """Take a published minute. A send without an answer leaves the number of its copies open."""
        self._expected.doubtful += copies.at_least != copies.at_most
        key = str(minute.partition_key)
        letters = [event for event in minute.events if event.expected.outcome in LETTERS]
        for event in minute.events:
            if event.expected.outcome not in LETTERS:
                self._sum(key, event.expected, copies.at_least)
        if letters:
            self._record.add(Minute(key, letters), copies)

    def complete(self) -> None:
        """Write the sums, and mark the record as complete."""
        homes = self._expected.tables["home"]
        for key, values in self._homes.items():
            homes.add(key, *values)
        self._expected.save(self._path)
        for outcome, count in self._outcomes.items():
            rest: PlannedEvent[Expected] = PlannedEvent(b"", Expected(outcome))
            self._record.add(Minute(None, [rest]), Copies(count, count))
        self._record.complete()

    def _sum(self, key: str, expected: Expected, copies: int) -> None:
        self._outcomes[expected.outcome] += copies
        if expected.kind == REGISTRATION:
            self._homes[key] = (expected.time_zone, expected.armed)
        elif expected.kind is not None:
            _, kind, sensor_id, state, ppm, observed_us, alerts, _, _ = expected
            for _ in range(copies):
                self._expected.tables["sensor_reading"].add(key, sensor_id, kind, state, ppm, observed_us)
                for _ in range(alerts):
                    self._expected.tables["home_alert"].add(key, sensor_id, kind, ppm, observed_us)


def compared(expected: Expectation, found: Mapping[str, Sums]) -> Iterable[str]:
    """Return the differences between the expected and the found rows."""
    if expected.doubtful:
        yield f"record: the hub has not answered {expected.doubtful} sends, so what it holds is not known"
    for name, sums in expected.tables.items():
        if found[name] != sums:
            yield f"{name}: {found[name]} instead of {sums}"
