"""local/stack/processes.py"""

import os
import time
from pathlib import Path

import pytest

from local.stack.processes import ChildFailed, Children, Command, tail


def command(what: str) -> Command:
    return Command(what, "tests.local.child", [what])


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_child_is_ready_after_its_ready_line_and_does_not_outlive_the_block_after_an_error(tmp_path: Path) -> None:
    pids = []
    with pytest.raises(OSError, match="disturbed"), Children(tmp_path) as children:
        for _ in range(2):
            child = children.start(command("ready"))
            assert child.wait_ready("child ready on ", time.sleep) == "child ready on 42"
            pids.append(child.pid)
        raise OSError("disturbed")
    assert all(gone(pid) for pid in pids)


def test_a_deaf_child_is_killed_after_the_grace_and_a_killed_child_is_gone(tmp_path: Path) -> None:
    with Children(tmp_path) as children:
        deaf, ready = children.start(command("deaf")), children.start(command("ready"))
        for child in (deaf, ready):
            child.wait_ready("ready", time.sleep)
        deaf.end(grace=0.1)
        ready.kill()
        assert (gone(deaf.pid), gone(ready.pid)) == (True, True)
        assert deaf.exit_code() == -9


def test_a_child_that_dies_is_reported_with_its_last_lines(tmp_path: Path) -> None:
    with Children(tmp_path) as children:
        dead = children.start(command("dead"))
        with pytest.raises(ChildFailed, match="dead ended with code 3:\n  no such hub"):
            dead.wait_ready("ready", time.sleep)
        with pytest.raises(ChildFailed, match="no such hub"):
            dead.wait_done(time.sleep)


def test_a_child_that_ends_well_is_no_failure(tmp_path: Path) -> None:
    with Children(tmp_path) as children:
        children.start(command("done")).wait_done(time.sleep)


def test_a_tail_is_the_last_lines_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "long").write_text("\n".join(str(number) for number in range(100_000)))
    assert tail(tmp_path / "long").splitlines()[-2:] == ["  99998", "  99999"]
    assert len(tail(tmp_path / "long").splitlines()) == 15
    assert tail(tmp_path / "missing") == ""
