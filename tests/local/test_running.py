"""The address of a run is found while the run lives."""

import os
from pathlib import Path

from local.stack.folders import kept_folder, running_address


def test_the_newest_host_of_a_run_is_found_while_the_run_lives(tmp_path: Path) -> None:
    for at, port in enumerate((1, 2), start=1):
        output = tmp_path / f"host-{at}.out"
        output.write_text(f"starting\nfunctions host ready on http://localhost:{port}\n")
        os.utime(output, (at, at))
    assert running_address(tmp_path) is None
    with kept_folder(tmp_path):
        assert running_address(tmp_path) == "http://localhost:2"
    assert running_address(tmp_path) is None


def test_a_demo_is_found_too(tmp_path: Path) -> None:
    folder = tmp_path / "demo" / "run-1"
    with kept_folder(folder):
        (folder / "host-1.out").write_text("functions host ready on http://localhost:3/\n")
        assert running_address(tmp_path) == "http://localhost:3"
