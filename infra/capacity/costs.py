"""The costs of a month by part, idle and at a load, for the defaults of infra/main.bicep; and of the choices beside."""

from dataclasses import dataclass
from math import ceil

from infra.capacity import prices
from infra.capacity.aggregation import Aggregating, Pace
from infra.capacity.limits import DAY, STANDARD
from infra.capacity.load import Load
from infra.capacity.prices import EUROPE, HOURS, MILLION, MONTH, SECONDS
from infra.capacity.sizing import Sizing, stored_bytes_per_day
from infra.capacity.telemetry import LETTER_ROUNDS, TIMERS, batches_per_second, total, volume

GB = 1e9
INSTANCE_GB = 2  # `instanceMemoryMB` of infra/main.bicep
READY = {"ingestAlwaysReady": 1, "durableAlwaysReady": 1, "httpAlwaysReady": 0}  # of infra/main.bicep
RULES = 12  # the alerts of infra/app/alerts.bicep
ENDPOINTS, ZONES = 7, 6  # of infra/app/network.bicep
IDLE_OPERATIONS = 5.0  # a second, assumed: leases, ownership, timers, queues of Durable
SPARK_CORES = 12  # three nodes of four cores, the least of a pool
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
    """Return the costs of a load that one Standard hub and one General Purpose database bear."""
    idle = Load(0.0)
    units, rate = sizing.hub_units, sizing.load.events_per_second
    batches = batches_per_second(sizing.load, partitions)
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
        _durable(),
        _timers(),
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
    ready = READY["ingestAlwaysReady"] * INSTANCE_GB * SECONDS * prices.READY_GB_SECOND
    active = INSTANCE_GB * SECONDS * (prices.READY_ACTIVE_GB_SECOND * min(1.0, batches))
    others = INSTANCE_GB * SECONDS * prices.ON_DEMAND_GB_SECOND * (sizing.instances - 1)
    executions = batches * SECONDS / MILLION
    return Cost(
        "Functions: trigger",
        ready,
        ready + active + others + executions * prices.MILLION_EXECUTIONS,
        f"{INSTANCE_GB} GB always ready, busy all the time; {sizing.instances - 1} on demand;"
        f" {executions:,.0f} million executions x {prices.MILLION_EXECUTIONS}",
    )


def _durable() -> Cost:
    """Return the costs of Durable, on an instance of its own."""
    instances = READY["durableAlwaysReady"]
    seconds = SECONDS / LETTER_ROUNDS
    active = INSTANCE_GB * seconds * prices.READY_ACTIVE_GB_SECOND
    dollars = instances * INSTANCE_GB * SECONDS * prices.READY_GB_SECOND + active
    text = f"{instances} instance of {INSTANCE_GB} GB always ready; {seconds:,.0f} executions of 1 s; idle too"
    return Cost("Functions: Durable", dollars, dollars, text)


def _timers() -> Cost:
    seconds = sum(SECONDS / every for every in TIMERS.values())
    paid = max(0.0, INSTANCE_GB * seconds - prices.FREE_GB_SECONDS)
    dollars = paid * prices.ON_DEMAND_GB_SECOND
    dollars += max(0.0, seconds - prices.FREE_EXECUTIONS) / MILLION * prices.MILLION_EXECUTIONS
    text = f"{seconds:,.0f} executions of 1 s x {INSTANCE_GB} GB, less the free grant; idle too"
    return Cost("Functions: timers", dollars, dollars, text)


def _database(sizing: Sizing) -> Cost:
    """Return the costs of the database: idle its least, at the load half of its cores (assumed) and a month of rows."""
    least = max(0.5, sizing.database.v_cores / 8)
    used = sizing.database.v_cores / 2
    rows = stored_bytes_per_day(sizing.load) * MONTH / GB
    return Cost(
        "Azure SQL, serverless",
        HOURS * least * prices.VCORE_HOUR,
        HOURS * used * prices.VCORE_HOUR + rows * prices.SQL_GB,
        f"{used:g} of {sizing.database.v_cores} vCores x {HOURS} h x {prices.VCORE_HOUR}"
        f" + {rows:,.0f} GB after a month x {prices.SQL_GB}",
    )


def _logs(idle: float, loaded: float) -> Cost:
    def paid(gigabytes: float) -> float:
        return max(0.0, gigabytes - prices.FREE_LOG_GB) * prices.LOG_GB

    text = f"({loaded:,.1f} GB - {prices.FREE_LOG_GB:g} GB free) x {prices.LOG_GB}"
    return Cost("Application Insights", paid(idle), paid(loaded), text)


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


def extras(sizing: Sizing) -> tuple[Extra, ...]:
    """Return the costs of the choices beside the defaults."""
    ready = INSTANCE_GB * SECONDS * prices.READY_GB_SECOND
    saved = round(SECONDS / TIMERS["run_audits"] - SECONDS / 60)
    audits = saved * INSTANCE_GB * prices.ON_DEMAND_GB_SECOND
    network = ENDPOINTS * HOURS * prices.ENDPOINT_HOUR + ZONES * prices.DNS_ZONE
    unit = HOURS * (prices.UNIT_HOUR + prices.CAPTURE_UNIT_HOUR)
    return (
        *(_spark(sizing.load, minutes) for minutes in (5, 20, 60)),
        Extra(
            "`VNET_ENABLED`",
            network,
            f"{ENDPOINTS} private endpoints x {HOURS} h x {prices.ENDPOINT_HOUR} + {ZONES} DNS zones",
        ),
        Extra("`AUDIT_SCHEDULE` every minute", -audits, f"{saved:,} executions of {INSTANCE_GB} GB less"),
        Extra(
            "one always-ready instance more", ready, f"{INSTANCE_GB} GB x {SECONDS:,} s x {prices.READY_GB_SECOND:f}"
        ),
        Extra(
            "one throughput unit more", unit, f"{HOURS} h x ({prices.UNIT_HOUR} + Capture {prices.CAPTURE_UNIT_HOUR})"
        ),
    )


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
    """Return both tables, or a sentence where the prices of a part are not known here."""
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
