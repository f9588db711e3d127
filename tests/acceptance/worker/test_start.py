from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from local.event_hubs import Emulator, HubSettings, SharedAccessKey
from tests.acceptance.started import DEADLINE, GROUP, HUB, READERS, Process, settings_of, start
from tests.fakes.engines import SqliteEngine
from tests.fakes.written_modules import WrittenModules, broken_room
from tests.patience import ended

ROOT_KEY = SharedAccessKey("RootManageSharedAccessKey", "SAS_KEY_VALUE")
SENDER = SharedAccessKey("sender", "c2VuZGVy", frozenset({"Send"}))


def worker(settings: Mapping[str, str], *options: str) -> Process:
    return start("core.worker", *options, settings=settings, alone=True)


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[dict[str, str]]:
    emulator = Emulator([HubSettings(HUB, 2, consumer_groups=(GROUP, READERS))], keys=(ROOT_KEY, SENDER))
    with emulator.running():
        yield settings_of(emulator.connection_string, SqliteEngine(tmp_path / "store.db").path)


def test_a_worker_that_cannot_begin_names_the_setting_or_what_is_missing_and_no_key(
    settings: dict[str, str], tmp_path: Path
) -> None:
    hub = settings["EVENTHUB"]
    sender = hub.replace("RootManageSharedAccessKey", "sender").replace("SAS_KEY_VALUE", "c2VuZGVy")
    nobody = "Endpoint=sb://localhost:1;SharedAccessKeyName=a;SharedAccessKey=b;UseDevelopmentEmulator=true"
    broken = {"TRANSFORM": broken_room(WrittenModules(tmp_path)), "PYTHONPATH": str(tmp_path)}
    cases: dict[str, dict[str, str]] = {
        "EVENTHUB_NAME: elsewhere, consumer group": {"EVENTHUB_NAME": "elsewhere"},
        "EVENTHUB_CONSUMER_GROUP: telemetry": {"EVENTHUB_CONSUMER_GROUP": "nobody"},
        "HUB_READER_CONSUMER_GROUP: telemetry, consumer group nobody": {"HUB_READER_CONSUMER_GROUP": "nobody"},
        "EVENTHUB: telemetry refuses the token": {"EVENTHUB": hub.replace("SAS_KEY_VALUE", "c2VjcmV0")},
        "EVENTHUB": {"EVENTHUB": sender},
        "EVENTHUB: ": {"EVENTHUB": "Endpoint=sb://localhost"},
        "EVENTHUB must be the connection string": {"EVENTHUB": "nonsense"},
        "telemetry": {"EVENTHUB": nobody},
        "STORE_CONNECTION must be set; EVENTHUB_NAME must be set": dict.fromkeys(settings, ""),
        "does not exist: create it with": {"STORE_CONNECTION": f"sqlite:{tmp_path}/no.db"},
        "TRANSFORM=nowhere": {"TRANSFORM": "nowhere"},
        "TRANSFORM=broken_room: broken_room/aggregates/hours.py:1: NameError": broken,
    }
    said = []
    with ExitStack() as running:
        workers = [running.enter_context(worker({**settings, **changed})) for changed in cases.values()]
        for one in workers:  # none outlives a failed test
            running.callback(one.kill)
        for one in workers:
            out, errors = ended(one, DEADLINE)
            assert (one.returncode, errors[:8], errors.count("\n")) == (1, "worker: ", 1), out
            said.append(errors)
    assert [why for why, each in zip(cases, said, strict=True) if why not in each] == []
    assert "c2VjcmV0" not in "".join(said)


def test_impossible_options_are_refused_by_name_and_help_names_every_option() -> None:
    workers = [worker({}, "--interval", each) for each in ("nan", "inf", "0", "-1", "soon", "9999")]
    outlasting, asking = worker({}, "--interval", "5", "--expiry", "3"), worker({}, "--help")
    for one in workers:
        _, errors = ended(one, DEADLINE)
        assert (one.returncode, "--interval" in errors) == (2, True), one.args
    assert "--interval must be below --expiry" in ended(outlasting, DEADLINE)[1]
    shown, _ = ended(asking, DEADLINE)
    assert (asking.returncode, "--interval" in shown, "--expiry" in shown) == (0, True, True)
