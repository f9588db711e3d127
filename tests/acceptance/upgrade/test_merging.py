"""A user merges our releases by the commands of docs/upgrading.md, with real git and without a conflict."""

import shutil
from pathlib import Path

import pytest

from tests.acceptance.upgrade.git import (
    GIT,
    Repository,
    clone,
    commands,
    first_release,
    init_by_azd,
    join,
    release,
    run,
    upgrade,
)

pytestmark = [pytest.mark.soak, pytest.mark.skipif(GIT is None, reason="git is missing: apt-get install git")]

BIG = ("bench/", "docs/", "handlers/", "jobs/", "local/", "tests/")  # nothing is run here, and git is slow with them
USAGE = 129  # the code of git's commands without arguments
ROOM = "apps/orders/transform.py"


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """Our repository with three releases."""
    ours = first_release(tmp_path_factory.mktemp("ours") / "hubledger", BIG)
    release(ours, "v0.3.0")
    release(ours, "v0.4.0")
    return ours


@pytest.fixture(scope="module")
def joined(ours: Repository, tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """The repository of a user who started with azd, has a room, and joined the histories."""
    theirs = init_by_azd(ours, tmp_path_factory.mktemp("joined") / "theirs")
    theirs.write(ROOM, "VERSION = 'orders/1'\n")
    theirs.commit("Add our room")
    join(theirs, ours)
    return theirs


@pytest.fixture
def theirs(joined: Repository, tmp_path: Path) -> Repository:
    """A copy of that repository for one test."""
    return clone(joined, tmp_path / "theirs")


def files(of: Repository, commit: str) -> set[tuple[str, ...]]:
    """Return the files of a commit with their contents' ids."""
    return {tuple(line.split(maxsplit=3)) for line in of.git("ls-tree -r", commit).splitlines()}


def added(theirs: Repository, ours: Repository, version: str) -> list[str]:
    """Return the files that a user has beside those of a release; AssertionError when one of ours differs."""
    assert files(ours, version) - files(theirs, "HEAD") == set()
    return sorted(one[3] for one in files(theirs, "HEAD") - files(ours, version))


def test_two_releases_leave_exactly_our_files_and_the_room(theirs: Repository, ours: Repository) -> None:
    assert added(theirs, ours, "v0.2.0") == [ROOM]
    for version in ("v0.3.0", "v0.4.0"):
        upgrade(theirs, ours, version)
        assert added(theirs, ours, version) == [ROOM]
    assert theirs.git("status --porcelain") == theirs.git("tag") == ""


def test_a_merge_without_the_join_would_conflict(ours: Repository, tmp_path: Path) -> None:
    theirs = init_by_azd(ours, tmp_path / "theirs")
    theirs.git("fetch", f"file://{ours.folder}", "v0.3.0")
    assert "unrelated histories" in theirs.try_git("merge FETCH_HEAD").stderr
    conflicts = theirs.try_git("merge --allow-unrelated-histories FETCH_HEAD").stdout
    assert "CONFLICT (add/add): Merge conflict in core/errors.py" in conflicts


def test_a_conflict_in_a_file_of_ours_is_reported_and_can_be_taken_back(theirs: Repository, ours: Repository) -> None:
    theirs.append("core/errors.py", "\n# our own change\n")
    theirs.append("host.json", "\n")
    theirs.commit("Change files of the template")
    run(commands("Each release")[:1], theirs, ours)
    done = theirs.try_git("merge FETCH_HEAD")
    assert done.returncode == 1
    assert "CONFLICT (content): Merge conflict in core/errors.py" in done.stdout
    assert theirs.git("diff --name-only --diff-filter=U") == "core/errors.py\n"
    assert "Change files of the template" in theirs.git("log --oneline --first-parent -- core/errors.py")
    assert "+# of release v0.3.0" in theirs.git("diff HEAD...MERGE_HEAD -- core/errors.py")
    theirs.git("merge --abort")
    assert theirs.git("status --porcelain") == ""


def added_names(theirs: Repository, ours: Repository) -> set[str]:
    """Return the names of the files in which a user differs from release v0.3.0."""
    return {one[3] for one in files(theirs, "HEAD") ^ files(ours, "v0.3.0")}


def test_a_change_before_the_join_is_kept(ours: Repository, tmp_path: Path) -> None:
    theirs = init_by_azd(ours, tmp_path / "theirs")
    theirs.append("host.json", "\n")
    theirs.git("rm --quiet LICENSE")
    theirs.commit("Change the template before the join")
    join(theirs, ours)
    upgrade(theirs, ours, "v0.3.0")
    assert added_names(theirs, ours) == {"host.json", "LICENSE"}


def test_a_deleted_example_is_reported_each_time_that_it_changes(theirs: Repository, ours: Repository) -> None:
    theirs.git("rm -r --quiet examples/flight_info core/errors.py")
    theirs.commit("Delete an example, and a file that releases change")
    run(commands("Each release")[:1], theirs, ours)
    done = theirs.try_git("merge FETCH_HEAD")
    assert done.stdout.count("CONFLICT") == done.stdout.count("CONFLICT (modify/delete): core/errors.py") == 1
    theirs.git("rm --quiet core/errors.py")
    theirs.git("commit --quiet --no-edit")
    assert not (theirs.folder / "examples/flight_info").exists()


def test_a_squashed_upgrade_is_joined_again(theirs: Repository, ours: Repository) -> None:
    theirs.git("fetch hubledger v0.3.0")
    theirs.git("merge --squash FETCH_HEAD")
    theirs.commit("Upgrade, squashed")
    theirs.git("fetch hubledger v0.4.0")
    assert "CONFLICT" in theirs.try_git("merge FETCH_HEAD").stdout
    theirs.git("merge --abort")
    theirs.git("fetch hubledger v0.3.0")
    run([commands("Join once")[2]], theirs, ours)
    upgrade(theirs, ours, "v0.4.0")
    assert added(theirs, ours, "v0.4.0") == [ROOM]


def test_line_ends_of_windows_are_no_conflict(ours: Repository, tmp_path: Path) -> None:
    theirs = init_by_azd(ours, tmp_path / "theirs", {"core.autocrlf": "true"})
    join(theirs, ours)
    upgrade(theirs, ours, "v0.3.0")
    assert added(theirs, ours, "v0.3.0") == []
    assert b"\r" not in (theirs.folder / "infra/hooks/federate.sh").read_bytes()


def test_a_shallow_clone_needs_the_whole_history(ours: Repository, tmp_path: Path) -> None:
    between = Repository(shutil.copytree(ours.folder, tmp_path / "ours"), {})
    between.append("core/settings.py", "\n# after the release\n")
    between.commit("A commit between two releases")
    release(between, "v0.5.0")
    clone = Repository(tmp_path / "theirs", {})
    clone.folder.mkdir()
    clone.git("clone --quiet --depth 2", f"file://{between.folder}", ".")
    clone.git("checkout --quiet -B main HEAD~1")
    clone.git("remote rename origin hubledger")
    clone.git("fetch --unshallow hubledger")
    clone.write(ROOM, "VERSION = 'orders/1'\n")
    clone.commit("Add our room")
    upgrade(clone, between, "v0.5.0")
    assert added(clone, between, "v0.5.0") == [ROOM]


def test_the_commit_of_a_start_between_two_releases_is_found(joined: Repository, ours: Repository) -> None:
    found = run(commands("Join once")[3:5], joined, ours)
    assert [line.split()[1] for line in found.splitlines()] == [ours.git("rev-parse v0.2.0").strip()]


def test_a_folder_of_a_larger_repository_takes_a_release_by_subtree(ours: Repository, tmp_path: Path) -> None:
    theirs = Repository(tmp_path / "theirs", {})
    theirs.folder.mkdir()
    theirs.git("init --quiet --initial-branch main")
    theirs.write("README.md", "Ours\n")
    theirs.commit("Begin")
    if theirs.try_git("subtree").returncode != USAGE:
        pytest.skip("git has no subtree here")
    add, pull = commands("In a folder of a larger repository")
    run([add], theirs, ours)
    theirs.write(f"hubledger/{ROOM}", "VERSION = 'orders/1'\n")
    theirs.commit("Add our room")
    run([f"{pull} --message Upgrade"], theirs, ours)
    beside = {tuple(line.split(maxsplit=3)) for line in theirs.git("ls-tree -r HEAD:hubledger").splitlines()}
    assert sorted(one[3] for one in beside ^ files(ours, "v0.3.0")) == [ROOM]
