"""Read the whole configuration of the host, so that one error reports all faults."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from local.functions_host.app_settings import AppSettings, read_app_settings
from local.functions_host.connections import HubConnection, resolve_connection
from local.functions_host.emulated import DURABLE_TRIGGERS, EVENT_HUB_TRIGGER, HTTP_TRIGGER, TIMER_TRIGGER
from local.functions_host.errors import SettingsFault
from local.functions_host.function import FunctionDescription
from local.functions_host.host_json import HostJson, read_host_json
from local.functions_host.http_front import LARGEST_BODY, HttpFunction, http_function
from local.functions_host.schedules import Schedule, parse_schedule

THREADS = "PYTHON_THREADPOOL_THREAD_COUNT"
BODY_LIMIT = "FUNCTIONS_REQUEST_BODY_SIZE_LIMIT"


@dataclass(frozen=True, slots=True)
class Settings:
    """host.json and the app's settings; `faults` are reported together with those of the functions."""

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
    """Return the triggers with their settings; raise SettingsFault with every fault of files and bindings."""
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
