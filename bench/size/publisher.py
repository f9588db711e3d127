"""`python -m bench.size.publisher ORDER`: publish the story of homes at a pace, or as fast as it is drained, a window
ahead at most.

The gate reads the checkpoints of the store: a partition never has more than WINDOW events that are not accounted for.
Retention keeps more of them, so it never drops an unread event.
"""

import json
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.size.light import LightProducer
from bench.size.published import SummedRecord
from local.feed.businesses import HOMES
from local.feed.feeding import Feed, Gateways, Pace, Progress, Send, feed
from local.feed.homes import HomeScript, HomeShares, home_minutes
from local.feed.planned_events import Minute
from local.feed.publisher import Publisher, Resends, connect
from local.feed.record import Record
from local.stack.app_totals import reading
from local.stack.stack import HUB

WINDOW, RETAINED = 2_000, 3_000  # events of a partition: not accounted for at most, and kept by the hub
LANES, GATHER = 4, 0.5  # sends at the same time, and seconds that a gateway waits for more
LOOK_EVERY = 0.01  # seconds between two looks at the checkpoints while a partition is full
HEARTBEATS, VISIT = 0.2, 4.2  # of the readings: none of them is bad; events of a home at a time
_CHECKPOINTS = "SELECT partition_id, MAX(sequence_number) + 1 FROM event_hub_checkpoint GROUP BY partition_id"

Accounted = Callable[[], Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Order:
    """The events to publish, the share of bad ones, where, and the pace in events a second: None is as fast as they are
    drained. The files are the store and those of the record."""

    connection: str
    events: int
    homes: int
    seed: int
    bad: float
    store: str
    record: str
    expected: str
    pace: int | None = None

    def words(self) -> list[str]:
        """Return the arguments of the command."""
        return [json.dumps(asdict(self))]

    def script(self) -> HomeScript:
        """Return the story: three of four bad events are malformed, and the others of an unknown kind."""
        registrations = min(self.homes, self.events / VISIT) / self.events
        bad = self.bad / (1 - HEARTBEATS) / (1 - registrations)
        shares = HomeShares(malformed=0.75 * bad, unknown_kind=0.25 * bad, duplicate=0.0, late=0.0)
        return HomeScript(self.homes, self.events, self.seed, shares=shares)


class Gate:
    """Gateways whose sends wait until their partition has room in its window."""

    def __init__(
        self, gateways: Gateways, accounted: Accounted, window: int, sleep: Callable[[float], object] = time.sleep
    ) -> None:
        self._gateways, self._accounted, self._window, self._sleep = gateways, accounted, window, sleep
        self._done: Mapping[str, int] = {}
        self._sent = Counter[str]()

    def add(self, minute: Minute[Any]) -> list[Send]:
        """Take a minute, and return the sends that are due when their partitions have room."""
        return self._let(self._gateways.add(minute))

    def rest(self) -> list[Send]:
        """Return the sends that still wait when their partitions have room."""
        return self._let(self._gateways.rest())

    def _let(self, sends: list[Send]) -> list[Send]:
        for send in sends:
            partition = str(send.partition_id)
            self._sent[partition] += send.events
            while self._sent[partition] - self._done.get(partition, 0) > self._window:
                self._done = self._accounted()
                if self._sent[partition] - self._done.get(partition, 0) > self._window:
                    self._sleep(LOOK_EVERY)
        return sends


def accounted_in(store: sqlite3.Connection) -> Accounted:
    """Return a call that reads how many events of each partition are accounted for."""
    return lambda: dict(store.execute(_CHECKPOINTS).fetchall())


def publish(order: Order) -> None:
    """Publish the story, and complete its record."""
    with ExitStack() as opened:
        resends = opened.enter_context(closing(Resends()))
        record = opened.enter_context(closing(Record(Path(order.record), HOMES, order.seed, order.homes)))
        clients = [opened.enter_context(connect(order.connection, HUB)) for _ in range(LANES)]
        gateways = Gateways(clients[0].get_partition_ids(), GATHER)
        progress = Progress(sys.stdout, time.monotonic)
        own = Feed(
            Gate(gateways, accounted_in(opened.enter_context(reading(Path(order.store)))), WINDOW),
            [Publisher(LightProducer(client), _pause, resends).publish for client in clients],
            SummedRecord(record, Path(order.expected)),
            Pace(order.pace, time.monotonic, time.sleep),
            progress,
            lambda: False,
        )
        progress.end(feed(home_minutes(order.script()), own))


def _pause(seconds: float) -> bool:
    time.sleep(seconds)
    return False


if __name__ == "__main__":
    publish(Order(**json.loads(sys.argv[1])))
