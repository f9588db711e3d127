"""Real git in temporary folders: our releases, the repository of a user, and the commands of docs/upgrading.md."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.checkout import copy_checkout
from tests.repo.product import ROOT

TEXT = """-- The change of release {version}.
CREATE TABLE hubledger.{name} (number bigint NOT NULL);
ALTER TABLE hubledger.batch_ledger ADD {name} bigint;
CREATE INDEX ix_batch_ledger_{name} ON hubledger.batch_ledger (stream_id, committed_at) WITH (ONLINE = ON);
"""  # a table, and a column and an index of a table that each commit writes


def add_migration(folder: Path, version: str) -> int:
    migrations = folder / "sql/migrations"
    number = 1 + max(int(path.name[:4]) for path in migrations.glob("*.sql"))
    name = f"of_{version.replace('.', '_')}"
    path = migrations / f"{number:04}_{name}.sql"
    path.write_text(TEXT.format(version=version, name=name), encoding="utf-8", newline="\n")
    return number


GIT = shutil.which("git")
PEOPLE = {f"GIT_{role}_{word}": "someone" for role in ("AUTHOR", "COMMITTER") for word in ("NAME", "EMAIL")}
ALONE = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_MERGE_AUTOEDIT": "no"}


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository in a folder. `settings` are those of git that its owner chose."""

    folder: Path
    settings: Mapping[str, str]

    def git(self, command: str, *more: str) -> str:
        """Run a command of git and return its output. Raises AssertionError when it fails."""
        done = self.try_git(command, *more)
        assert done.returncode == 0, f"git {command} {' '.join(more)}: {done.stdout}{done.stderr}"
        return done.stdout

    def try_git(self, command: str, *more: str) -> "subprocess.CompletedProcess[str]":
        return self._run([str(GIT), *command.split(), *more])

    def shell(self, line: str) -> str:
        """Run a line of a page and return its output. Raises AssertionError when it fails."""
        done = self._run(["bash", "-c", line])
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        return done.stdout

    def try_python(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run Python on the code of the working tree. It may fail."""
        return self._run([sys.executable, *arguments])

    def python(self, *arguments: str) -> str:
        """Run Python on the code of the working tree, and return its output. Raises AssertionError when it fails."""
        done = self.try_python(*arguments)
        assert done.returncode == 0, f"{' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")

    def append(self, name: str, text: str) -> None:
        self.write(name, (self.folder / name).read_text(encoding="utf-8") + text)

    def commit(self, message: str) -> None:
        self.git("add --all")
        self.git("commit --quiet --message", message)

    def _run(self, command: list[str]) -> "subprocess.CompletedProcess[str]":
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PYTHON", "STORE_"))}
        path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
        own = {"PATH": path, "PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        own["GIT_CONFIG_COUNT"] = str(len(self.settings))
        for at, (name, value) in enumerate(self.settings.items()):
            own |= {f"GIT_CONFIG_KEY_{at}": name, f"GIT_CONFIG_VALUE_{at}": value}
        environment = {**kept, **PEOPLE, **ALONE, **own}
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)


def new_repository(folder: Path, settings: Mapping[str, str] | None = None) -> Repository:
    folder.mkdir()
    return Repository(folder, settings or {})


def first_release(folder: Path, without: tuple[str, ...] = ()) -> Repository:
    ours = Repository(copy_checkout(folder, without), {})
    ours.git("init --quiet --initial-branch main")
    ours.commit("Release 0.2.0")
    ours.git("tag v0.2.0")
    return ours


def release(ours: Repository, version: str) -> int:
    ours.append("core/errors.py", f"\n# of release {version}\n")
    ours.append("CHANGELOG.md", f"\nRelease {version} changed this.\n")
    ours.git("rm --quiet --ignore-unmatch", "CONTRIBUTING.md")
    number = add_migration(ours.folder, version)
    ours.commit(f"Release {version}")
    ours.git("tag", version)
    return number


def init_by_azd(ours: Repository, folder: Path, settings: Mapping[str, str] | None = None) -> Repository:
    """Return a user's repository as `azd init --template` makes it: a shallow clone of a tag, without its .git."""
    theirs = new_repository(folder, settings)
    theirs.git("clone --quiet --depth 1 --branch v0.2.0", f"file://{ours.folder}", ".")
    shutil.rmtree(folder / ".git")
    theirs.git("init --quiet --initial-branch main")
    theirs.commit("Start from the template")
    return theirs


PAGE = (ROOT / "docs" / "upgrading.md").read_text(encoding="utf-8")
ADDRESS = "https://github.com/OWNER/hubledger"


def commands(section: str) -> list[str]:
    (text,) = re.findall(rf"^##+ {section}\n(.*?)(?=^##+ )", PAGE, re.S | re.M)
    return [line.split("  # ")[0].strip() for line in re.findall(r"^ *\$ (.+)$", text, re.M)]


def join(theirs: Repository, ours: Repository) -> None:
    run(commands("Join once")[:3], theirs, ours)


def upgrade(theirs: Repository, ours: Repository, version: str) -> None:
    run([line.replace("v0.3.0", version) for line in commands("Each release")[:2]], theirs, ours)


def run(lines: Sequence[str], theirs: Repository, ours: Repository) -> str:
    """Run commands in the repository of a user, with our folder as the address. Return the output of the last one."""
    return [theirs.shell(line.replace(ADDRESS, f"file://{ours.folder}")) for line in lines][-1]
