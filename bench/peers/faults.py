"""The same faults for every consumer: three kills, poison, and in each partition a lost and a repeated delivery."""

import json
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from bench.peers.recounted import Recounted, published, recounted
from bench.peers.run import HOST, OURS, Bench, Consumer
from bench.peers.watching import has_read, rows_of
from local.demo.chaos import SETTINGS, counted
from local.stack.processes import Child

SHARES = (0.1, 0.35, 0.6)  # of the rows, at which a kill is due
DELAY = 0.05  # seconds: the longest pause until the kill, so that it hits any point of a batch
FULL, SHORT = 3.0, 30.0  # seconds without a new row: the end, where all was read, and where it was not
HEALED = 150.0  # the same for ours: the worker looks once a minute for a lost batch that no later one has shown
LONGEST = 300.0  # seconds
LOOK = 0.005  # seconds


@dataclass(frozen=True, slots=True)
class Suffered:
    """The rows and letters that a consumer lost and doubled: by kills, and by lost and repeated deliveries.

    `lost_events` and `repeated_events` count the events of those deliveries. They are None for the Functions host,
    which counts batches. `poison` is the number of bad events that were published.
    """

    poison: int
    kills: Recounted
    deliveries: Recounted
    lost_events: int | None
    repeated_events: int | None


def suffer(bench: Bench, kind: str, hub: str, seed: int) -> Suffered:
    """Put a consumer through both trials on the events of a hub."""
    kills = _killed(bench, bench.consumer(kind, hub), Random(f"{kind} {seed}"))
    consumer = bench.consumer(kind, hub)
    deliveries, struck = (_struck_host if kind == HOST else _struck)(bench, consumer)
    poison = published(bench.record(hub)).poison
    return Suffered(poison, kills, deliveries, struck.get("lost"), struck.get("twice"))


def _killed(bench: Bench, consumer: Consumer, chance: Random) -> Recounted:
    expected, count = published(bench.record(consumer.hub)).rows, rows_of(consumer)
    child = bench.start(consumer)
    for share in SHARES:
        _wait(count, share * expected, child)
        time.sleep(DELAY * chance.random())
        child.kill()
        child = bench.start(consumer)
    return _ended(bench, consumer, child)


def _struck(bench: Bench, consumer: Consumer) -> tuple[Recounted, dict[str, int]]:
    noted = consumer.folder / "struck"
    child = bench.start(consumer, PEERS_FAULTS=str(noted), **SETTINGS)
    found = _ended(bench, consumer, child)
    struck = Counter[str]()
    for line in noted.read_text(encoding="utf-8").splitlines():
        name, number = line.split()
        struck[name] += int(number)
    return found, dict(struck)


def _struck_host(bench: Bench, consumer: Consumer) -> tuple[Recounted, dict[str, int]]:
    """Have the host lose the first batch of each partition, and deliver the last one again at the end."""
    child = bench.start(consumer, **SETTINGS)
    address = child.output.read_text(encoding="utf-8").rstrip().rpartition(" ")[2].rstrip("/")
    _order(address, "skip")
    _settle(bench, consumer, child)
    _order(address, "redeliver")
    found = _ended(bench, consumer, child)
    if not counted([consumer.folder / "host.log"])["batch_skipped"]:
        raise RuntimeError("the host lost no batch: it had received all before the order arrived")
    return found, {}


def _order(address: str, fault: str) -> None:
    order, headers = json.dumps({fault: 1}).encode(), {"Content-Type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(f"{address}/admin/faults", order, headers), timeout=30).close()


def _ended(bench: Bench, consumer: Consumer, child: Child) -> Recounted:
    _settle(bench, consumer, child)
    child.end()
    return recounted(consumer, bench.record(consumer.hub))


def _settle(bench: Bench, consumer: Consumer, child: Child) -> None:
    """Return when nothing is written any more. A consumer that has not read all yet gets more time."""
    last, count = bench.ends(consumer.hub), rows_of(consumer)
    seen, at, ends = -1, time.monotonic(), time.monotonic() + LONGEST
    while time.monotonic() < ends:
        child.refuse_dead()
        now = count()
        if now != seen:
            seen, at = now, time.monotonic()
        short = HEALED if consumer.kind in OURS else SHORT
        if time.monotonic() - at > (FULL if has_read(consumer, last) else short):
            return
        time.sleep(0.1)


def _wait(count: Callable[[], int], due: float, child: Child) -> None:
    ends = time.monotonic() + LONGEST
    while count() < due and time.monotonic() < ends:
        child.refuse_dead()
        time.sleep(LOOK)
