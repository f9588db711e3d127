"""local/serve.py: the folders and ports that it refuses before anything starts."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from local.serve import main
from local.stack.folders import kept_folder


def test_a_folder_without_a_demo_a_port_in_use_and_a_demo_that_runs_are_refused(
    tmp_path: Path, taken_port: int, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def refusal(*more: str) -> str:
        assert main(["--folder", str(tmp_path), *more]) == 1
        return capsys.readouterr().err

    assert refusal() == f"serve: {tmp_path} holds no demo: run make demo first\n"
    with closing(sqlite3.connect(tmp_path / "record.db")) as record:  # the part that is read before the start
        record.execute("CREATE TABLE feed (transform TEXT)")
        record.execute("INSERT INTO feed VALUES ('examples.home_security')")
        record.commit()
    assert refusal("--port", str(taken_port)).startswith(f"serve: port {taken_port} is taken")
    with kept_folder(tmp_path):
        assert "another run uses" in refusal("--port", str(free_port))
