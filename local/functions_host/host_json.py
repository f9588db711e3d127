"""Read `host.json` with its overrides into one frozen value, and collect every fault.

Source of names, defaults and limits: host.json reference, and EventHubOptions of the Event Hubs extension 6.x.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from local.functions_host.durable.options import DurableOptions, parse_durable_options
from local.functions_host.errors import HostError
from local.functions_host.event_source import END, START, StartAt
from local.functions_host.sections import Section, whole_number
from local.functions_host.time_spans import parse_time_span

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


@dataclass(frozen=True, slots=True)
class HostJson:
    """The values of host.json that the local host uses. `function_timeout` None means no limit."""

    route_prefix: str = "api"
    function_timeout: timedelta | None = DEFAULT_TIMEOUT
    event_hubs: EventHubOptions = field(default_factory=EventHubOptions)
    durable: DurableOptions = field(default_factory=DurableOptions)


def read_host_json(directory: Path, environment: Mapping[str, str], faults: list[str]) -> HostJson:
    """Read host.json of the app in `directory`; add a line to `faults` for each wrong value.

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
    return _parse(Section(_overridden(content, environment), "host.json", faults))


def _overridden(content: dict[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    for name, value in environment.items():
        if name.startswith(OVERRIDE_PREFIX):
            _put(content, name.removeprefix(OVERRIDE_PREFIX).split("__"), value)
    return content


def _put(section: dict[str, Any], path: list[str], value: str) -> None:
    """Set one value; like .NET's configuration, ignore the case of names."""
    name = next((known for known in section if known.lower() == path[0].lower()), path[0])
    if len(path) == 1:
        section[name] = value
        return
    if not isinstance(section.get(name), dict):
        section[name] = {}
    _put(section[name], path[1:], value)


def _parse(root: Section) -> HostJson:
    root.read("version", _version, None)
    extensions = root.section("extensions")
    return HostJson(
        route_prefix=extensions.section("http").read("routePrefix", lambda value: str(value).strip("/"), "api"),
        function_timeout=root.read("functionTimeout", _timeout, DEFAULT_TIMEOUT),
        event_hubs=_parse_event_hubs(extensions.section("eventHubs")),
        durable=parse_durable_options(extensions.section("durableTask")),
    )


def _parse_event_hubs(section: Section) -> EventHubOptions:
    section.read("enableCheckpointing", _only_true, None)
    largest = section.read("maxEventBatchSize", whole_number, 100)
    smallest = section.read("minEventBatchSize", whole_number, 1)
    section.read("targetUnprocessedEventThreshold", whole_number, None)  # of Azure's scaling; one host runs here
    section.read("minEventBatchSize", lambda _: _at_most(smallest, largest), None)
    return EventHubOptions(
        max_event_batch_size=largest,
        min_event_batch_size=smallest,
        max_wait_time=section.read("maxWaitTime", _wait, timedelta(minutes=1)),
        batch_checkpoint_frequency=section.read("batchCheckpointFrequency", whole_number, 1),
        prefetch_count=section.read("prefetchCount", whole_number, None),
        start_at=section.read("initialOffsetOptions", _start_at, START),
    )


def _version(value: Any) -> None:
    if value != "2.0":
        raise ValueError(f'must be "2.0", not {value!r}')


def _timeout(value: Any) -> timedelta | None:
    return None if str(value) == "-1" else parse_time_span(str(value))


def _wait(value: Any) -> timedelta:
    wait = parse_time_span(str(value))
    if wait > LONGEST_WAIT:
        raise ValueError(f"{value} is more than {LONGEST_WAIT}")
    return wait


def _at_most(smallest: int, largest: int) -> None:
    if smallest > largest:
        raise ValueError(f"{smallest} is more than maxEventBatchSize ({largest})")


def _only_true(value: Any) -> None:
    if str(value).lower() != "true":
        raise ValueError("only true is emulated")


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
