"""local/run.py: what is refused before anything is started."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.run import main


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


@pytest.fixture
def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
        return port


@pytest.mark.parametrize(("taken", "other"), [("--hub-port", "--port"), ("--port", "--hub-port")])
def test_a_port_in_use_is_named_with_the_option_that_chooses_another(
    taken: str, other: str, taken_port: int, free_port: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [taken, str(taken_port), other, str(free_port), "--folder", str(tmp_path / "run")]
    assert main(options) == 1
    message = capsys.readouterr().err
    assert message.startswith(f"run: port {taken_port} cannot be used")
    assert message.endswith(f"choose another with {taken}\n")
    assert not (tmp_path / "run").exists()


def test_a_transform_that_is_not_there_is_one_line(
    free_port: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--hub-port", str(free_port), "--port", str(free_port), "--folder", str(tmp_path / "run")]
    assert main([*options, "--transform", "core.transforms.missing"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "run: TRANSFORM=core.transforms.missing: No module named 'core.transforms.missing'"
    ]
