"""The volume of telemetry that a load gives in a day, by kind, and the share of the daily cap at which an alert fires.

Sizes are bytes as sent. The bill is a quarter less on average (learn.microsoft.com/azure/azure-monitor/logs/cost-logs).
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from core.measured import GAUGES
from tools.capacity.limits import DAY, GB
from tools.capacity.sizing import Load, Sizing

MINUTES = DAY / 60
FULL_BATCH = 100  # `minEventBatchSize` of host.json: a partition gives a smaller batch after `maxWaitTime`, one second
ALERT_SHARE = 0.8  # of the daily cap
_SETTINGS = json.loads((Path(__file__).parents[2] / "infra" / "settings.json").read_text(encoding="utf-8"))
OWN_LINES = int(_SETTINGS["BATCH_LINES_PER_MINUTE"])  # of batches, a minute and process: what the deployment sets

# The measured sizes of records of azure-monitor-opentelemetry 1.8, with the longest values of Azure. A test measures
# both again.
LINE_BYTES = 1_100
METRIC_BYTES, WORKER_METRICS = 620, 8  # counters of each worker process
METRIC_SECONDS = 300  # between two exports of a worker: OTEL_METRIC_EXPORT_INTERVAL in infra/app/function.bicep

OWN_METRIC_BYTES = 750  # a gauge of the watch

# Assumed, from the source of the Functions host: its metrics of ASP.NET, runtime and process, once a minute; and a
# request with its trigger.
HOST_METRICS = 40
REQUEST_BYTES, REQUEST_ITEMS = 1_500, 2
OTHER_LINES = 3  # a minute: the watch, letters, aggregation
DIAGNOSTIC_BYTES = 20e6  # of hub, database and storage in a day
REQUESTS_PER_SECOND = 0.1  # OTEL_TRACES_SAMPLER_ARG of a process in infra/app/function.bicep


# Seconds between two runs of each timer (infra/settings.json, handlers/), and of two executions of Durable: a look for
# letters is two of them. Flex gives each of these instances of its own.
TIMERS = {
    "aggregate": 300,
    "heal_gaps": 60,
    "maintain_lake": DAY,
    "watch": 60,
    "watch_dead_letters": 60,
    "watch_tasks": 60,
}
LETTER_ROUNDS = 30
OTHER_PROCESSES = len(TIMERS) + 1


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of telemetry: how many items a day, and the bytes of one."""

    name: str
    items: float
    size: float

    @property
    def gigabytes(self) -> float:
        return self.items * self.size / GB

    def __str__(self) -> str:
        return f"{self.name}: {self.items:,.0f} x {self.size:,.0f} B = {self.gigabytes:,.3f} GB"


def batches_per_second(load: Load, partitions: int) -> float:
    """Return the batches of all partitions: one a second while a second brings a partition less than a full batch."""
    each = load.events_per_second / partitions
    return partitions * max(min(each, 1.0), each / FULL_BATCH)


def volume(load: Load, partitions: int, ingesting: int) -> tuple[Kind, ...]:
    """Return the telemetry of a day, with so many instances of the trigger, and the most lines of batches."""
    per_minute = 60 * batches_per_second(load, partitions)
    own = min(per_minute, 2 * OWN_LINES * ingesting)
    sums = partitions if per_minute > OWN_LINES * ingesting else 0
    processes, exports = ingesting + OTHER_PROCESSES, DAY / METRIC_SECONDS
    return (
        Kind("lines of batches", MINUTES * (own + sums), LINE_BYTES),
        Kind("other lines", MINUTES * OTHER_LINES, LINE_BYTES),
        Kind("requests", DAY * requests_per_second(load, partitions, ingesting) * REQUEST_ITEMS, REQUEST_BYTES),
        Kind("metrics of the host", MINUTES * processes * HOST_METRICS, METRIC_BYTES),
        Kind("metrics of workers", exports * processes * WORKER_METRICS, METRIC_BYTES),
        Kind("metrics of the app", exports * len(GAUGES), OWN_METRIC_BYTES),
        Kind("diagnostic logs", 1, DIAGNOSTIC_BYTES),
    )


def requests_per_second(load: Load, partitions: int, ingesting: int) -> float:
    """Return the requests that the sampler of each process lets pass."""
    trigger = min(batches_per_second(load, partitions), REQUESTS_PER_SECOND * ingesting)
    others = [min(1 / every, REQUESTS_PER_SECOND) for every in (*TIMERS.values(), LETTER_ROUNDS)]
    return trigger + sum(others)


def total(kinds: Iterable[Kind]) -> float:
    """Return the gigabytes of all kinds."""
    return sum(kind.gigabytes for kind in kinds)


def telemetry_report(sizing: Sizing, partitions: int) -> str:
    """Return the telemetry of a day as text, with the arithmetic."""
    load = replace(sizing.load, events_per_second=sizing.load.events_per_second / sizing.shards)
    kinds = volume(load, partitions, sizing.instances)
    each = f" of each of {sizing.shards} shards" if sizing.shards > 1 else ""
    lines = [f"telemetry a day{each}, {partitions} partitions, instances of the trigger: {sizing.instances}"]
    lines += [f"  {kind}" for kind in kinds]
    lines.append(f"  all: {total(kinds):,.2f} GB; the daily cap must be above {total(kinds) / ALERT_SHARE:,.2f} GB")
    return "\n".join(lines)
