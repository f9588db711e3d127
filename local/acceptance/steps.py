"""The steps of an acceptance, one after the other, over HTTP, AMQP and the file of the store, on any host."""

import http.client
import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from local.acceptance.hosts import AnyHost
from local.demo.aggregation import Range, replay
from local.demo.operator import NotDone, open_task
from local.feed.businesses import HOMES
from local.feed.record import published_copies
from local.recount.recount import recount
from local.stack.app_totals import (
    BooksUnavailable,
    count_accounted,
    count_letters,
    count_open_letters,
    get,
    reading,
    select,
)
from local.stack.processes import Child, ChildFailed, Pause

LOOK = 1.0  # seconds
REASON = "the demo of a whole host gives it up"  # the recount knows the words of a demo
NO_ANSWER = (BooksUnavailable, OSError, http.client.HTTPException, ValueError)

# The body of the event that the trigger cannot deliver: a JSON text, as no other body is.
_IS_TEXT = "substr(body, 1, 1) = CAST('\"' AS BLOB)"
# The partition with the most rows and no event that kills, is refused or cannot be delivered.
_RANGE = f"""
SELECT partition_id, MIN(first_sequence_number), MAX(last_sequence_number), SUM(written) FROM batch_ledger
WHERE kind = 'batch' AND partition_id NOT IN (
    SELECT partition_id FROM event_hub_dead_letter WHERE error_class IN ('crash', 'refused') OR {_IS_TEXT}
) GROUP BY partition_id ORDER BY 4 DESC LIMIT 1
"""
_KILLED = "SELECT COUNT(*) FROM event_hub_dead_letter WHERE error_class = 'crash' AND status = 'exhausted'"
_UNDELIVERABLE = f"SELECT COUNT(*) FROM event_hub_dead_letter WHERE {_IS_TEXT}"


class StepFailed(Exception):
    """A step did not reach its end. The message names the step and its last state."""

    def __init__(self, step: str, why: object) -> None:
        super().__init__(f"step {step!r} failed: {why}")


@dataclass(frozen=True, slots=True)
class Target:
    """The system under test: its host, the connection string of its hub, and the file of its store."""

    host: AnyHost
    connection: str
    store: Path


@dataclass(slots=True)
class Acceptance:
    """The steps over a target. A step fails when nothing changes for `patience` seconds."""

    target: Target
    record: Path
    pause: Pause
    patience: float
    undeliverable: bool = True
    figures: dict[str, object] = field(default_factory=dict)

    def run(self, start_feed: Callable[[], Child]) -> dict[str, object]:
        """Take every step, and return the figures. Raises StepFailed at the first one that fails."""
        feed = start_feed()
        seconds: dict[str, float] = {}
        for name, step in self._steps(feed):
            began = time.monotonic()
            try:
                step(name)
            except (ChildFailed, NotDone, *NO_ANSWER, sqlite3.Error) as error:
                raise StepFailed(name, error) from error
            seconds[name] = round(time.monotonic() - began, 1)
            print(f"step {name!r} is done after {seconds[name]:g} s", flush=True)
        return {**self.figures, "seconds": seconds}

    def _steps(self, feed: Child) -> Iterator[tuple[str, Callable[[str], None]]]:
        yield "publish", lambda _: feed.wait_done(self.pause)
        yield "account for every event", self._account
        if self.undeliverable:
            yield "read what the trigger cannot deliver", lambda name: self._until_one(name, _UNDELIVERABLE)
        yield "set the event that kills aside", lambda name: self._until_one(name, _KILLED)
        yield "redrive", self._redrive
        yield "replay", self._replay
        yield "recount", self._recount

    def _account(self, name: str) -> None:
        published = published_copies(self.record).at_least
        self.figures["published"] = published
        store = self.target.store
        self._until(name, lambda: (count_accounted(store), count_letters(store)), lambda seen: seen[0] >= published)

    def _until_one(self, name: str, query: str) -> None:
        self._until(name, lambda: select(self.target.store, query)[0][0], lambda found: found == 1)

    def _redrive(self, name: str) -> None:
        """Discard the letters whose rows the database refuses, and wait until no letter is open.

        One that is being tried at this moment is left, and the next job moves it.
        """
        moved = 0

        def look() -> tuple[int, int]:
            nonlocal moved
            moved += self._discarded()
            return moved, count_open_letters(self.target.store)[0]

        self._until(name, look, lambda seen: seen[0] > 0 and seen[1] == 0)
        self.figures["redriven"] = moved

    def _discarded(self) -> int:
        """Run one job over the refused letters, and return how many it moved."""
        chosen = {"error_class": "refused", "status": "waiting"}
        count = self._get(f"/api/dead-letters/preview?{urlencode({'move': 'discard', **chosen})}")["count"]
        if not count:
            return 0
        order = {"move": "discard", "filter": chosen, "expected_count": count, "reason": REASON}
        code, job = open_task(self.target.host.address, "redrive", order)
        if code != 201:  # a letter was tried in between
            return 0
        path = f"/api/tasks/{job['task_id']}"
        ended = self._until("redrive", lambda: self._get(path), lambda seen: seen["status"] == "done")
        return int(ended["moved"])

    def _replay(self, _: str) -> None:
        with reading(self.target.store) as connection:
            chosen = Range(*connection.execute(_RANGE).fetchone())
        self.figures["replayed"] = chosen.last - chosen.first + 1
        replay(self.target.host, chosen, self.pause, lambda line: print(line, flush=True))

    def _recount(self, name: str) -> None:
        if differences := recount(self.target.store, self.record, HOMES):
            raise StepFailed(name, "; ".join(differences))

    def _get(self, path: str) -> Any:
        return json.loads(get(self.target.host.address, path))

    def _until(self, name: str, look: Callable[[], Any], holds: Callable[[Any], bool]) -> Any:
        """Look until a condition holds. Raises StepFailed when nothing new was seen for too long."""
        seen: Any = None
        why: object = "nothing was seen"
        moved_at = time.monotonic()
        while True:
            self.target.host.refuse_dead()
            try:
                now = look()
            except NO_ANSWER as error:
                now, why = seen, error
            if now != seen:
                seen, why, moved_at = now, now, time.monotonic()
                if holds(seen):
                    return seen
            if time.monotonic() - moved_at > self.patience:
                raise StepFailed(name, f"nothing new in {self.patience:g} s: {why}")
            self.pause(LOOK)
