import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from local.functions_host.errors import HostError
from local.functions_host.event_source import END, START, StartAt
from local.functions_host.settings import EventHubOptions, HostJson, read_host_json
from tests.local.functions_host.doubles import NOON


def read(
    directory: Path, content: dict[str, Any], environment: dict[str, str] | None = None
) -> tuple[HostJson, list[str]]:
    (directory / "host.json").write_text(json.dumps({"version": "2.0", **content}))
    faults: list[str] = []
    return read_host_json(directory, environment or {}, faults), faults


def read_well(directory: Path, content: dict[str, Any], environment: dict[str, str] | None = None) -> HostJson:
    host, faults = read(directory, content, environment)
    assert faults == []
    return host


def test_the_defaults_are_those_of_the_extension(tmp_path: Path) -> None:
    options = EventHubOptions(100, 1, timedelta(minutes=1), 1, None, START)
    assert read_well(tmp_path, {}) == HostJson("api", timedelta(minutes=30), options)


def test_every_used_value_is_read(tmp_path: Path) -> None:
    event_hubs = {
        "maxEventBatchSize": 50,
        "minEventBatchSize": 10,
        "maxWaitTime": "00:00:05",
        "batchCheckpointFrequency": 3,
        "prefetchCount": 500,
        "targetUnprocessedEventThreshold": 8000,
        "initialOffsetOptions": {"type": "fromEnd"},
    }
    content = {"functionTimeout": "-1", "extensions": {"http": {"routePrefix": ""}, "eventHubs": event_hubs}}
    options = EventHubOptions(50, 10, timedelta(seconds=5), 3, 500, END)
    assert read_well(tmp_path, content) == HostJson("", None, options)


def test_a_start_by_enqueued_time_is_an_instant(tmp_path: Path) -> None:
    options = {"type": "fromEnqueuedTime", "enqueuedTimeUtc": "2026-11-21T12:00:00Z"}
    host = read_well(tmp_path, {"extensions": {"eventHubs": {"initialOffsetOptions": options}}})
    assert host.event_hubs.start_at == StartAt(enqueued_at=NOON)


def test_the_environment_overrides_in_any_case(tmp_path: Path) -> None:
    overrides = {
        "AzureFunctionsJobHost__Extensions__eventhubs__MaxEventBatchSize": "7",
        "AzureFunctionsJobHost__functionTimeout": "00:01:00",
    }
    host = read_well(tmp_path, {"extensions": {"eventHubs": {"maxEventBatchSize": 50}}}, overrides)
    assert (host.event_hubs.max_event_batch_size, host.function_timeout) == (7, timedelta(minutes=1))


def test_all_faults_are_found_at_once_with_their_names(tmp_path: Path) -> None:
    event_hubs = {
        "maxEventBatchSize": 0,
        "batchCheckpointFrequency": True,
        "maxWaitTime": "00:11:00",
        "prefetchCount": "many",
        "targetUnprocessedEventThreshold": 0,
        "enableCheckpointing": False,
        "initialOffsetOptions": {"type": "fromMiddle"},
    }
    content = {"version": "1.0", "functionTimeout": "soon", "extensions": {"eventHubs": event_hubs}}
    _, faults = read(tmp_path, content)
    assert len(faults) == 9
    for name in (*event_hubs, "version", "functionTimeout"):
        assert any(name in fault for fault in faults), name


def test_a_smallest_batch_above_the_largest_is_a_fault(tmp_path: Path) -> None:
    _, faults = read(tmp_path, {"extensions": {"eventHubs": {"minEventBatchSize": 101}}})
    assert len(faults) == 1
    assert "minEventBatchSize: 101 is more than maxEventBatchSize (100)" in faults[0]


def test_a_missing_or_broken_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"host\.json does not exist"):
        read_host_json(tmp_path, {}, [])
    (tmp_path / "host.json").write_text("{")
    with pytest.raises(HostError, match="is not JSON"):
        read_host_json(tmp_path, {}, [])
