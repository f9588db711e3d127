"""A host whose worker dies: it is started again on the same port, and the third death ends it, in Azure's words."""

import json
import os
import signal
import urllib.request
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import pytest

from local.functions_host.errors import RECYCLED
from local.functions_host.supervisor import EXCEEDED
from tests.acceptance.functions_host.command_line import StartedHost, run
from tests.patience import Patience

pytestmark = pytest.mark.slow

APP = (
    "import os, azure.functions as func\n"
    "app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)\n"
    '@app.route(route="alive")\ndef alive(req: func.HttpRequest) -> str:\n    return str(os.getpid())\n'
    '@app.route(route="die")\ndef die(req: func.HttpRequest) -> str:\n    os._exit(86)\n'
)


@pytest.fixture
def mortal(empty_app: Path) -> Path:
    (empty_app / "function_app.py").write_text(APP)
    return empty_app


def asked(host: StartedHost, path: str) -> int:
    """Return the process that answers; 0 without an answer."""
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
    assert (host.process.returncode, len(seen)) == (RECYCLED, 3)
    assert errors.count(EXCEEDED) == 1
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    died = [(one["exit_code"], one["deaths"]) for one in lines if one.get("action") == "worker_died"]
    assert died == [(86, 1), (86, 2), (86, 3)]
    assert lines[-1]["action"] == "host_recycled"


def test_a_signal_ends_host_and_worker_in_order(mortal: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        host = StartedHost(mortal, "--like-azure")
        assert asked(host, "alive") not in (0, host.process.pid)
        assert host.stop(number) == (0, "")


def test_the_worker_of_a_killed_host_ends_too(mortal: Path) -> None:
    host = StartedHost(mortal, "--like-azure")
    worker = asked(host, "alive")
    host.process.kill()
    patience = Patience(10)
    with suppress(ProcessLookupError):
        while True:
            os.kill(worker, 0)
            patience.pause()
    host.process.communicate()


def test_an_app_that_cannot_run_is_not_started_again(tmp_path: Path) -> None:
    ended = run("--app", str(tmp_path), "--like-azure")
    assert (ended.returncode, len(ended.stderr.splitlines())) == (1, 1)
