"""The arithmetic from a load to sizes, each with its calculation and the load at which it breaks."""

from dataclasses import dataclass, replace
from math import ceil

from tools.capacity import limits
from tools.capacity.limits import DATABASES, DAY, MB, Database, HubTier


@dataclass(frozen=True, slots=True)
class Load:
    """The events of the busiest hour, as an average per second.

    `log_bytes_per_event` counts the bytes that one event adds to the database's log: its row, its index entries, and
    its share of ledger and letters. `headroom` is the factor by which each part is larger than the load, for peaks and
    for catching up.
    """

    events_per_second: float
    event_bytes: int = 250
    log_bytes_per_event: int = 1_000
    row_bytes_per_event: int = 150
    headroom: float = 1.5


@dataclass(frozen=True, slots=True)
class Costs:
    """The measured costs of the app. docs/capacity.md says how they were measured.

    `cpu_seconds_per_event` is the time of the whole host on one core, with receiving. `batch_size` is set in host.json.
    """

    cpu_seconds_per_event: float = 120e-6
    batch_size: int = 500
    round_trip_seconds: float = 0.002


@dataclass(frozen=True, slots=True)
class Part:
    """One part to buy: its size, the calculation, the events/s that it bears, and the step to take above that."""

    name: str
    size: str
    arithmetic: str
    bears: float
    then: str


@dataclass(frozen=True, slots=True)
class Sizing:
    """All parts for one load: `shards` equal ones, split by key, each with its own hub, app and database."""

    load: Load
    shards: int
    hub_tier: HubTier
    hub_units: int
    partitions: int
    instances: int
    memory: int  # MB of an instance
    database: Database
    parts: tuple[Part, ...]

    @property
    def breaks_first(self) -> Part:
        """The part that bears the fewest events/s."""
        return min(self.parts, key=lambda part: part.bears)


def size(load: Load, costs: Costs | None = None, memory: int = 2048) -> Sizing:
    """Return the sizing for a load with its headroom, on instances with `memory` MB. `bears` counts all shards."""
    costs = costs or Costs()
    database, shards, stored = _database(load, load.events_per_second * load.headroom)
    wanted = load.events_per_second * load.headroom / shards
    tier, units, throughput = _throughput(load, wanted)
    partitions, partitioned = _partitions(wanted, costs, database, load if tier is limits.STANDARD else None)
    partitioned = _bounded(partitioned, partitions, tier)
    instances, instanced = _instances(wanted, costs, memory, partitions)
    own = (replace(part, bears=part.bears * shards) for part in (throughput, partitioned, instanced))
    return Sizing(load, shards, tier, units, partitions, instances, memory, database, (stored, *own))


def stored_bytes_per_day(load: Load) -> float:
    """Return the bytes by which this load makes the output tables grow in a day."""
    return load.events_per_second * load.row_bytes_per_event * DAY


def _throughput(load: Load, wanted: float) -> tuple[HubTier, int, Part]:
    per_unit = min(limits.UNIT_EVENTS_IN, limits.UNIT_BYTES_IN / load.event_bytes)
    units = ceil(wanted / per_unit)
    if units <= limits.STANDARD_UNITS:
        sum_ = f"{wanted:,.0f} / min({limits.UNIT_EVENTS_IN:,} events, 1 MB / {load.event_bytes} B) = {units}"
        then = "raise maximumThroughputUnits; past 40, the Premium tier"
        return (
            limits.STANDARD,
            units,
            Part("throughput", f"{units} throughput unit{'s' * (units > 1)}", sum_, units * per_unit, then),
        )
    per_unit = limits.PREMIUM_BYTES_IN / load.event_bytes
    needed = ceil(wanted / per_unit)
    sum_ = f"{wanted:,.0f} x {load.event_bytes} B / 5 MB = {needed}"
    if needed <= limits.PREMIUM_UNITS[-1]:
        units = next(unit for unit in limits.PREMIUM_UNITS if unit >= needed)
        then = "more processing units; past 16, a dedicated cluster or more namespaces"
        return limits.PREMIUM, units, Part("throughput", f"{units} processing units", sum_, units * per_unit, then)
    then = "measure on the cluster: a capacity unit has no published rate"
    part = Part("throughput", f"dedicated cluster for {wanted * load.event_bytes / MB:,.0f} MB/s", sum_, wanted, then)
    return limits.DEDICATED, 1, part


def _partitions(wanted: float, costs: Costs, database: Database, standard: Load | None) -> tuple[int, Part]:
    """Return the number of partitions that take the load.

    A partition has one batch at a time: work, round trip and commit follow each other. In the Standard tier it also
    takes in no more than one throughput unit.
    """
    waits = costs.round_trip_seconds + database.commit_seconds
    rate = costs.batch_size / (costs.batch_size * costs.cpu_seconds_per_event + waits)
    sum_ = (
        f"{costs.batch_size} events / ({costs.batch_size} x {costs.cpu_seconds_per_event * 1e6:.0f} µs + "
        f"{waits * 1e3:.0f} ms) = {rate:,.0f} events/s each"
    )
    if standard is not None:
        rate = min(rate, limits.UNIT_EVENTS_IN, limits.UNIT_BYTES_IN / standard.event_bytes)
        sum_ += f", and one throughput unit each: {rate:,.0f}"
    partitions = max(4, ceil(wanted / rate))
    sum_ += f"; {wanted:,.0f} / {rate:,.0f} = {ceil(wanted / rate)}"
    then = (
        "larger batches or a lighter transform; a Standard hub cannot grow, so create a new hub and drain the old one"
    )
    return partitions, Part("partitions", f"{partitions} partitions", sum_, partitions * rate, then)


def _bounded(part: Part, partitions: int, tier: HubTier) -> Part:
    """Spread the partitions over several hubs where the limit of the tier requires it."""
    hubs = ceil(partitions / tier.partitions)
    return part if hubs == 1 else replace(part, size=f"{partitions} partitions on {hubs} hubs of {tier.name}")


def _instances(wanted: float, costs: Costs, memory: int, partitions: int) -> tuple[int, Part]:
    cores = limits.INSTANCE_CORES[memory]
    rate = cores / costs.cpu_seconds_per_event
    instances = min(ceil(wanted / rate), limits.INSTANCES, partitions)
    sum_ = f"{wanted:,.0f} x {costs.cpu_seconds_per_event * 1e6:.0f} µs / {cores:g} core = {ceil(wanted / rate)}"
    bears = instances * rate
    then = "instances with more memory have more cores; above one per partition, an instance gets no work"
    return instances, Part("instances", f"{instances} of {memory} MB", sum_, bears, then)


def _database(load: Load, wanted: float) -> tuple[Database, int, Part]:
    """Return the cheapest database whose log takes the load, or shards of the largest, each with a hub and an app."""
    log = wanted * load.log_bytes_per_event
    fitting = [one for one in DATABASES if one.log_bytes_per_second >= log]
    database = fitting[0] if fitting else DATABASES[-1]
    shards = ceil(log / database.log_bytes_per_second)
    rate = database.log_bytes_per_second / load.log_bytes_per_event
    sum_ = (
        f"{wanted:,.0f} x {load.log_bytes_per_event:,} B = {log / MB:,.0f} MB/s of log against "
        f"{database.log_bytes_per_second / MB:,.0f} MB/s of {database}"
    )
    text = str(database) if shards == 1 else f"{shards} shards, each with {database}"
    then = "the next size; past the largest, one more shard with its own hub, app and database, split by key"
    return database, shards, Part("database", text, sum_, shards * rate, then)
