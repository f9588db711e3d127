import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.home_security import aggregates
from local.programs import SIGNALS, Interruption
from local.run import main


@pytest.fixture
def interruption() -> Iterator[Interruption]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    listening = Interruption()
    listening.listen()
    yield listening
    for number, handler in before.items():
        signal.signal(number, handler)


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
