"""A worker that cannot begin says why in one line, and ends with 1."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from local.event_hubs import Emulator, HubSettings, SharedAccessKey
from tests.acceptance.worker.started import DEADLINE, GROUP, HUB, READERS, settings_of, start
from tests.fakes.engines import SqliteEngine
from tests.fakes.written_modules import WrittenModules, broken_room
from tests.patience import ended

ROOT_KEY = SharedAccessKey("RootManageSharedAccessKey", "SAS_KEY_VALUE")
SENDER = SharedAccessKey("sender", "c2VuZGVy", frozenset({"Send"}))


@pytest.fixture(scope="module")
def connection() -> Iterator[str]:
    emulator = Emulator([HubSettings(HUB, 2, consumer_groups=(GROUP, READERS))], keys=(ROOT_KEY, SENDER))
    with emulator.running():
        yield emulator.connection_string


@pytest.fixture
def settings(connection: str, tmp_path: Path) -> dict[str, str]:
    return settings_of(connection, SqliteEngine(tmp_path / "store.db").path)


def refusals(*cases: dict[str, str]) -> list[str]:
    """Start a worker with each case of settings side by side; return their last words."""
    said = []
    with ExitStack() as running:
        workers = [running.enter_context(start(settings)) for settings in cases]
        for worker in workers:  # none outlives a failed test
            running.callback(worker.kill)
        for worker in workers:
            out, errors = ended(worker, DEADLINE)
            assert worker.returncode == 1, out
            assert errors.startswith("worker: ")
            assert errors.count("\n") == 1
            said.append(errors)
    return said


def test_a_hub_that_refuses_the_worker_is_reported_with_the_setting_and_without_its_key(
    settings: dict[str, str],
) -> None:
    hub = settings["EVENTHUB"]
    sender = hub.replace("RootManageSharedAccessKey", "sender").replace("SAS_KEY_VALUE", "c2VuZGVy")
    nobody = "Endpoint=sb://localhost:1;SharedAccessKeyName=a;SharedAccessKey=b;UseDevelopmentEmulator=true"
    cases: dict[str, dict[str, str]] = {
        "EVENTHUB_NAME: elsewhere, consumer group": {"EVENTHUB_NAME": "elsewhere"},
        "EVENTHUB_CONSUMER_GROUP: telemetry": {"EVENTHUB_CONSUMER_GROUP": "nobody"},
        "HUB_READER_CONSUMER_GROUP: telemetry, consumer group nobody": {"HUB_READER_CONSUMER_GROUP": "nobody"},
        "EVENTHUB: telemetry refuses the token": {"EVENTHUB": hub.replace("SAS_KEY_VALUE", "c2VjcmV0")},
        "EVENTHUB": {"EVENTHUB": sender},
        "EVENTHUB: ": {"EVENTHUB": "nonsense"},
        "telemetry": {"EVENTHUB": nobody},
    }
    said = refusals(*({**settings, **changed} for changed in cases.values()))
    assert [why for why, each in zip(cases, said, strict=True) if why not in each] == []
    assert "c2VjcmV0" not in "".join(said)


def test_a_worker_without_its_settings_database_or_transform_says_which_is_missing(
    settings: dict[str, str], tmp_path: Path
) -> None:
    broken = {"TRANSFORM": broken_room(WrittenModules(tmp_path)), "PYTHONPATH": str(tmp_path)}
    nothing, no_database, no_transform, no_aggregate = refusals(
        {},
        {**settings, "STORE_CONNECTION": f"sqlite:{tmp_path}/no.db"},
        {**settings, "TRANSFORM": "nowhere"},
        {**settings, **broken},
    )
    assert "STORE_CONNECTION must be set; EVENTHUB_NAME must be set" in nothing
    assert "does not exist: create it with" in no_database
    assert "TRANSFORM=nowhere" in no_transform
    assert "TRANSFORM=broken_room: broken_room/aggregates/hours.py:1: NameError" in no_aggregate


def test_impossible_options_are_refused_by_name_and_help_names_every_option() -> None:
    given = ("nan", "inf", "0", "-1", "soon", "9999")
    workers = [start({}, "--interval", each) for each in given]
    outlasting, asking = start({}, "--interval", "5", "--expiry", "3"), start({}, "--help")
    for worker in workers:
        _, errors = ended(worker, DEADLINE)
        assert (worker.returncode, "--interval" in errors) == (2, True), worker.args
    assert "--interval must be below --expiry" in ended(outlasting, DEADLINE)[1]
    shown, _ = ended(asking, DEADLINE)
    assert asking.returncode == 0
    assert "--interval" in shown and "--expiry" in shown
