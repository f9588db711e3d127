import json
import os
import signal
import urllib.error
import urllib.request
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import pytest

from local.functions_host.__main__ import main
from local.functions_host.errors import RECYCLED
from local.functions_host.supervisor import EXCEEDED
from tests.acceptance.functions_host.sample import ALONE, StartedHost, refused, write_settings
from tests.acceptance.started import send_to_the_end
from tests.patience import Patience

NO_FUNCTION = "import azure.functions as func\napp = func.FunctionApp()\n"
NEVER_ENDS = """import threading, pathlib, azure.functions as func
app = func.FunctionApp()
@app.timer_trigger(schedule="0 0 5 * * *", arg_name="t", run_on_startup=True)
def never_ends(t):
    pathlib.Path("BEGAN").touch()
    threading.Event().wait()
"""
MORTAL = """import os, azure.functions as func
app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)
@app.route(route="alive")
def alive(req: func.HttpRequest) -> str:
    return str(os.getpid())
@app.route(route="die")
def die(req: func.HttpRequest) -> str:
    os._exit(86)
"""


def test_routes_one_ready_line_and_a_log_line_per_record_are_written(app: Path, tmp_path: Path) -> None:
    write_settings(app, **ALONE, **{"AzureWebJobs.ingest.Disabled": "true"})
    log = tmp_path / "host.jsonl"
    host = StartedHost(app, "--log", str(log))
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
    assert (failed["function_name"], failed["error"]) == ("broken", "ValueError: a secret in the text")
    assert len(failed["invocation_id"]) == 36 and "function_app.py" in failed["stack"]
    assert {"time", "level", "logger", "message"} <= failed.keys()


def test_an_app_unable_to_run_is_one_line_and_is_not_started_again_and_bad_arguments_are_code_2(tmp_path: Path) -> None:
    for more in ((), ("--like-azure",)):
        assert "host.json does not exist" in refused("--app", str(tmp_path), *more)
    for wrong in ("--port=x", "--port=70000", "--what", "--reopen-after=soon", "--longest-pause=long"):
        with pytest.raises(SystemExit) as ended:
            main([wrong])
        assert ended.value.code == 2, wrong


def test_a_signal_waits_for_running_functions_and_a_second_ctrl_c_does_not(empty_app: Path, tmp_path: Path) -> None:
    began = tmp_path / "began"
    (empty_app / "function_app.py").write_text(NEVER_ENDS.replace("BEGAN", str(began)))
    host = StartedHost(empty_app)
    host.until(began.exists)
    host.process.send_signal(signal.SIGTERM)
    request = urllib.request.Request(f"{host.base_url}/admin/host/drain/status")
    host.until(lambda: json.loads(urllib.request.urlopen(request).read())["state"] == "InProgress")
    assert host.stop(signal.SIGINT)[0] == 1
    (empty_app / "function_app.py").write_text(NO_FUNCTION)
    host = StartedHost(empty_app)
    send_to_the_end(host.process)
    host.process.communicate()
    assert host.process.returncode == 0, "signals that come to the very end change nothing"


@pytest.fixture
def mortal(empty_app: Path) -> Path:
    (empty_app / "function_app.py").write_text(MORTAL)
    return empty_app


def asked(host: StartedHost, path: str) -> int:
    """Return the process that answers. 0 without an answer."""
    with suppress(OSError, HTTPException), urllib.request.urlopen(f"{host.base_url}/api/{path}") as answer:
        return int(answer.read())
    return 0


def test_a_dead_worker_is_started_again_until_the_third_death(mortal: Path, tmp_path: Path) -> None:
    log = tmp_path / "host.jsonl"
    host, seen = StartedHost(mortal, "--like-azure", "--log", str(log)), set()
    for _ in range(3):
        host.until(lambda: asked(host, "alive"))
        seen.add(asked(host, "alive"))
        asked(host, "die")
    _, errors = host.process.communicate()
    assert (host.process.returncode, len(seen), errors.count(EXCEEDED)) == (RECYCLED, 3, 1)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    died = [(one["exit_code"], one["deaths"]) for one in lines if one.get("action") == "worker_died"]
    assert died == [(86, 1), (86, 2), (86, 3)]
    assert lines[-1]["action"] == "host_recycled"


def test_a_signal_ends_host_and_worker_in_order_and_the_worker_of_a_killed_host_ends_too(mortal: Path) -> None:
    host = StartedHost(mortal, "--like-azure")
    assert asked(host, "alive") not in (0, host.process.pid)
    assert host.stop(signal.SIGTERM) == (0, "")
    host = StartedHost(mortal, "--like-azure")
    worker = asked(host, "alive")
    host.process.kill()
    patience = Patience(10)
    with suppress(ProcessLookupError):
        while True:
            os.kill(worker, 0)
            patience.pause()
    host.process.communicate()
