import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from local.acceptance.__main__ import DANGEROUS, main
from local.acceptance.hosts import Func, Somewhere
from local.acceptance.steps import Acceptance, StepFailed, Target
from local.feed.dangers import DEADLY
from local.functions_host.supervisor import free_port
from local.stack.consumers import Host
from local.stack.processes import Children
from local.stack.stack import Place, Stack
from tests.acceptance.started import start
from tests.patience import allowed, until

STEPS = ["publish", "account for every event", "read what the trigger cannot deliver"]
STEPS += ["set the event that kills aside", "redrive", "replay", "recount"]
FUNC = f"""#!/bin/sh
echo "$@" "$AzureWebJobsStorage" "$FUNCTIONS_WORKER_RUNTIME" >> "$CALLS"
exec {sys.executable} -m local.functions_host --app . --port "$3"
"""


@contextmanager
def stack_of(folder: Path, port: int = 0) -> Iterator[tuple[Stack, Children]]:
    with Children(folder) as children:
        stack = Stack(Place(folder, host_port=port), children, time.sleep)
        stack.start_emulator()
        stack.create_store(DANGEROUS)
        yield stack, children


def test_a_running_app_is_accepted_by_its_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody but this test starts its host again after a death, always at the same address."""
    monkeypatch.setenv("GAP_GRACE_SECONDS", "5")  # until the own reader takes what the trigger cannot deliver
    monkeypatch.setenv("WATCH_SCHEDULE", "*/2 * * * * *")
    with stack_of(tmp_path, free_port(0)) as (stack, _):
        host = Host(stack, DANGEROUS, (DEADLY,))
        words = ["--base", host.address, "--hub", stack.connection, "--store", f"sqlite:{stack.place.store}"]
        words += ["--events", "1000", "--folder", str(tmp_path / "run"), "--patience", str(round(allowed(60)))]
        with start("local.acceptance", *words) as running:
            until(lambda: host.refuse_dead() or running.poll() is not None, 300)  # type: ignore[func-returns-value]
            out, err = running.communicate()
    assert (running.returncode, err) == (0, "")
    figures = json.loads(out.splitlines()[-1])
    assert (figures["host"], figures["published"], list(figures["seconds"])) == ("address", 1_000, STEPS)
    assert figures["redriven"] == 5 and figures["replayed"] > 0
    assert host.deaths > 0


def test_func_runs_with_the_settings_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "func").write_text(FUNC)
    (tmp_path / "func").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    with stack_of(tmp_path) as (stack, children):
        func = Func(stack, children, "storage=here", DANGEROUS)
        func.refuse_dead()
        func._child.kill()
        func.refuse_dead()
        func.refuse_dead()
        until(lambda: len((tmp_path / "calls").read_text().splitlines()) == 2, 30)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls == [f"start --port {func.address.rpartition(':')[2]} storage=here python"] * 2


def test_a_step_that_fails_is_named_with_its_last_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = Target(Somewhere("http://127.0.0.1:1"), "no hub", tmp_path / "no store")
    acceptance = Acceptance(target, tmp_path / "record", lambda _: None, patience=0)
    with pytest.raises(StepFailed, match=r"step 'redrive' failed: nothing new in 0 s: .*refused"):
        acceptance._redrive("redrive")
    with pytest.raises(SystemExit):
        main(["--base", "http://localhost:1"])
    assert "--base, --hub and --store go together" in capsys.readouterr().err
