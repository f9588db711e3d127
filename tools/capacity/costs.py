"""The costs of a month by part, idle and at a load, with the defaults of infra/main.bicep, and of other choices."""

from dataclasses import dataclass, replace
from math import ceil

from tools.capacity import prices
from tools.capacity.aggregation import Aggregating, Pace
from tools.capacity.limits import DAY, GB, MEMORY_OF_CORE, MINIMUM_MEMORY, STANDARD
from tools.capacity.prices import EUROPE, HOURS, MILLION, MONTH, SECONDS
from tools.capacity.sizing import Load, Sizing, size, stored_bytes_per_day
from tools.capacity.telemetry import LETTER_ROUNDS, TIMERS, batches_per_second, total, volume

RULES = 14  # the alerts of infra/app/alerts.bicep
ENDPOINTS, ZONES = 7, 6  # of infra/app/network.bicep
IDLE_OPERATIONS = 5.0  # a second, assumed: leases, ownership, timers, queues of Durable
REPLICA_CORES, REPLICA_GB = 1, 2  # of infra/app/worker.bicep
SPARK_CORES = 12  # three nodes of four cores, the minimum of a pool
POOL_START, POOL_PAUSE = 4, 5  # minutes: assumed until the nodes run; `autoPause` of infra/app/spark.bicep


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile of infra/main.bicep: its always-ready instances, its alerts, and whether it has Capture."""

    ingest: int
    durable: int
    rules: int
    captures: bool
    on_s0: bool  # the database; the other one is serverless


STANDARD_PROFILE, DEV_PROFILE = Profile(1, 1, RULES, True, False), Profile(0, 0, 0, False, True)


@dataclass(frozen=True, slots=True)
class Cost:
    """The costs of one part or choice in a month, in dollars of the list, and the arithmetic."""

    part: str
    dollars: float
    arithmetic: str

    def __str__(self) -> str:
        return f"| {self.part} | {_dollars(self.dollars)} | {self.arithmetic} |"


def bill(profile: Profile, sizing: Sizing, partitions: int) -> tuple[Cost, ...]:
    """Return the parts that cost anything, for a load that one Standard hub and one database can carry, and the sum."""
    batches = batches_per_second(sizing.load, partitions)
    gigabytes = MONTH * total(volume(sizing.load, partitions, sizing.instances))
    logs = f"({gigabytes:,.1f} GB - {prices.FREE_LOG_GB:g} GB free) x {prices.LOG_GB}"
    parts = (
        _hub(sizing),
        _capture(sizing) if profile.captures else None,
        _trigger(sizing, batches) if profile.ingest else None,
        _durable(profile, sizing),
        _timers(sizing),
        _database(profile, sizing),
        Cost("Application Insights", max(0.0, gigabytes - prices.FREE_LOG_GB) * prices.LOG_GB, logs),
        Cost("alerts", profile.rules * prices.ALERT_RULE, f"{profile.rules} rules x {prices.ALERT_RULE}"),
        _storage(sizing.load, batches),
    )
    paid = [one for one in parts if one is not None and one.dollars]
    return (*paid, Cost("**together**", sum(one.dollars for one in paid), ""))


def at_rest(sizing: Sizing) -> Sizing:
    """Return the sizing of the same environment in an idle month."""
    return replace(sizing, load=replace(sizing.load, events_per_second=0.0), hub_units=1, instances=1)


def _hub(sizing: Sizing) -> Cost:
    units, events = sizing.hub_units, sizing.load.events_per_second * SECONDS / MILLION
    return Cost(
        "Event Hubs, Standard",
        HOURS * prices.UNIT_HOUR * units + events * prices.MILLION_EVENTS,
        f"{units} units x {HOURS} h x {prices.UNIT_HOUR} + {events:,.0f} million events x {prices.MILLION_EVENTS}",
    )


def _capture(sizing: Sizing) -> Cost:
    units = sizing.hub_units
    text = f"{units} units x {HOURS} h x {prices.CAPTURE_UNIT_HOUR}: units that were added cost Capture too"
    return Cost("Capture", HOURS * prices.CAPTURE_UNIT_HOUR * units, text)


def _trigger(sizing: Sizing, batches: float) -> Cost:
    """Return the costs of one always-ready instance, active while a batch runs, a second at least, and of others."""
    seconds, others, executions = _memory(sizing) * SECONDS, sizing.instances - 1, batches * SECONDS / MILLION
    ready = seconds * (prices.READY_GB_SECOND + prices.READY_ACTIVE_GB_SECOND * min(1.0, batches))
    return Cost(
        "Functions: trigger",
        ready + seconds * prices.ON_DEMAND_GB_SECOND * others + executions * prices.MILLION_EXECUTIONS,
        f"{_memory(sizing):g} GB always ready, busy all the time; {others} on demand;"
        f" {executions:,.0f} million executions x {prices.MILLION_EXECUTIONS}",
    )


def _durable(profile: Profile, sizing: Sizing) -> Cost:
    """Return the costs of Durable, on an instance of its own."""
    memory, seconds = _memory(sizing), SECONDS / LETTER_ROUNDS
    price = prices.READY_ACTIVE_GB_SECOND if profile.durable else prices.ON_DEMAND_GB_SECOND
    dollars = memory * (profile.durable * SECONDS * prices.READY_GB_SECOND + seconds * price)
    text = f"always ready: {profile.durable}; {seconds:,.0f} executions of 1 s x {memory:g} GB x {price:f}"
    return Cost("Functions: Durable", dollars, text)


def _timers(sizing: Sizing) -> Cost:
    memory, seconds = _memory(sizing), sum(SECONDS / every for every in TIMERS.values())
    dollars = max(0.0, memory * seconds - prices.FREE_GB_SECONDS) * prices.ON_DEMAND_GB_SECOND
    dollars += max(0.0, seconds - prices.FREE_EXECUTIONS) / MILLION * prices.MILLION_EXECUTIONS
    text = f"{seconds:,.0f} executions of 1 s x {memory:g} GB, less the free grant"
    return Cost("Functions: timers", dollars, text)


def _database(profile: Profile, sizing: Sizing) -> Cost:
    """Return the costs of the database: idle at its minimum, and under load with all its cores and a month of rows."""
    if profile.on_s0:
        return Cost("Azure SQL, S0", HOURS * prices.S0_HOUR, f"{HOURS} h x {prices.S0_HOUR}, 250 GB included")
    cores = sizing.database.v_cores
    least = 0.5 if cores <= 4 else (cores + 7) // 8  # `minCapacity` of infra/app/sql.bicep
    least = max(least, MINIMUM_MEMORY.get(cores, 0.0) / MEMORY_OF_CORE)
    rows = stored_bytes_per_day(sizing.load) * MONTH / GB
    return Cost(
        "Azure SQL, serverless",
        HOURS * (cores if rows else least) * prices.VCORE_HOUR + rows * prices.SQL_GB,
        f"at most {cores} vCores (idle {least:.3f}, by its memory) x {HOURS} h x {prices.VCORE_HOUR}"
        f" + {rows:,.0f} GB after a month x {prices.SQL_GB}",
    )


def _storage(load: Load, batches: float) -> Cost:
    captured = load.events_per_second * load.event_bytes * SECONDS / GB
    operations = (IDLE_OPERATIONS + batches) * SECONDS / 10_000
    return Cost(
        "storage",
        operations * prices.TEN_THOUSAND_OPERATIONS + captured * prices.LAKE_GB,
        f"{operations:,.0f} x 10,000 operations x {prices.TEN_THOUSAND_OPERATIONS}"
        f" + {captured:,.0f} GB of Capture after a month x {prices.LAKE_GB}",
    )


def _memory(sizing: Sizing) -> float:
    """Return the memory of an instance in GB."""
    return sizing.memory / 1024


def dev_report(partitions: int) -> str:
    """Return the table of an idle month with PROFILE=dev."""
    lines = ["| part, `PROFILE=dev` | idle month | arithmetic |", "|---|---|---|"]
    return "\n".join([*lines, *map(str, bill(DEV_PROFILE, at_rest(size(Load(1.0))), partitions))])


def extras(sizing: Sizing) -> tuple[Cost, ...]:
    """Return the costs of choices that differ from the defaults."""
    memory = _memory(sizing)
    ready = memory * SECONDS * prices.READY_GB_SECOND
    network = ENDPOINTS * HOURS * prices.ENDPOINT_HOUR + ZONES * prices.DNS_ZONE
    cores = sizing.database.v_cores
    unit = HOURS * (prices.UNIT_HOUR + prices.CAPTURE_UNIT_HOUR)
    return (
        *(_spark(sizing.load, minutes) for minutes in (5, 20, 60)),
        Cost(
            "`VNET_ENABLED`",
            network,
            f"{ENDPOINTS} private endpoints x {HOURS} h x {prices.ENDPOINT_HOUR} + {ZONES} DNS zones, without traffic",
        ),
        Cost(
            "`sqlCompute` provisioned, instead of serverless",
            cores * HOURS * prices.PROVISIONED_VCORE_HOUR,
            f"{cores} vCores x {HOURS} h x {prices.PROVISIONED_VCORE_HOUR}, idle too, without the rows",
        ),
        Cost("one always-ready instance more", ready, f"{memory:g} GB x {SECONDS:,} s x {prices.READY_GB_SECOND:f}"),
        _replica("busy", prices.VCPU_SECOND),
        _replica("idle", prices.IDLE_VCPU_SECOND),
        Cost(
            "one throughput unit more", unit, f"{HOURS} h x ({prices.UNIT_HOUR} + Capture {prices.CAPTURE_UNIT_HOUR})"
        ),
    )


def _replica(state: str, price: float) -> Cost:
    """Return the costs of a replica of the worker that is in one state all the time."""
    dollars = SECONDS * (REPLICA_CORES * price + REPLICA_GB * prices.GIB_SECOND)
    text = f"{SECONDS:,} s x ({REPLICA_CORES} vCPU x {price:f} + {REPLICA_GB} GiB x {prices.GIB_SECOND:f})"
    return Cost(f"one replica of the worker, {state}", dollars, text)


def _spark(load: Load, minutes: int) -> Cost:
    """Return the costs of a pool that runs from the start of a job until it has been idle for its pause."""
    job = Aggregating(load.events_per_second * DAY, Pace(interval=60 * minutes)).job_seconds / 60
    busy = min(float(minutes), POOL_START + job + POOL_PAUSE)
    dollars = SPARK_CORES * HOURS * prices.SPARK_VCORE_HOUR * busy / minutes
    state = "never pauses" if busy == minutes else f"runs {busy:.0f} of {minutes} minutes"
    text = (
        f"{SPARK_CORES} vCores x {HOURS} h x {prices.SPARK_VCORE_HOUR}; the pool {state}; lag to {2 * minutes} minutes"
    )
    return Cost(f"Synapse, every {minutes} minutes", dollars, text)


def costs_report(sizing: Sizing, partitions: int) -> str:
    """Return both tables, or a sentence when this program does not know the price of a part."""
    if sizing.shards > 1 or sizing.hub_tier is not STANDARD or sizing.database.tier != "GeneralPurpose":
        return "costs: this program has prices of Standard hubs and General Purpose databases only"
    rate = f"{sizing.load.events_per_second:,.0f} events/s"
    lines = [f"| part | idle | {rate} | arithmetic at the load |", "|---|---|---|---|"]
    parts = [bill(STANDARD_PROFILE, each, partitions) for each in (at_rest(sizing), sizing)]
    for idle, one in zip(*parts, strict=True):
        lines.append(f"| {one.part} | {_dollars(idle.dollars)} | {_dollars(one.dollars)} | {one.arithmetic} |")
    lines += ["", "| choice | a month | arithmetic |", "|---|---|---|"]
    lines += [str(one) for one in extras(sizing)]
    return "\n".join(lines)


def _dollars(amount: float) -> str:
    """Return an amount of a European region, rounded up to a dollar."""
    return f"{ceil(amount * EUROPE):,} $"
