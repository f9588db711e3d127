import os
import time
from pathlib import Path

import pytest

from local.stack.folders import FolderInUse, fresh_folder, kept_folder, running_address
from local.stack.processes import ChildFailed, Children, Command, tail


def test_a_kept_folder_keeps_its_content_for_one_run_at_a_time(tmp_path: Path) -> None:
    with kept_folder(tmp_path / "run") as folder:
        (folder / "store.db").write_text("rows")
        with pytest.raises(FolderInUse, match="end that one first"), kept_folder(tmp_path / "run"):
            pass
    with kept_folder(tmp_path / "run") as folder:
        assert (folder / "store.db").read_text() == "rows"


def test_a_fresh_folder_is_empty_and_removes_what_ended_runs_left_and_no_running_one(tmp_path: Path) -> None:
    with fresh_folder(tmp_path) as ended:
        (ended / "store.db").write_text("rows")
    with fresh_folder(tmp_path) as first, fresh_folder(tmp_path) as second:
        assert not ended.exists()
        assert first.exists() and second.exists()
        assert [*second.glob("*.db")] == []


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


def command(what: str) -> Command:
    return Command(what, "tests.local.child", [what])


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_child_is_ready_after_its_line_and_none_outlives_the_block_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="disturbed"), Children(tmp_path) as children:
        first, second, deaf = (children.start(command(what)) for what in ("ready", "ready", "deaf"))
        for child in (first, second, deaf):
            assert child.wait_ready("child ready on ", time.sleep) == "child ready on 42"
        first.kill()
        deaf.end(grace=0.1)
        assert (gone(first.pid), gone(deaf.pid), gone(second.pid)) == (True, True, False)
        assert deaf.exit_code() == -9
        raise OSError("disturbed")
    assert gone(second.pid)


def test_a_child_that_dies_is_reported_with_its_last_lines_and_one_that_ends_well_is_no_failure(tmp_path: Path) -> None:
    with Children(tmp_path) as children:
        children.start(command("done")).wait_done(time.sleep)
        dead = children.start(command("dead"))
        with pytest.raises(ChildFailed, match="dead ended with code 3:\n  no such hub"):
            dead.wait_ready("ready", time.sleep)
        with pytest.raises(ChildFailed, match="no such hub"):
            dead.wait_done(time.sleep)
    (tmp_path / "long").write_text("\n".join(str(number) for number in range(100_000)))
    assert tail(tmp_path / "long").splitlines()[-2:] == ["  99998", "  99999"]
    assert len(tail(tmp_path / "long").splitlines()) == 15
    assert tail(tmp_path / "missing") == ""


TOTALS = {"accounted": 9, "written": 6, "filtered": 2, "dead_lettered": 1, "ledger_balanced": True, "incarnation": 2}
PARTITIONS = [
    {"hub_end": "7", "stops": [{"reason": "outage"}]},
    {"hub_end": "-1", "stops": [{"reason": "outage"}, {"reason": "held"}]},
    {"hub_end": "3", "stops": []},
]
