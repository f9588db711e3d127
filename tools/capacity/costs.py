"""The costs of a month by part, idle and at a load, with the defaults of infra/main.bicep, and of other choices."""

from dataclasses import dataclass
from math import ceil

from tools.capacity import prices
from tools.capacity.aggregation import Aggregating, Pace
from tools.capacity.limits import DAY, MEMORY_OF_CORE, MINIMUM_MEMORY, STANDARD
from tools.capacity.load import Load
from tools.capacity.prices import EUROPE, HOURS, MILLION, MONTH, SECONDS
from tools.capacity.sizing import Sizing, stored_bytes_per_day
from tools.capacity.telemetry import LETTER_ROUNDS, TIMERS, batches_per_second, total, volume

GB = 1e9
READY = {"ingestAlwaysReady": 1, "durableAlwaysReady": 1, "httpAlwaysReady": 0}  # of infra/main.bicep
RULES = 13  # the alerts of infra/app/alerts.bicep
ENDPOINTS, ZONES = 7, 6  # of infra/app/network.bicep
IDLE_OPERATIONS = 5.0  # a second, assumed: leases, ownership, timers, queues of Durable
REPLICA_CORES, REPLICA_GB = 1, 2  # of infra/app/worker.bicep
MEMORY = 2048  # MB of an instance: `instanceMemoryMB` of infra/main.bicep
SPARK_CORES = 12  # three nodes of four cores, the minimum of a pool
POOL_START, POOL_PAUSE = 4, 5  # minutes: assumed until the nodes run; `autoPause` of infra/app/spark.bicep


@dataclass(frozen=True, slots=True)
class Cost:
    """The costs of one part in dollars of the list, and the arithmetic at the load."""

    part: str
    idle: float
    loaded: float
    arithmetic: str

    def __str__(self) -> str:
        return f"| {self.part} | {_dollars(self.idle)} | {_dollars(self.loaded)} | {self.arithmetic} |"


@dataclass(frozen=True, slots=True)
class Extra:
    """The costs of one choice, in dollars of the list."""

    choice: str
    dollars: float
    arithmetic: str

    def __str__(self) -> str:
        return f"| {self.choice} | {_dollars(self.dollars)} | {self.arithmetic} |"


def costs(sizing: Sizing, partitions: int) -> tuple[Cost, ...]:
    """Return the costs of a load that one Standard hub and one General Purpose database can carry."""
    idle = Load(0.0)
    units, rate = sizing.hub_units, sizing.load.events_per_second
    batches, memory = batches_per_second(sizing.load, partitions), sizing.memory / 1024
    events = rate * SECONDS / MILLION
    parts = (
        Cost(
            "Event Hubs, Standard",
            HOURS * prices.UNIT_HOUR,
            HOURS * prices.UNIT_HOUR * units + events * prices.MILLION_EVENTS,
            f"{units} units x {HOURS} h x {prices.UNIT_HOUR} + {events:,.0f} million events x {prices.MILLION_EVENTS}",
        ),
        Cost(
            "Capture",
            HOURS * prices.CAPTURE_UNIT_HOUR,
            HOURS * prices.CAPTURE_UNIT_HOUR * units,
            f"{units} units x {HOURS} h x {prices.CAPTURE_UNIT_HOUR}: units that were added cost Capture too",
        ),
        _trigger(sizing, batches),
        _durable(memory),
        _timers(memory),
        _database(sizing),
        _logs(volume_of(idle, partitions, 1), volume_of(sizing.load, partitions, sizing.instances)),
        Cost("alerts", RULES * prices.ALERT_RULE, RULES * prices.ALERT_RULE, f"{RULES} rules x {prices.ALERT_RULE}"),
        _storage(sizing.load, batches),
    )
    whole = Cost("**together**", sum(one.idle for one in parts), sum(one.loaded for one in parts), "")
    return (*parts, whole)


def volume_of(load: Load, partitions: int, ingesting: int) -> float:
    """Return the gigabytes of logs of a month."""
    return MONTH * total(volume(load, partitions, ingesting))


def _trigger(sizing: Sizing, batches: float) -> Cost:
    """Return the costs of the trigger: an always-ready instance is active while a batch runs, a second at least."""
    memory = sizing.memory / 1024
    ready = READY["ingestAlwaysReady"] * memory * SECONDS * prices.READY_GB_SECOND
    active = memory * SECONDS * prices.READY_ACTIVE_GB_SECOND * min(1.0, batches)
    others = memory * SECONDS * prices.ON_DEMAND_GB_SECOND * (sizing.instances - 1)
    executions = batches * SECONDS / MILLION
    return Cost(
        "Functions: trigger",
        ready,
        ready + active + others + executions * prices.MILLION_EXECUTIONS,
        f"{memory:g} GB always ready, busy all the time; {sizing.instances - 1} on demand;"
        f" {executions:,.0f} million executions x {prices.MILLION_EXECUTIONS}",
    )


def _durable(memory: float) -> Cost:
    """Return the costs of Durable, on an instance of its own."""
    instances = READY["durableAlwaysReady"]
    seconds = SECONDS / LETTER_ROUNDS
    active = memory * seconds * prices.READY_ACTIVE_GB_SECOND
    dollars = instances * memory * SECONDS * prices.READY_GB_SECOND + active
    text = f"{instances} instance of {memory:g} GB always ready; {seconds:,.0f} executions of 1 s; idle too"
    return Cost("Functions: Durable", dollars, dollars, text)


def _timers(memory: float) -> Cost:
    seconds = sum(SECONDS / every for every in TIMERS.values())
    paid = max(0.0, memory * seconds - prices.FREE_GB_SECONDS)
    dollars = paid * prices.ON_DEMAND_GB_SECOND
    dollars += max(0.0, seconds - prices.FREE_EXECUTIONS) / MILLION * prices.MILLION_EXECUTIONS
    text = f"{seconds:,.0f} executions of 1 s x {memory:g} GB, less the free grant; idle too"
    return Cost("Functions: timers", dollars, dollars, text)


def _database(sizing: Sizing) -> Cost:
    """Return the costs of the database: idle its minimum; at the load at most all its cores, and a month of rows."""
    cores = sizing.database.v_cores
    least = 0.5 if cores <= 4 else (cores + 7) // 8  # `minCapacity` of infra/app/sql.bicep
    least = max(least, MINIMUM_MEMORY.get(cores, 0.0) / MEMORY_OF_CORE)
    rows = stored_bytes_per_day(sizing.load) * MONTH / GB
    return Cost(
        "Azure SQL, serverless",
        HOURS * least * prices.VCORE_HOUR,
        HOURS * cores * prices.VCORE_HOUR + rows * prices.SQL_GB,
        f"at most {cores} vCores (idle {least:.3f}, by its memory) x {HOURS} h x {prices.VCORE_HOUR}"
        f" + {rows:,.0f} GB after a month x {prices.SQL_GB}",
    )


def _paid(gigabytes: float) -> float:
    return max(0.0, gigabytes - prices.FREE_LOG_GB) * prices.LOG_GB


def _logs(idle: float, loaded: float) -> Cost:
    text = f"({loaded:,.1f} GB - {prices.FREE_LOG_GB:g} GB free) x {prices.LOG_GB}"
    return Cost("Application Insights", _paid(idle), _paid(loaded), text)


def _storage(load: Load, batches: float) -> Cost:
    def operations(a_second: float) -> float:
        return a_second * SECONDS / 10_000 * prices.TEN_THOUSAND_OPERATIONS

    captured = load.events_per_second * load.event_bytes * SECONDS / GB
    checkpoints = batches * SECONDS / MILLION
    return Cost(
        "storage",
        operations(IDLE_OPERATIONS),
        operations(IDLE_OPERATIONS + batches) + captured * prices.LAKE_GB,
        f"{checkpoints:,.0f} million host checkpoints + {captured:,.0f} GB of Capture after a month x {prices.LAKE_GB}",
    )


def dev(partitions: int) -> tuple[Extra, ...]:
    """Return the costs of an idle month with PROFILE=dev: no Capture, no alert, no instance that is always ready."""
    memory, rounds = MEMORY / 1024, SECONDS / LETTER_ROUNDS
    gigabytes = volume_of(Load(0.0), partitions, 1)
    timers = _timers(memory)
    operations = IDLE_OPERATIONS * SECONDS / 10_000
    parts = (
        Extra("Event Hubs, Standard", HOURS * prices.UNIT_HOUR, f"1 unit x {HOURS} h x {prices.UNIT_HOUR}"),
        Extra("Azure SQL, S0", HOURS * prices.S0_HOUR, f"{HOURS} h x {prices.S0_HOUR}, 250 GB included"),
        Extra(
            "Functions: Durable",
            memory * rounds * prices.ON_DEMAND_GB_SECOND,
            f"{rounds:,.0f} executions of 1 s x {memory:g} GB x {prices.ON_DEMAND_GB_SECOND:f}",
        ),
        Extra(timers.part, timers.idle, timers.arithmetic.removesuffix("; idle too")),
        Extra(
            "Application Insights",
            _paid(gigabytes),
            f"({gigabytes:,.1f} GB - {prices.FREE_LOG_GB:g} GB free) x {prices.LOG_GB}",
        ),
        Extra(
            "storage",
            operations * prices.TEN_THOUSAND_OPERATIONS,
            f"{operations:,.0f} x 10,000 operations x {prices.TEN_THOUSAND_OPERATIONS}",
        ),
    )
    return (*parts, Extra("**together**", sum(one.dollars for one in parts), ""))


def dev_report(partitions: int) -> str:
    """Return the table of an idle month with PROFILE=dev."""
    return "\n".join(["| part, `PROFILE=dev` | idle month | arithmetic |", "|---|---|---|", *map(str, dev(partitions))])


def extras(sizing: Sizing) -> tuple[Extra, ...]:
    """Return the costs of choices that differ from the defaults."""
    memory = sizing.memory / 1024
    ready = memory * SECONDS * prices.READY_GB_SECOND
    network = ENDPOINTS * HOURS * prices.ENDPOINT_HOUR + ZONES * prices.DNS_ZONE
    cores = sizing.database.v_cores
    unit = HOURS * (prices.UNIT_HOUR + prices.CAPTURE_UNIT_HOUR)
    return (
        *(_spark(sizing.load, minutes) for minutes in (5, 20, 60)),
        Extra(
            "`VNET_ENABLED`",
            network,
            f"{ENDPOINTS} private endpoints x {HOURS} h x {prices.ENDPOINT_HOUR} + {ZONES} DNS zones, without traffic",
        ),
        Extra(
            "`sqlCompute` provisioned, instead of serverless",
            cores * HOURS * prices.PROVISIONED_VCORE_HOUR,
            f"{cores} vCores x {HOURS} h x {prices.PROVISIONED_VCORE_HOUR}, idle too, without the rows",
        ),
        Extra("one always-ready instance more", ready, f"{memory:g} GB x {SECONDS:,} s x {prices.READY_GB_SECOND:f}"),
        _replica("busy", prices.VCPU_SECOND),
        _replica("idle", prices.IDLE_VCPU_SECOND),
        Extra(
            "one throughput unit more", unit, f"{HOURS} h x ({prices.UNIT_HOUR} + Capture {prices.CAPTURE_UNIT_HOUR})"
        ),
    )


def _replica(state: str, price: float) -> Extra:
    """Return the costs of a replica of the worker that is in one state all the time."""
    dollars = SECONDS * (REPLICA_CORES * price + REPLICA_GB * prices.GIB_SECOND)
    text = f"{SECONDS:,} s x ({REPLICA_CORES} vCPU x {price:f} + {REPLICA_GB} GiB x {prices.GIB_SECOND:f})"
    return Extra(f"one replica of the worker, {state}", dollars, text)


def _spark(load: Load, minutes: int) -> Extra:
    """Return the costs of a pool that runs from the start of a job until it has been idle for its pause."""
    job = Aggregating(load.events_per_second * DAY, Pace(interval=60 * minutes)).job_seconds / 60
    busy = min(float(minutes), POOL_START + job + POOL_PAUSE)
    dollars = SPARK_CORES * HOURS * prices.SPARK_VCORE_HOUR * busy / minutes
    state = "never pauses" if busy == minutes else f"runs {busy:.0f} of {minutes} minutes"
    text = (
        f"{SPARK_CORES} vCores x {HOURS} h x {prices.SPARK_VCORE_HOUR}; the pool {state}; lag to {2 * minutes} minutes"
    )
    return Extra(f"Synapse, every {minutes} minutes", dollars, text)


def costs_report(sizing: Sizing, partitions: int) -> str:
    """Return both tables, or a sentence when this program does not know the price of a part."""
    if sizing.shards > 1 or sizing.hub_tier is not STANDARD or sizing.database.tier != "GeneralPurpose":
        return "costs: this program has prices of Standard hubs and General Purpose databases only"
    rate = f"{sizing.load.events_per_second:,.0f} events/s"
    lines = [f"| part | idle | {rate} | arithmetic at the load |", "|---|---|---|---|"]
    lines += [str(one) for one in costs(sizing, partitions)]
    lines += ["", "| choice | a month | arithmetic |", "|---|---|---|"]
    lines += [str(one) for one in extras(sizing)]
    return "\n".join(lines)


def _dollars(amount: float) -> str:
    """Return an amount of a European region, rounded up to a dollar."""
    return f"{ceil(amount * EUROPE):,} $"
