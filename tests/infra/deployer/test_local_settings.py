"""infra/hooks/deployer/local_settings.py: a developer's own run disturbs neither the app nor the developer's file."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from core.settings import read_settings
from infra.hooks.deployer.local_settings import FILE, MARK, settings_of, write_local_settings
from tests.infra.test_hooks import outputs
from tests.repo.product import ROOT

ROOM = "apps.orders"
EXAMPLE: dict[str, str] = json.loads((ROOT / "local.settings.example.json").read_text("utf-8"))["Values"]


def written(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / FILE).read_text("utf-8"))
    return content


def test_the_app_accepts_the_settings_and_reads_through_a_group_and_a_store_of_its_own(tmp_path: Path) -> None:
    write_local_settings(tmp_path, outputs(), {})
    values = written(tmp_path)["Values"]
    settings = read_settings(values)
    assert settings.namespace == "n.servicebus.windows.net"
    assert settings.event_hub == "telemetry"
    assert settings.consumer_group == "$Default"
    assert settings.consumer_group != outputs().settings["EVENTHUB_CONSUMER_GROUP"]
    assert settings.store_connection.startswith("sqlite:")
    assert settings.spark.engine == "none"
    assert values["AzureWebJobsStorage"] == "UseDevelopmentStorage=true"


THREADS = "PYTHON_THREADPOOL_THREAD_COUNT"


def test_the_settings_that_the_host_needs_locally_are_those_of_the_example() -> None:
    names = ("FUNCTIONS_WORKER_RUNTIME", "FUNCTIONS_REQUEST_BODY_SIZE_LIMIT", THREADS, "AzureWebJobsStorage")
    assert {name: settings_of(outputs(), ROOM)[name] for name in names} == {name: EXAMPLE[name] for name in names}


def test_a_hub_of_others_is_not_read_through_the_group_that_its_reader_may_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_local_settings(tmp_path, outputs(), {"EVENTHUB_NAMESPACE_ID": "/subscriptions/s"})
    assert list(tmp_path.iterdir()) == []
    assert "a hub of others may have a reader" in capsys.readouterr().out


def test_no_value_is_a_secret() -> None:
    assert not re.search(r"key|password|pwd|secret|sig=", json.dumps(settings_of(outputs(), ROOM)), re.IGNORECASE)


def test_a_file_of_the_hook_follows_the_environment(tmp_path: Path) -> None:
    write_local_settings(tmp_path, outputs(), {})
    write_local_settings(tmp_path, outputs(EVENTHUB_NAME="other"), {"CI": "false"})
    assert written(tmp_path)["Values"]["EVENTHUB_NAME"] == "other"


def test_a_file_that_an_editor_saved_with_a_byte_order_mark_is_still_the_hooks(tmp_path: Path) -> None:
    write_local_settings(tmp_path, outputs(), {})
    (tmp_path / FILE).write_text((tmp_path / FILE).read_text(), encoding="utf-8-sig")
    write_local_settings(tmp_path, outputs(EVENTHUB_NAME="other"), {})
    assert written(tmp_path)["Values"]["EVENTHUB_NAME"] == "other"


def changed(content: dict[str, Any]) -> str:
    content["Values"]["ANCHOR"] = "latest"
    return json.dumps(content)


def without_mark(content: dict[str, Any]) -> str:
    del content["Values"][MARK]
    return json.dumps(content)


@pytest.mark.parametrize(
    "mine", [changed, without_mark, lambda _: "{}", lambda _: "[]", lambda _: "// mine", lambda _: ""]
)
def test_a_file_of_a_person_stays_and_that_is_said(
    mine: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_local_settings(tmp_path, outputs(), {})
    text = mine(written(tmp_path))
    (tmp_path / FILE).write_text(text)
    capsys.readouterr()
    write_local_settings(tmp_path, outputs(EVENTHUB_NAME="other"), {})
    assert (tmp_path / FILE).read_text() == text
    assert "local.settings.json is yours and was not changed" in capsys.readouterr().out


def test_a_pipeline_writes_no_file(tmp_path: Path) -> None:
    write_local_settings(tmp_path, outputs(), {"GITHUB_ACTIONS": "true"})
    assert list(tmp_path.iterdir()) == []


def test_an_app_that_reads_through_the_same_group_gets_no_rival(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_local_settings(tmp_path, outputs(WIRED_SETTINGS='{"EVENTHUB_CONSUMER_GROUP": "$default"}'), {})
    assert list(tmp_path.iterdir()) == []
    assert "was not written" in capsys.readouterr().out
