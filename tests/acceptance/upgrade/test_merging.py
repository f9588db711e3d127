from pathlib import Path

import pytest

from tests.acceptance.upgrade import git
from tests.acceptance.upgrade.git import GIT, Repository, commands, init_by_azd, join, new_repository

pytestmark = [pytest.mark.soak, pytest.mark.skipif(GIT is None, reason="git is missing: apt-get install git")]

BIG = ("bench/", "docs/", "handlers/", "jobs/", "local/", "tests/")  # nothing is run here, and git is slow with them
USAGE = 129  # the code of git's commands without arguments
ROOM = "apps/orders/transform.py"


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    ours = git.first_release(tmp_path_factory.mktemp("ours") / "hubledger", BIG)
    git.release(ours, "v0.3.0")
    git.release(ours, "v0.4.0")
    return ours


@pytest.fixture
def theirs(ours: Repository, tmp_path: Path) -> Repository:
    theirs = init_by_azd(ours, tmp_path / "theirs")
    add_room(theirs, ROOM)
    join(theirs, ours)
    return theirs


def add_room(theirs: Repository, name: str) -> None:
    theirs.write(name, "VERSION = 'orders/1'\n")
    theirs.commit("Add our room")


def differing(theirs: Repository, ours: Repository, version: str, folder: str = "") -> list[str]:
    def files(of: Repository, commit: str) -> set[tuple[str, ...]]:
        return {tuple(line.split(maxsplit=3)) for line in of.git("ls-tree -r", commit).splitlines()}

    return sorted({one[3] for one in files(theirs, f"HEAD{folder}") ^ files(ours, version)})


def test_releases_leave_exactly_our_files_and_the_room(theirs: Repository, ours: Repository) -> None:
    assert differing(theirs, ours, "v0.2.0") == [ROOM]
    found = git.run(commands("Join once")[3:5], theirs, ours)
    start = [line.split()[1] for line in found.splitlines()]
    assert start == [ours.git("rev-parse v0.2.0").strip()], "the commit of a start between two releases is found"
    theirs.git("fetch hubledger v0.3.0")
    theirs.git("merge --squash FETCH_HEAD")
    theirs.commit("Upgrade, squashed")
    theirs.git("fetch hubledger v0.4.0")
    assert "CONFLICT" in theirs.try_git("merge FETCH_HEAD").stdout
    theirs.git("merge --abort")
    theirs.git("fetch hubledger v0.3.0")
    git.run([commands("Join once")[2]], theirs, ours)
    for version in ("v0.3.0", "v0.4.0"):
        git.upgrade(theirs, ours, version)
    assert differing(theirs, ours, "v0.4.0") == [ROOM]
    assert theirs.git("status --porcelain") == theirs.git("tag") == ""


def test_a_conflict_in_a_file_of_ours_is_reported_and_can_be_taken_back(theirs: Repository, ours: Repository) -> None:
    theirs.append("core/errors.py", "\n# our own change\n")
    theirs.git("rm -r --quiet examples/flight_info")
    theirs.commit("Change files of the template")
    git.run(commands("Each release")[:1], theirs, ours)
    done = theirs.try_git("merge FETCH_HEAD")
    assert done.returncode == 1
    assert "CONFLICT (content): Merge conflict in core/errors.py" in done.stdout
    assert theirs.git("diff --name-only --diff-filter=U") == "core/errors.py\n"
    assert "Change files of the template" in theirs.git("log --oneline --first-parent -- core/errors.py")
    assert "+# of release v0.3.0" in theirs.git("diff HEAD...MERGE_HEAD -- core/errors.py")
    theirs.git("merge --abort")
    assert theirs.git("status --porcelain") == ""


def test_a_change_before_the_join_is_kept(ours: Repository, tmp_path: Path) -> None:
    theirs = init_by_azd(ours, tmp_path / "theirs", {"core.autocrlf": "true"})
    theirs.append("host.json", "\n")
    theirs.git("rm --quiet LICENSE")
    theirs.commit("Change the template before the join")
    join(theirs, ours)
    git.upgrade(theirs, ours, "v0.3.0")
    assert differing(theirs, ours, "v0.3.0") == ["LICENSE", "host.json"]
    assert b"\r" not in (theirs.folder / "infra/hooks/federate.sh").read_bytes()


def test_a_shallow_clone_with_its_whole_history_and_a_folder_of_a_larger_repository_take_a_release(
    ours: Repository, tmp_path: Path
) -> None:
    clone = new_repository(tmp_path / "clone")
    clone.git("clone --quiet --depth 2", f"file://{ours.folder}", ".")
    clone.git("checkout --quiet -B main HEAD~1")
    clone.git("remote rename origin hubledger")
    clone.git("fetch --unshallow hubledger")
    add_room(clone, ROOM)
    git.upgrade(clone, ours, "v0.4.0")
    assert differing(clone, ours, "v0.4.0") == [ROOM]
    larger = new_repository(tmp_path / "larger")
    larger.git("init --quiet --initial-branch main")
    larger.write("README.md", "Ours\n")
    larger.commit("Begin")
    if larger.try_git("subtree").returncode != USAGE:
        pytest.skip("git has no subtree here")
    add, pull = commands("In a folder of a larger repository")
    git.run([add], larger, ours)
    add_room(larger, f"hubledger/{ROOM}")
    git.run([f"{pull} --message Upgrade"], larger, ours)
    assert differing(larger, ours, "v0.3.0", ":hubledger") == [ROOM]
