"""A worker that cannot begin says why in one line, and ends with 1."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.event_hubs import Emulator, HubSettings, SharedAccessKey
from tests.acceptance.worker.started import DEADLINE, GROUP, HUB, READERS, settings_of, start
from tests.fakes.engines import SqliteEngine

pytestmark = pytest.mark.slow
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


def refused(settings: dict[str, str]) -> str:
    worker = start(settings)
    out, errors = worker.communicate(timeout=DEADLINE)
    assert worker.returncode == 1, out
    assert errors.startswith("worker: ")
    assert errors.count("\n") == 1
    return errors


def test_a_hub_that_is_not_there(settings: dict[str, str]) -> None:
    assert "EVENTHUB_NAME: elsewhere, consumer group" in refused({**settings, "EVENTHUB_NAME": "elsewhere"})


def test_a_consumer_group_that_is_not_there(settings: dict[str, str]) -> None:
    assert "EVENTHUB_CONSUMER_GROUP: telemetry" in refused({**settings, "EVENTHUB_CONSUMER_GROUP": "nobody"})


def test_a_consumer_group_of_the_hub_reader_that_is_not_there(settings: dict[str, str]) -> None:
    said = refused({**settings, "HUB_READER_CONSUMER_GROUP": "nobody"})
    assert "HUB_READER_CONSUMER_GROUP: telemetry, consumer group nobody" in said


def test_a_key_that_is_wrong_is_refused_and_not_shown(settings: dict[str, str]) -> None:
    said = refused({**settings, "EVENTHUB": settings["EVENTHUB"].replace("SAS_KEY_VALUE", "c2VjcmV0")})
    assert "EVENTHUB: telemetry refuses the token" in said
    assert "c2VjcmV0" not in said


def test_a_key_without_the_right_to_listen(settings: dict[str, str]) -> None:
    sender = settings["EVENTHUB"].replace("RootManageSharedAccessKey", "sender").replace("SAS_KEY_VALUE", "c2VuZGVy")
    assert "EVENTHUB" in refused({**settings, "EVENTHUB": sender})


def test_a_connection_string_that_is_none(settings: dict[str, str]) -> None:
    assert "EVENTHUB: " in refused({**settings, "EVENTHUB": "nonsense"})


def test_a_hub_that_does_not_answer(settings: dict[str, str]) -> None:
    nobody = "Endpoint=sb://localhost:1;SharedAccessKeyName=a;SharedAccessKey=b;UseDevelopmentEmulator=true"
    assert "telemetry" in refused({**settings, "EVENTHUB": nobody})


def test_settings_that_are_missing() -> None:
    assert "STORE_CONNECTION must be set; EVENTHUB_NAME must be set" in refused({})


def test_a_database_that_is_missing(settings: dict[str, str], tmp_path: Path) -> None:
    assert "does not exist: create it with" in refused({**settings, "STORE_CONNECTION": f"sqlite:{tmp_path}/no.db"})


def test_a_transform_that_is_missing(settings: dict[str, str]) -> None:
    assert "TRANSFORM=nowhere" in refused({**settings, "TRANSFORM": "nowhere"})


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    worker = start({}, *arguments)
    out, errors = worker.communicate(timeout=DEADLINE)
    return subprocess.CompletedProcess(arguments, worker.returncode, out, errors)


def test_help_names_every_option() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "--interval" in done.stdout
    assert "--expiry" in done.stdout


@pytest.mark.parametrize("given", ["nan", "inf", "0", "-1", "soon", "9999"])
def test_times_that_are_none_are_refused(given: str) -> None:
    done = run("--interval", given)
    assert done.returncode == 2
    assert "--interval" in done.stderr


def test_an_interval_that_outlasts_the_expiry_is_refused() -> None:
    assert "--interval must be below --expiry" in run("--interval", "5", "--expiry", "3").stderr
