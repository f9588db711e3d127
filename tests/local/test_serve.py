"""local/serve.py: the folders and ports that it refuses before anything starts."""

import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from local.serve import main
from local.stack.folders import kept_folder


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Return a folder of a demo, with the part that is read before the start."""
    with closing(sqlite3.connect(tmp_path / "record.db")) as record:
        record.execute("CREATE TABLE feed (transform TEXT)")
        record.execute("INSERT INTO feed VALUES ('examples.home_security')")
        record.commit()
    return tmp_path


def test_a_folder_without_a_demo_is_refused_with_the_way_to_get_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--folder", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (f"serve: {tmp_path} holds no demo: run make demo first\n")


def test_a_port_in_use_is_named(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        assert main(["--folder", str(kept), "--port", str(port)]) == 1
    assert capsys.readouterr().err.startswith(f"serve: port {port} is taken")


def test_a_demo_that_still_runs_is_refused(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
    with kept_folder(kept):
        assert main(["--folder", str(kept), "--port", str(port)]) == 1
    assert "another run uses" in capsys.readouterr().err
