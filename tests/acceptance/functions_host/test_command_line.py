"""The command: what it prints, how it ends, and what it logs."""

import json
import signal
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.acceptance.functions_host.command_line import StartedHost, run
from tests.acceptance.functions_host.sample import write_settings

HUBS_OFF = {f"AzureWebJobs.{name}.Disabled": "true" for name in ("ingest", "ingest_async", "ingest_texts")}


@pytest.fixture
def app_without_hubs(app: Path) -> Path:
    write_settings(app, **HUBS_OFF)
    return app


def test_routes_and_one_ready_line_are_printed(app_without_hubs: Path) -> None:
    host = StartedHost(app_without_hubs)
    assert host.lines[-1] == f"functions host ready on {host.base_url}"
    assert f"  item: [GET,POST] {host.base_url}/api/items/{{id:int}}/{{part?}}" in host.lines
    assert "  tick: timerTrigger" in host.lines
    with urllib.request.urlopen(f"{host.base_url}/api/files/a") as answer:
        assert answer.read() == b"a by file"
    assert host.stop(signal.SIGTERM) == (0, "")


def test_the_log_has_a_line_per_record_with_stack_and_invocation(app_without_hubs: Path, tmp_path: Path) -> None:
    log = tmp_path / "host.jsonl"
    host = StartedHost(app_without_hubs, "--log", str(log))
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(f"{host.base_url}/api/broken")
    code, errors = host.stop(signal.SIGINT)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    (failed,) = [line for line in lines if line.get("action") == "function_failed"]
    assert code == 0
    assert failed["error"] == "ValueError: a secret in the text"
    assert failed["function_name"] == "broken"
    assert len(failed["invocation_id"]) == 36
    assert "function_app.py" in failed["stack"]
    assert {"time", "level", "logger", "message"} <= failed.keys()
    assert errors.count("Traceback") == 1


def test_a_port_in_use_is_one_line_and_exit_code_1(app_without_hubs: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run("--app", str(app_without_hubs), "--port", str(port))
    assert ended.returncode == 1
    assert ended.stderr.splitlines() == [
        f"functions host: cannot listen on port {port} (address already in use); free it or pass --port"
    ]


def test_a_folder_without_an_app_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    ended = run("--app", str(tmp_path))
    assert (ended.returncode, len(ended.stderr.splitlines())) == (1, 1)
    assert "host.json does not exist" in ended.stderr
    (tmp_path / "host.json").write_text('{"version": "2.0"}')
    ended = run("--app", str(tmp_path))
    assert (ended.returncode, len(ended.stderr.splitlines())) == (1, 1)
    assert "function_app.py does not exist" in ended.stderr


@pytest.mark.parametrize("arguments", [["--port", "x"], ["--port", "70000"], ["--what"]])
def test_bad_arguments_are_exit_code_2(arguments: list[str]) -> None:
    assert run(*arguments).returncode == 2


def test_help_names_every_option() -> None:
    ended = run("--help")
    assert ended.returncode == 0
    assert all(option in ended.stdout for option in ("--app", "--port", "--state", "--log", "--verbose"))


def test_a_signal_waits_for_what_runs_and_a_second_one_does_not(empty_app: Path, tmp_path: Path) -> None:
    began = tmp_path / "began"
    (empty_app / "function_app.py").write_text(
        "import threading, pathlib, azure.functions as func\n"
        "app = func.FunctionApp()\n"
        '@app.timer_trigger(schedule="0 0 5 * * *", arg_name="t", run_on_startup=True)\n'
        f"def never_ends(t):\n    pathlib.Path({str(began)!r}).touch()\n    threading.Event().wait()\n"
    )
    host = StartedHost(empty_app)
    host.until(began.exists)
    host.process.send_signal(signal.SIGTERM)
    request = urllib.request.Request(f"{host.base_url}/admin/host/drain/status")
    host.until(lambda: json.loads(urllib.request.urlopen(request).read())["state"] == "InProgress")
    assert host.stop(signal.SIGTERM)[0] == 1
