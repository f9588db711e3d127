import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from examples.home_security import aggregates
from local.programs import SIGNALS, Interrupted, Interruption
from local.run import main
from local.serve import main as serve
from local.stack.folders import kept_folder


@pytest.fixture
def interruption() -> Iterator[Interruption]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    listening = Interruption()
    listening.listen()
    yield listening
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_signal_comes_out_of_the_next_pause(interruption: Interruption) -> None:
    interruption.pause(0)
    os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(Interrupted, match="stopped by SIGTERM"):
        interruption.pause(10)


def test_a_run_refuses_a_taken_port_a_folder_that_cannot_be_written_and_a_transform_with_faults(
    taken_port: int, free_port: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusal(folder: Path, hub_port: int = free_port, port: int = free_port) -> str:
        assert main(["--hub-port", str(hub_port), "--port", str(port), "--folder", str(folder)]) == 1
        return capsys.readouterr().err

    run, file = tmp_path / "run", tmp_path / "file"
    file.touch()
    for said, option in ((refusal(run, hub_port=taken_port), "--hub-port"), (refusal(run, port=taken_port), "--port")):
        assert said.startswith(f"run: port {taken_port} is taken")
        assert said.endswith(f"choose another with {option}\n")
    assert refusal(file / "run").startswith(f"run: {file}/run cannot be written (Not a directory): choose")
    (tmp_path / "aggregates").mkdir()
    (tmp_path / "aggregates" / "broken.py").write_text("COUNT = 1\nCOUNT / 0\n")
    monkeypatch.setattr(aggregates, "__path__", [*aggregates.__path__, str(tmp_path / "aggregates")])
    message = refusal(run)
    assert message.startswith("run: ") and "broken.py:2: ZeroDivisionError" in message
    assert not run.exists()
    with pytest.raises(SystemExit):
        main(["--transform", "core.transforms.missing"])
    last = capsys.readouterr().err.splitlines()[-1]
    assert "no room core.transforms.missing: name home_security, flight_info or " in last


def test_a_folder_without_a_demo_a_port_in_use_and_a_demo_that_runs_are_not_served(
    tmp_path: Path, taken_port: int, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def refusal(*more: str) -> str:
        assert serve(["--folder", str(tmp_path), *more]) == 1
        return capsys.readouterr().err

    assert refusal() == f"serve: {tmp_path} holds no demo: run make demo first\n"
    with closing(sqlite3.connect(tmp_path / "record.db")) as record:  # the part that is read before the start
        record.execute("CREATE TABLE feed (transform TEXT)")
        record.execute("INSERT INTO feed VALUES ('examples.home_security')")
        record.commit()
    assert refusal("--port", str(taken_port)).startswith(f"serve: port {taken_port} is taken")
    with kept_folder(tmp_path):
        assert "another run uses" in refusal("--port", str(free_port))
