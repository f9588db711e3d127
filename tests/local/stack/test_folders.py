"""local/stack/folders.py"""

import os
from pathlib import Path

import pytest

from local.stack.folders import FolderInUse, fresh_folder, kept_folder, running_address


def test_a_kept_folder_keeps_its_content(tmp_path: Path) -> None:
    with kept_folder(tmp_path / "run") as folder:
        (folder / "store.db").write_text("rows")
    with kept_folder(tmp_path / "run") as folder:
        assert (folder / "store.db").read_text() == "rows"


def test_a_kept_folder_is_for_one_run_at_a_time(tmp_path: Path) -> None:
    with (
        kept_folder(tmp_path),
        pytest.raises(FolderInUse, match="end that one first"),
        kept_folder(tmp_path),
    ):
        pass


def test_a_fresh_folder_is_empty_and_what_ended_runs_left_is_removed(tmp_path: Path) -> None:
    with fresh_folder(tmp_path) as first:
        (first / "store.db").write_text("rows")
    with fresh_folder(tmp_path) as second:
        assert not first.exists()
        assert not (second / "store.db").exists()


def test_a_fresh_folder_leaves_the_folder_of_a_running_run(tmp_path: Path) -> None:
    with fresh_folder(tmp_path) as first, fresh_folder(tmp_path) as second:
        assert first.exists()
        assert second.exists()


def test_the_newest_host_of_a_run_or_a_demo_is_found_while_it_lives(tmp_path: Path) -> None:
    for folder in (tmp_path / "run", tmp_path / "demo" / "run-1"):
        folder.mkdir(parents=True)
        for at, port in enumerate((1, 2), start=1):
            output = folder / f"host-{at}.out"
            output.write_text(f"starting\nfunctions host ready on http://localhost:{port}/\n")
            os.utime(output, (at, at))
        asked = tmp_path if folder.parent.name == "demo" else folder
        assert running_address(asked) is None
        with kept_folder(folder):
            assert running_address(asked) == "http://localhost:2"
        assert running_address(asked) is None
