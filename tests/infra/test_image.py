"""The image of the worker: its Dockerfile keeps its policies, and its files and packages are enough to work."""

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from azure.eventhub import EventData
from packaging.requirements import Requirement

from core.worker.health import ANSWER_WITHIN, PATH
from tests.acceptance.worker.conftest import place  # noqa: F401  # the fixture
from tests.acceptance.worker.started import DEADLINE, TIMES, Workplace, settings_of
from tests.infra import dockerfile
from tests.infra.bicep import read_folder, shown
from tests.infra.dockerfile import POLICIES, Policy
from tests.offenders import holds_for
from tests.patience import allowed, ended
from tests.repo.product import ROOT

TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
IMAGE = dockerfile.read(TEXT)
RESTRICTED = Path(__file__).with_name("restricted.py")

# By policy: the text that stands there, and the violation that is planted in its place.
PLANTED: dict[Policy, list[tuple[str, str]]] = {
    dockerfile.base_is_one_version: [
        ("FROM python:3.11.14-slim-bookworm\n", "FROM python:3.11-slim-bookworm\n"),
        ("FROM python:3.11.14-slim-bookworm\n", "FROM python:latest\n"),
        ("FROM python:3.11.14-slim-bookworm\n", "FROM python:3.12.12-slim-bookworm\n"),
    ],
    dockerfile.nobody_is_root: [
        ("USER 10001:10001\n", ""),
        ("USER 10001:10001", "USER 0:0"),
        ("USER 10001:10001", "USER worker"),
        ("USER 10001:10001", "USER 10001:10001\nCOPY docs ./docs"),
    ],
    dockerfile.nothing_unknown_is_fetched: [
        ("COPY core ./core", "ADD core ./core"),
        ("gpg --show-keys --with-colons microsoft.asc | grep -q", "true || grep"),
        ("[signed-by=/usr/share/keyrings/microsoft-prod.gpg]", "[trusted=yes]"),
        ("curl -fsSL --proto =https", "curl -fsSL http://x | bash; curl"),
        ("curl -fsSL", "curl -k -fsSL"),
        ("--only-binary=:all: ", ""),
    ],
    dockerfile.the_image_is_small: [
        ("msodbcsql18 unixodbc \\\n    && rm -rf /var/lib/apt/lists/*", "msodbcsql18 unixodbc"),
        ("--no-install-recommends msodbcsql18", "msodbcsql18"),
        ("--no-cache-dir ", ""),
        ("RUN python -m compileall", "RUN pip install --no-cache-dir six && python -m compileall"),
        ("COPY sql ./sql", "COPY . ./"),
    ],
    dockerfile.nothing_holds_a_secret: [
        ("WORKDIR /app", "ARG STORE\nWORKDIR /app"),
        ("PYTHONUNBUFFERED=1", "PYTHONUNBUFFERED=1 RESIDENT_LINK_SECRET=x"),
    ],
    dockerfile.signals_arrive: [
        ('ENTRYPOINT ["python", "-m", "core.worker"]', "ENTRYPOINT python -m core.worker"),
        ('CMD ["--health", "0.0.0.0:8080"]', "CMD --health 0.0.0.0:8080"),
        ("STOPSIGNAL SIGTERM", "STOPSIGNAL SIGQUIT"),
    ],
    dockerfile.health_is_asked_where_it_is_answered: [
        ("127.0.0.1:8080", "127.0.0.1:8081"),
        ("EXPOSE 8080", "EXPOSE 80"),
        ('"core.worker.health"', '"core.worker"'),
        ("HEALTHCHECK", "# HEALTHCHECK"),
    ],
}


def test_the_dockerfile_keeps_every_policy() -> None:
    assert [fault for policy in POLICIES for fault in policy(IMAGE)] == []


@holds_for(POLICIES)
def test_a_policy_of_the_image_finds_each_violation_that_is_planted(policy: Policy) -> None:
    unseen = []
    for stands, planted in PLANTED[policy]:
        assert stands in TEXT, f"the Dockerfile no longer says {stands!r}"
        if not list(policy(dockerfile.read(TEXT.replace(stands, planted, 1)))):
            unseen.append(planted)
    assert PLANTED[policy] and unseen == []


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
    assert admitted == {*dockerfile.copied(IMAGE), "requirements-worker.txt"}


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
    for source, destination in dockerfile.copied(IMAGE).items():
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
        check = command([*dockerfile.health_check(IMAGE)[:-1], json.loads(first)["health"]])
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
    entry, (option, _) = dockerfile.last(IMAGE, "ENTRYPOINT").words, dockerfile.last(IMAGE, "CMD").words
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
    assert asked == {"path": PATH, "port": int(dockerfile.last(IMAGE, "EXPOSE").text)}
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
    wanted |= {f"{one}/**" if (ROOT / one).is_dir() else one for one in dockerfile.copied(IMAGE)}
    assert set(paths.removeprefix("paths: [").removesuffix("]").split(", ")) == wanted
