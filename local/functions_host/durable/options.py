"""Read `extensions.durableTask` of host.json: names that are honoured, have one allowed value, or are ignored.

Source: host.json reference and DurableTaskOptions.
"""

import os
import re
from dataclasses import dataclass
from functools import partial
from typing import Any

from local.functions_host.json_sections import Section, whole_number

PER_CORE = 10
HUB_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]{2,44}")

# Names with the only values that are emulated.
FIXED = {
    "extendedSessionsEnabled": ("false",),
    "localRpcEndpointEnabled": ("true",),
    "overridableExistingInstanceStates": ("nonrunningstates",),
    "storeInputsInOrchestrationHistory": ("false",),
    "grpcEndpointEnabled": ("false",),
}
# Names that tune Azure's queues, telemetry and shutdown, which this host does not have.
MEANINGLESS = (
    "extendedSessionIdleTimeoutInSeconds",
    "entityMessageReorderWindowInMinutes",
    "maxQueuePollingInterval",
    "rollbackEntityOperationsOnExceptions",
    "tracing",
    "useAppLease",
    "useGracefulShutdown",
)
HONOURED = (
    "hubName",
    "maxConcurrentActivityFunctions",
    "maxConcurrentOrchestratorFunctions",
    "maxConcurrentEntityFunctions",
    "maxEntityOperationBatchSize",
    "storageProvider",
)


def _limit() -> int:
    return PER_CORE * (os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class DurableOptions:
    """The limits of parallel work and of an entity's batch, and the task hub's name."""

    hub_name: str = "TestHubName"
    activities: int = _limit()
    orchestrators: int = _limit()
    entities: int = _limit()
    entity_batch: int = 50


def parse_durable_options(section: Section) -> DurableOptions:
    """Read the section; add a fault for each value that is not emulated."""
    for name, allowed in FIXED.items():
        section.read(name, partial(_one_of, allowed), None)
    section.section("storageProvider").read("type", partial(_one_of, ("azurestorage",)), None)
    section.refuse_others((*HONOURED, *FIXED, *MEANINGLESS))
    return DurableOptions(
        hub_name=section.read("hubName", _hub_name, "TestHubName"),
        activities=section.read("maxConcurrentActivityFunctions", whole_number, _limit()),
        orchestrators=section.read("maxConcurrentOrchestratorFunctions", whole_number, _limit()),
        entities=section.read("maxConcurrentEntityFunctions", whole_number, _limit()),
        entity_batch=section.read("maxEntityOperationBatchSize", whole_number, 50),
    )


def _one_of(allowed: tuple[str, ...], value: Any) -> None:
    if str(value).lower() not in allowed:
        raise ValueError(f"{value!r} is not emulated, only {' or '.join(allowed)}")


def _hub_name(value: Any) -> str:
    if not HUB_NAME.fullmatch(str(value)):
        raise ValueError(f"must be 3 to 45 letters and digits that begin with a letter, not {value!r}")
    return str(value)
