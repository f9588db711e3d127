"""The command: its output, its exit code and its log."""

import json
import signal
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from local.functions_host.__main__ import main
from tests.acceptance.functions_host.command_line import StartedHost, run
from tests.acceptance.functions_host.sample import write_settings
from tests.acceptance.worker.started import send_to_the_end


def test_routes_one_ready_line_and_a_log_line_per_record_are_written(app: Path, tmp_path: Path) -> None:
    hubs_off = {f"AzureWebJobs.{name}.Disabled": "true" for name in ("ingest", "ingest_async", "ingest_texts")}
    write_settings(app, **hubs_off)
    log = tmp_path / "host.jsonl"
    host = StartedHost(app, "--log", str(log))
    assert host.lines[-1] == f"functions host ready on {host.base_url}"
    assert f"  item: [GET,POST] {host.base_url}/api/items/{{id:int}}/{{part?}}" in host.lines
    assert "  tick: timerTrigger" in host.lines
    with urllib.request.urlopen(f"{host.base_url}/api/files/a") as answer:
        assert answer.read() == b"a by file"
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(f"{host.base_url}/api/broken")
    code, errors = host.stop(signal.SIGINT)
    assert (code, errors.count("Traceback")) == (0, 1)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    (failed,) = [line for line in lines if line.get("action") == "function_failed"]
    assert failed["error"] == "ValueError: a secret in the text"
    assert failed["function_name"] == "broken"
    assert len(failed["invocation_id"]) == 36
    assert "function_app.py" in failed["stack"]
    assert {"time", "level", "logger", "message"} <= failed.keys()


def test_an_app_that_cannot_run_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    ended = run("--app", str(tmp_path))
    assert (ended.returncode, len(ended.stderr.splitlines())) == (1, 1)
    assert ended.stderr.startswith("functions host: ")
    assert "host.json does not exist" in ended.stderr


def test_bad_arguments_are_exit_code_2() -> None:
    wrong = ["--port", "x"], ["--port", "70000"], ["--what"], ["--reopen-after", "soon"], ["--longest-pause", "long"]
    for arguments in wrong:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2, arguments


def test_a_signal_waits_for_running_functions_and_a_second_ctrl_c_does_not(empty_app: Path, tmp_path: Path) -> None:
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
    assert host.stop(signal.SIGINT)[0] == 1


def test_signals_that_come_to_the_very_end_change_nothing(empty_app: Path) -> None:
    (empty_app / "function_app.py").write_text("import azure.functions as func\napp = func.FunctionApp()\n")
    host = StartedHost(empty_app)
    send_to_the_end(host.process)
    host.process.communicate()
    assert host.process.returncode == 0
