"""The image of the worker: its Dockerfile keeps its policies, and its files and packages are enough to work."""

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from azure.eventhub import EventData
from packaging.requirements import Requirement

from core.worker.health import ANSWER_WITHIN, PATH
from tests.acceptance.worker.conftest import place  # noqa: F401  # the fixture
from tests.acceptance.worker.started import DEADLINE, TIMES, Workplace, settings_of
from tests.infra.bicep import read_folder, shown
from tests.patience import allowed, ended
from tests.repo.product import ROOT

TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
RESTRICTED = Path(__file__).with_name("restricted.py")
SECRET = re.compile(r"password|secret|token|accountkey|sharedaccess", re.IGNORECASE)
FINGERPRINT = (
    "BC528686B50D79E339D3721CEB3E94ADBE1229CF"  # of Microsoft's repository: learn.microsoft.com/linux/packages
)


@dataclass(frozen=True)
class Instruction:
    """One instruction, with its continued lines joined, and the stage that it belongs to."""

    name: str
    text: str
    stage: int

    @property
    def words(self) -> list[str]:
        """The words of the exec form; none for the shell form."""
        try:
            return [str(word) for word in json.loads(self.text)]
        except ValueError:
            return []


def read(text: str) -> list[Instruction]:
    """Return the instructions of a Dockerfile."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    found: list[Instruction] = []
    stage = -1
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        name, _, rest = line.strip().partition(" ")
        stage += name == "FROM"
        if name:
            found.append(Instruction(name, rest.strip(), stage))
    return found


def last(instructions: Sequence[Instruction], name: str) -> Instruction:
    """Return the last instruction of a name in the last stage; an empty one when there is none."""
    stage = instructions[-1].stage
    found = [one for one in instructions if one.name == name and one.stage == stage]
    return found[-1] if found else Instruction(name, "", stage)


def copied(instructions: Sequence[Instruction]) -> dict[str, str]:
    """Return what the last stage copies from the project: each source with its destination."""
    stage = instructions[-1].stage
    given = (one.text.split() for one in instructions if one.name == "COPY" and one.stage == stage)
    return {words[0]: words[1] for words in given if not words[0].startswith("--")}


def health_check(instructions: Sequence[Instruction]) -> list[str]:
    """Return the command that asks for the health of the container."""
    return Instruction("CMD", last(instructions, "HEALTHCHECK").text.partition("CMD ")[2], 0).words


IMAGE = read(TEXT)


def of(name: str) -> list[Instruction]:
    return [one for one in IMAGE if one.name == name]


def test_each_stage_has_the_same_slim_base_by_its_patch_version() -> None:
    (base,) = {one.text.partition(" AS ")[0] for one in of("FROM")}
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+", base)


def test_the_user_is_a_number_that_is_not_root_and_owns_no_file() -> None:
    user = last(IMAGE, "USER")
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user.text), "Kubernetes sees by a number that it is not root"
    assert {one.name for one in IMAGE[IMAGE.index(user) :]} & {"RUN", "COPY"} == set()


def test_nothing_unknown_is_fetched() -> None:
    runs = " ".join(one.text for one in of("RUN"))
    assert of("ADD") == []
    assert not re.search(r"\|\s*(sudo )?(ba|da)?sh\b|http://", runs)
    assert f"grep -q '^fpr:::::::::{FINGERPRINT}:$'" in runs and "[signed-by=" in runs
    assert "--only-binary=:all: --requirement requirements-worker.txt" in runs
    assert not re.search(r"trusted=yes|--allow-unauthenticated|--no-check-certificate|--insecure|-k\b", runs)


def test_the_image_is_small() -> None:
    for one in of("RUN"):
        assert "apt-get update" not in one.text or "rm -rf /var/lib/apt/lists/*" in one.text
        assert "apt-get install" not in one.text or "--no-install-recommends" in one.text
        assert "pip install" not in one.text or "--no-cache-dir" in one.text
        assert one.stage < IMAGE[-1].stage or not re.search(r"\b(pip install|curl|gnupg)", one.text)
    assert {".", "./"} & set(copied(IMAGE)) == set()


def test_the_image_holds_no_secret() -> None:
    assert of("ARG") == [], "a build argument stays in the history"
    assert [one.text for one in of("ENV") if SECRET.search(one.text)] == []


def test_signals_arrive_and_health_is_asked_where_it_is_answered() -> None:
    """A shell keeps signals to itself."""
    assert last(IMAGE, "ENTRYPOINT").words == ["python", "-m", "core.worker"]
    assert last(IMAGE, "STOPSIGNAL").text == "SIGTERM"
    port = last(IMAGE, "EXPOSE").text
    assert last(IMAGE, "CMD").words == ["--health", f"0.0.0.0:{port}"]
    assert health_check(IMAGE) == ["python", "-m", "core.worker.health", f"127.0.0.1:{port}"]


def hadolint(file: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([_hadolint(), str(file)], capture_output=True, text=True, timeout=allowed(60), check=False)


def _hadolint() -> str:
    found = shutil.which("hadolint", path=Path(sys.executable).parent.as_posix())
    return found or pytest.skip("hadolint is not installed: pip install -r requirements-dev.txt")


def test_hadolint_finds_no_fault_and_finds_one_that_is_planted(tmp_path: Path) -> None:
    done = hadolint(ROOT / "Dockerfile")
    assert (done.returncode, done.stdout) == (0, "")
    worse = tmp_path / "Dockerfile"
    worse.write_text(TEXT.replace("USER 10001:10001", "USER root"), encoding="utf-8")
    assert "DL3002" in hadolint(worse).stdout


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return dict(
        line.partition(" ")[0].rstrip(";").split("==") for line in lines if line and not line.startswith(("#", "-r"))
    )


def test_the_packages_of_the_image_have_the_versions_that_are_tested() -> None:
    tested = pins("local/requirements.txt") | pins("requirements.txt")
    assert pins("requirements-worker.txt").items() <= tested.items()
    assert not {name for name in pins("requirements-worker.txt") if "functions" in name}


def test_only_files_that_are_copied_reach_the_build() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    admitted = {rule.removeprefix("!") for rule in rules if rule.startswith("!")}
    assert admitted == {*copied(IMAGE), "requirements-worker.txt"}


def installed() -> set[str]:
    """Return the packages that pip installs for requirements-worker.txt, with their dependencies."""
    found: set[str] = set()
    waiting = [Requirement(name) for name in pins("requirements-worker.txt")]
    while waiting:
        one = waiting.pop()
        name = re.sub(r"[-_.]+", "-", one.name).lower()
        if name not in found:
            found.add(name)
            needed = map(Requirement, metadata.requires(one.name) or ())
            waiting += [each for each in needed if each.marker is None or each.marker.evaluate({"extra": ""})]
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Copy the files of the image into an empty folder."""
    folder = tmp_path / "app"
    for source, destination in copied(IMAGE).items():
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, folder / destination, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (folder / destination).mkdir()
            shutil.copy(ROOT / source, folder / destination)
    yield folder


def command(words: list[str], *more: str) -> list[str]:
    """Return a command of the image, to be run with only the packages of the image."""
    assert words[:2] == ["python", "-m"]
    return [sys.executable, "-B", str(RESTRICTED), ",".join(sorted(installed())), *words[2:], *more]


@pytest.mark.slow
def test_the_files_and_packages_of_the_image_are_enough_to_work_and_to_drain(place: Workplace, folder: Path) -> None:  # noqa: F811
    place.producer.send_batch([EventData(b"no reading")])
    settings = settings_of(place.emulator.connection_string, place.engine.path)
    with started(folder, {**settings, "TRANSFORM": "examples.home_security"}) as worker:
        assert worker.stdout is not None
        first = worker.stdout.readline()
        assert "worker ready" in first, f"{first}{worker.communicate()[1]}"
        check = command([*health_check(IMAGE)[:-1], json.loads(first)["health"]])
        assert answers(check, folder)
        place.until(lambda: sum(place.accounted()) == 1)
        worker.send_signal(signal.SIGTERM)
        _, errors = ended(worker, DEADLINE)
    assert (worker.returncode, errors) == (0, "")
    assert place.shares() == []
    assert not answers(check, folder), "a worker that has ended is healthy"


@contextmanager
def started(folder: Path, environment: dict[str, str]) -> "Iterator[subprocess.Popen[str]]":
    """Start the container's command in the folder, at a free port, and end it."""
    entry, (option, _) = last(IMAGE, "ENTRYPOINT").words, last(IMAGE, "CMD").words
    words = command(entry, option, "127.0.0.1:0", *TIMES)
    pipe = subprocess.PIPE
    with subprocess.Popen(words, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True) as worker:
        try:
            yield worker
        finally:
            worker.kill()


def answers(check: list[str], folder: Path) -> bool:
    done = subprocess.run(check, cwd=folder, env={}, capture_output=True, timeout=allowed(DEADLINE), check=False)
    return done.returncode == 0


def of_container_apps() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters of the container app, and the question that its probes ask."""
    file = read_folder(ROOT / "infra")["app/worker.bicep"]
    app = next(one for one in file.of_kind("module") if one.name == "worker").value["params"]
    return app, file.var("health")


def test_the_probes_ask_where_the_image_answers() -> None:
    app, asked = of_container_apps()
    assert asked == {"path": PATH, "port": int(last(IMAGE, "EXPOSE").text)}
    probes = app["containers"][0]["probes"]
    assert [shown(one["httpGet"]) for one in probes] == ["health", "health"]
    assert all(one["timeoutSeconds"] >= ANSWER_WITHIN for one in probes)


def test_container_apps_waits_longer_than_the_worker_takes_to_end() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    grace = re.search(r"^\| `--grace` \| `(\d+)` \|", page, re.MULTILINE)
    assert grace is not None
    assert of_container_apps()[0]["terminationGracePeriodSeconds"] >= int(grace[1]) + 5


WORKFLOW = ROOT / ".github" / "workflows" / "image.yml"


def jobs() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: pip install -r requirements-dev.txt")
    return dict(yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"])


def test_only_a_release_pushes_the_image_and_it_pushes_what_was_tested() -> None:
    build, push = jobs()["build"], jobs()["push"]
    assert (push["if"], push["needs"], push.get("env")) == ("github.event_name == 'release'", "build", None)
    kept = [step for step in build["steps"] if "save" in step.get("run", "") or "upload" in step.get("uses", "")]
    assert [step["if"] for step in kept] == ["github.event_name == 'release'"] * 2
    commands = "".join(step.get("run", "") for step in push["steps"])
    assert "docker load" in commands and "docker build" not in commands
    assert "docker push" not in "".join(step.get("run", "") for step in build["steps"])


def test_the_workflow_of_the_image_needs_no_secret_and_may_write_packages_only_where_it_pushes() -> None:
    text = WORKFLOW.read_text(encoding="utf-8")
    assert set(re.findall(r"secrets\.(\w+)", text)) == {"GITHUB_TOKEN"}
    assert "permissions" not in jobs()["build"]
    assert jobs()["push"]["permissions"] == {"packages": "write", "id-token": "write"}
    assert all(job["timeout-minutes"] <= 20 for job in jobs().values())
    assert re.search(r"^permissions:\n  contents: read\n", text, re.MULTILINE)


def test_the_workflow_builds_when_anything_of_the_image_changes() -> None:
    text = WORKFLOW.read_text(encoding="utf-8")
    (paths,) = {line.strip() for line in text.splitlines() if line.strip().startswith("paths: ")}
    wanted = {"Dockerfile", ".dockerignore", "requirements-worker.txt", ".github/workflows/image.yml"}
    wanted |= {f"{one}/**" if (ROOT / one).is_dir() else one for one in copied(IMAGE)}
    assert set(paths.removeprefix("paths: [").removesuffix("]").split(", ")) == wanted
