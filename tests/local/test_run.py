"""local/run.py: the ports and transforms that it refuses before anything starts."""

from pathlib import Path

import pytest

from examples.home_security import aggregates
from local.run import main


@pytest.mark.parametrize(("taken", "other"), [("--hub-port", "--port"), ("--port", "--hub-port")])
def test_a_port_in_use_is_named_with_the_option_to_change_it(
    taken: str, other: str, taken_port: int, free_port: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([taken, str(taken_port), other, str(free_port), "--folder", str(tmp_path / "run")]) == 1
    message = capsys.readouterr().err
    assert message.startswith(f"run: port {taken_port} is taken")
    assert message.endswith(f"choose another with {taken}\n")
    assert not (tmp_path / "run").exists()


def test_a_transform_without_a_feed_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--transform", "core.transforms.missing"])
    last = capsys.readouterr().err.splitlines()[-1]
    assert "no room core.transforms.missing: name home_security, flight_info or " in last


def test_a_folder_that_cannot_be_written_is_named(
    free_port: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    ports = ["--port", str(free_port), "--hub-port", str(free_port)]
    assert main(["--folder", str(tmp_path / "file" / "run"), *ports]) == 1
    assert capsys.readouterr().err.startswith(f"run: {tmp_path}/file/run cannot be written (Not a directory): choose")


def test_a_transform_with_faults_is_refused_before_anything_starts(
    free_port: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "aggregates"
    folder.mkdir()
    (folder / "broken.py").write_text("COUNT = 1\nCOUNT / 0\n")
    monkeypatch.setattr(aggregates, "__path__", [*aggregates.__path__, str(folder)])
    ports = ["--hub-port", str(free_port), "--port", str(free_port)]
    assert main([*ports, "--folder", str(tmp_path / "run")]) == 1
    message = capsys.readouterr().err
    assert message.startswith("run: ") and "broken.py:2: ZeroDivisionError" in message
    assert not (tmp_path / "run").exists()
