"""Read the whole configuration of the host, so that one error reports all faults.

Source of names, defaults and limits: host.json reference, EventHubOptions of the Event Hubs extension 6.x, and
DurableTaskOptions.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from local.functions_host.app_settings import AppSettings, HubConnection, read_app_settings, resolve_connection
from local.functions_host.errors import HostError, SettingsFault
from local.functions_host.event_source import END, START, StartAt
from local.functions_host.function import (
    DURABLE_TRIGGERS,
    EVENT_HUB_TRIGGER,
    HTTP_TRIGGER,
    TIMER_TRIGGER,
    FunctionDescription,
)
from local.functions_host.http import LARGEST_BODY, HttpFunction, http_function
from local.functions_host.json_sections import JsonSection, parse_time_span, whole_number
from local.functions_host.timers import Schedule, parse_schedule

OVERRIDE_PREFIX = "AzureFunctionsJobHost__"
LONGEST_WAIT = timedelta(minutes=10)
DEFAULT_TIMEOUT: timedelta | None = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class EventHubOptions:
    """`extensions.eventHubs`. `prefetch_count` None leaves the choice to the event source."""

    max_event_batch_size: int = 100
    min_event_batch_size: int = 1
    max_wait_time: timedelta = timedelta(minutes=1)
    batch_checkpoint_frequency: int = 1
    prefetch_count: int | None = None
    start_at: StartAt = START


AT_ONCE = 10 * (os.cpu_count() or 1)  # of each kind, without a limit of host.json
HUB_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]{2,44}")

# Names with the only values that are emulated.
FIXED = {
    "extendedSessionsEnabled": ("false",),
    "localRpcEndpointEnabled": ("true",),
    "overridableExistingInstanceStates": ("nonrunningstates",),
    "storeInputsInOrchestrationHistory": ("false",),
    "grpcEndpointEnabled": ("false",),
}
# Names that tune Azure's queues, entities, telemetry and shutdown, which this host does not have.
MEANINGLESS = (
    "extendedSessionIdleTimeoutInSeconds",
    "entityMessageReorderWindowInMinutes",
    "maxConcurrentEntityFunctions",
    "maxEntityOperationBatchSize",
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
    "storageProvider",
)


@dataclass(frozen=True, slots=True)
class DurableOptions:
    """The limits of parallel work, and the task hub's name."""

    hub_name: str = "TestHubName"
    activities: int = AT_ONCE
    orchestrators: int = AT_ONCE


def parse_durable_options(section: JsonSection) -> DurableOptions:
    """Read the section. Add a fault for each value that is not emulated."""
    for name, allowed in FIXED.items():
        section.read(name, partial(_one_of, allowed), None)
    section.section("storageProvider").read("type", partial(_one_of, ("azurestorage",)), None)
    section.refuse_others((*HONOURED, *FIXED, *MEANINGLESS))
    return DurableOptions(
        hub_name=section.read("hubName", _hub_name, "TestHubName"),
        activities=section.read("maxConcurrentActivityFunctions", whole_number, AT_ONCE),
        orchestrators=section.read("maxConcurrentOrchestratorFunctions", whole_number, AT_ONCE),
    )


def _one_of(allowed: tuple[str, ...], value: Any) -> None:
    if str(value).lower() not in allowed:
        raise ValueError(f"{value!r} is not emulated, only {' or '.join(allowed)}")


def _hub_name(value: Any) -> str:
    if not HUB_NAME.fullmatch(str(value)):
        raise ValueError(f"must be 3 to 45 letters and digits that begin with a letter, not {value!r}")
    return str(value)


@dataclass(frozen=True, slots=True)
class HostJson:
    """The values of host.json that the local host uses. `function_timeout` None means no limit."""

    route_prefix: str = "api"
    function_timeout: timedelta | None = DEFAULT_TIMEOUT
    event_hubs: EventHubOptions = field(default_factory=EventHubOptions)
    durable: DurableOptions = field(default_factory=DurableOptions)


def read_host_json(directory: Path, environment: Mapping[str, str], faults: list[str]) -> HostJson:
    """Read host.json of the app in `directory`. Add a line to `faults` for each wrong value.

    Raises HostError when the file is missing or holds no JSON object.
    """
    path = directory / "host.json"
    try:
        content = json.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        raise HostError(f"{path} does not exist: --app must name the folder of a function app") from None
    except ValueError as error:
        raise HostError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise HostError(f"{path} must hold a JSON object")
    for name, value in environment.items():
        if name.startswith(OVERRIDE_PREFIX):
            _put(content, name.removeprefix(OVERRIDE_PREFIX).split("__"), value)
    root = JsonSection(content, "host.json", faults)
    root.read("version", partial(_one_of, ("2.0",)), None)
    extensions = root.section("extensions")
    return HostJson(
        route_prefix=extensions.section("http").read("routePrefix", lambda value: str(value).strip("/"), "api"),
        function_timeout=root.read("functionTimeout", _timeout, DEFAULT_TIMEOUT),
        event_hubs=_parse_event_hubs(extensions.section("eventHubs")),
        durable=parse_durable_options(extensions.section("durableTask")),
    )


def _put(section: dict[str, Any], path: list[str], value: str) -> None:
    """Set one value. Like .NET's configuration, ignore the case of names."""
    name = next((known for known in section if known.lower() == path[0].lower()), path[0])
    if len(path) == 1:
        section[name] = value
        return
    if not isinstance(section.get(name), dict):
        section[name] = {}
    _put(section[name], path[1:], value)


def _parse_event_hubs(section: JsonSection) -> EventHubOptions:
    section.read("enableCheckpointing", partial(_one_of, ("true",)), None)
    largest = section.read("maxEventBatchSize", whole_number, 100)
    smallest = section.read("minEventBatchSize", whole_number, 1)
    section.read("targetUnprocessedEventThreshold", whole_number, None)  # of Azure's scaling; one host runs here
    if smallest > largest:
        section.refuse("minEventBatchSize", f"{smallest} is more than maxEventBatchSize ({largest})")
    return EventHubOptions(
        max_event_batch_size=largest,
        min_event_batch_size=smallest,
        max_wait_time=section.read("maxWaitTime", _wait, timedelta(minutes=1)),
        batch_checkpoint_frequency=section.read("batchCheckpointFrequency", whole_number, 1),
        prefetch_count=section.read("prefetchCount", whole_number, None),
        start_at=section.read("initialOffsetOptions", _start_at, START),
    )


def _timeout(value: Any) -> timedelta | None:
    return None if str(value) == "-1" else parse_time_span(str(value))


def _wait(value: Any) -> timedelta:
    wait = parse_time_span(str(value))
    if wait > LONGEST_WAIT:
        raise ValueError(f"{value} is more than {LONGEST_WAIT}")
    return wait


def _start_at(value: Any) -> StartAt:
    kind = str(value.get("type", "fromStart")) if isinstance(value, dict) else ""
    if kind.lower() == "fromstart":
        return START
    if kind.lower() == "fromend":
        return END
    if kind.lower() == "fromenqueuedtime":
        instant = datetime.fromisoformat(str(value.get("enqueuedTimeUtc", "")))
        if instant.tzinfo is None:
            raise ValueError(f"enqueuedTimeUtc {value['enqueuedTimeUtc']!r} must end in Z")
        return StartAt(enqueued_at=instant)
    raise ValueError(f"type must be fromStart, fromEnd or fromEnqueuedTime, not {kind!r}")


THREADS = "PYTHON_THREADPOOL_THREAD_COUNT"
BODY_LIMIT = "FUNCTIONS_REQUEST_BODY_SIZE_LIMIT"


@dataclass(frozen=True, slots=True)
class Settings:
    """host.json and the app's settings. `faults` are reported together with those of the functions."""

    host: HostJson
    app: AppSettings
    threads: int | None
    largest_body: int
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Triggers:
    """The triggers of the functions that are not disabled."""

    http: tuple[HttpFunction, ...]
    event_hubs: tuple[tuple[FunctionDescription, HubConnection], ...]
    timers: tuple[tuple[FunctionDescription, Schedule], ...]
    durable: tuple[FunctionDescription, ...]


def read_settings(directory: Path) -> Settings:
    """Read host.json and local.settings.json of the app under the environment of this process."""
    faults: list[str] = []
    app = read_app_settings(directory, os.environ, faults)
    host = read_host_json(directory, app.values, faults)
    threads, largest_body = _count(THREADS, app.values, faults), _count(BODY_LIMIT, app.values, faults)
    return Settings(host, app, threads, largest_body or LARGEST_BODY, tuple(faults))


def resolve_triggers(functions: Sequence[FunctionDescription], settings: Settings) -> Triggers:
    """Return the triggers with their settings. Raises SettingsFault with every fault of files and bindings."""
    faults = list(settings.faults)
    active = [function for function in functions if not settings.app.is_disabled(function.name)]

    def of_type(trigger_type: str) -> list[FunctionDescription]:
        return [function for function in active if function.trigger.type == trigger_type]

    prefix = settings.host.route_prefix
    http = [http_function(function, prefix, faults) for function in of_type(HTTP_TRIGGER)]
    hubs = [(each, resolve_connection(each, settings.app, faults)) for each in of_type(EVENT_HUB_TRIGGER)]
    timers = [(each, _schedule(each, settings.app, faults)) for each in of_type(TIMER_TRIGGER)]
    if faults:
        raise SettingsFault(faults)
    return Triggers(
        tuple(one for one in http if one is not None),
        tuple(hubs),
        tuple((each, schedule) for each, schedule in timers if schedule is not None),
        tuple(each for each in active if each.trigger.type in DURABLE_TRIGGERS),
    )


def _schedule(function: FunctionDescription, app: AppSettings, faults: list[str]) -> Schedule | None:
    where, known = f"function {function.name}: schedule", len(faults)
    text = app.expand(function.trigger.settings["schedule"], where, faults)
    if len(faults) > known:
        return None
    try:
        return parse_schedule(text)
    except ValueError as error:
        faults.append(f"{where}: {error}")
        return None


def _count(name: str, values: Mapping[str, str], faults: list[str]) -> int | None:
    text = values.get(name)
    if not text:
        return None
    if not text.isdigit() or int(text) < 1:
        faults.append(f"{name}: must be a whole number of at least 1, not {text!r}")
        return None
    return int(text)
