"""The limits of Azure that the arithmetic uses. Check them at their sources before you buy.

Event Hubs quotas and tiers: learn.microsoft.com/azure/event-hubs/event-hubs-quotas and compare-tiers.
Azure SQL log rates: learn.microsoft.com/azure/azure-sql/database/resource-limits-vcore-single-databases.
Flex Consumption: learn.microsoft.com/azure/azure-functions/flex-consumption-plan.
"""

from dataclasses import dataclass

MB, GB = 1_000_000, 1e9  # throughput is sold by the million
DAY = 86_400

# One throughput unit of the Standard tier.
UNIT_EVENTS_IN, UNIT_BYTES_IN = 1_000, 1 * MB
STANDARD_UNITS = 40

# One processing unit of the Premium tier takes in 5 to 10 MB/s; the arithmetic uses the lower end.
PREMIUM_BYTES_IN = 5 * MB
PREMIUM_UNITS = (1, 2, 4, 6, 8, 10, 12, 16)


@dataclass(frozen=True, slots=True)
class HubTier:
    """A tier of Event Hubs, and the limit of partitions of one hub."""

    name: str
    partitions: int


STANDARD, PREMIUM, DEDICATED = HubTier("Standard", 32), HubTier("Premium", 100), HubTier("Dedicated", 1_024)


@dataclass(frozen=True, slots=True)
class Database:
    """One size of Azure SQL: the rate of its transaction log, and the time until a commit is durable."""

    tier: str
    v_cores: int
    log_bytes_per_second: float
    commit_seconds: float

    def __str__(self) -> str:
        return f"{self.tier} {self.v_cores} vCores"


# From the cheapest to the most expensive, on Gen5 hardware; a database with more cores logs no faster.
DATABASES = (
    Database("GeneralPurpose", 2, 9 * MB, 0.007),
    Database("GeneralPurpose", 4, 18 * MB, 0.007),
    Database("GeneralPurpose", 8, 36 * MB, 0.007),
    Database("GeneralPurpose", 12, 50 * MB, 0.007),
    Database("BusinessCritical", 8, 96 * MB, 0.002),
    Database("Hyperscale", 8, 100 * MB, 0.007),
)

# `minCapacity` of infra/app/sql.bicep for serverless General Purpose, and the memory in GB below which it never falls.
# Azure bills the larger of minimum cores, used cores and a third of the used gigabytes of memory
# (learn.microsoft.com/azure/azure-sql/database/serverless-tier-overview).
MINIMUM_MEMORY = {1: 2.02, 2: 2.05, 4: 2.10}  # more cores: 3 GB for each minimum core
MEMORY_OF_CORE = 3.0

# Cores of one instance of Flex Consumption, by its memory in MB.
INSTANCE_CORES = {512: 0.25, 2048: 1.0, 4096: 2.0}
INSTANCES = 1_000
