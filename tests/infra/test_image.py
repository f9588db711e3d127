"""The image of the worker: its Dockerfile keeps its policies, and the workflow tests the image that it pushes.

That its files and packages are enough to work and to drain is shown by the workflow, which runs the image.
"""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from core.worker.health import ANSWER_WITHIN, PATH
from tests.infra.bicep import shown
from tests.infra.test_policies import FILES
from tests.patience import allowed
from tests.repo.product import ROOT

TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
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


def read(text: str) -> list[Instruction]:
    """Return the instructions of a Dockerfile."""
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    found: list[Instruction] = []
    stage = -1
    for line in re.sub(r"\\\n\s*", "", code).splitlines():
        name, _, rest = line.strip().partition(" ")
        stage += name == "FROM"
        if name:
            found.append(Instruction(name, rest.strip(), stage))
    return found


IMAGE = read(TEXT)


def of(name: str) -> list[Instruction]:
    return [one for one in IMAGE if one.name == name]


def last(name: str) -> str:
    """Return the text of the last instruction of a name in the last stage."""
    return [one.text for one in of(name) if one.stage == IMAGE[-1].stage][-1]


COPIED = {  # what the last stage copies from the project: each source with its destination
    words[0]: words[1]
    for one in of("COPY")
    for words in [one.text.split()]
    if one.stage == IMAGE[-1].stage and not words[0].startswith("--")
}
HEALTH_CHECK: list[str] = json.loads(last("HEALTHCHECK").partition("CMD ")[2])


def test_the_image_has_one_slim_base_and_a_user_that_is_not_root_and_owns_no_file() -> None:
    (base,) = {one.text.partition(" AS ")[0] for one in of("FROM")}
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+", base)
    user = next(one for one in IMAGE if one.name == "USER")
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user.text), "Kubernetes sees by a number that it is not root"
    assert {one.name for one in IMAGE[IMAGE.index(user) :]} & {"RUN", "COPY"} == set()


def test_nothing_unknown_is_fetched_and_no_secret_is_in_the_image() -> None:
    runs = " ".join(one.text for one in of("RUN"))
    assert of("ADD") == []
    assert not re.search(r"\|\s*(sudo )?(ba|da)?sh\b|http://", runs)
    assert f"grep -q '^fpr:::::::::{FINGERPRINT}:$'" in runs and "[signed-by=" in runs
    assert "--only-binary=:all: --requirement requirements-worker.txt" in runs
    assert not re.search(r"trusted=yes|--allow-unauthenticated|--no-check-certificate|--insecure|-k\b", runs)
    assert of("ARG") == [], "a build argument stays in the history"
    assert [one.text for one in of("ENV") if SECRET.search(one.text)] == []


def test_the_image_is_small() -> None:
    for one in of("RUN"):
        assert "apt-get update" not in one.text or "rm -rf /var/lib/apt/lists/*" in one.text
        assert "apt-get install" not in one.text or "--no-install-recommends" in one.text
        assert "pip install" not in one.text or "--no-cache-dir" in one.text
        assert one.stage < IMAGE[-1].stage or not re.search(r"\b(pip install|curl|gnupg)", one.text)
    assert {".", "./"} & set(COPIED) == set()


def test_signals_arrive_and_health_is_asked_where_it_is_answered() -> None:
    """A shell keeps signals to itself."""
    port = last("EXPOSE")
    assert json.loads(last("ENTRYPOINT")) == ["python", "-m", "core.worker"]
    assert json.loads(last("CMD")) == ["--health", f"0.0.0.0:{port}"]
    assert ["python", "-m", "core.worker.health", f"127.0.0.1:{port}"] == HEALTH_CHECK
    assert last("STOPSIGNAL") == "SIGTERM"
    file = FILES["app/worker.bicep"]
    assert file.var("health") == {"path": PATH, "port": int(port)}
    app = next(one for one in file.of_kind("module") if one.name == "worker").value["params"]
    probes = app["containers"][0]["probes"]
    assert [shown(one["httpGet"]) for one in probes] == ["health", "health"]
    assert all(one["timeoutSeconds"] >= ANSWER_WITHIN for one in probes)
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    (grace,) = re.findall(r"^\| `--grace` \| `(\d+)` \|", page, re.MULTILINE)
    assert app["terminationGracePeriodSeconds"] >= int(grace) + 5, "Container Apps waits longer than the worker takes"


def test_hadolint_finds_no_fault() -> None:
    program = shutil.which("hadolint", path=Path(sys.executable).parent.as_posix())
    if program is None:
        pytest.skip("hadolint is not installed: pip install -r requirements-dev.txt")
    command = [program, str(ROOT / "Dockerfile")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=allowed(60), check=False)
    assert (done.returncode, done.stdout) == (0, "")


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return dict(
        line.partition(" ")[0].rstrip(";").split("==") for line in lines if line and not line.startswith(("#", "-r"))
    )


def test_the_image_has_packages_of_tested_versions_and_only_files_that_are_copied_reach_the_build() -> None:
    tested = pins("local/requirements.txt") | pins("requirements.txt")
    assert pins("requirements-worker.txt").items() <= tested.items()
    assert not {name for name in pins("requirements-worker.txt") if "functions" in name}
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    admitted = {rule.removeprefix("!") for rule in rules if rule.startswith("!")}
    assert rules[0] == "*" and admitted == {*COPIED, "requirements-worker.txt"}


WORKFLOW = (ROOT / ".github" / "workflows" / "image.yml").read_text(encoding="utf-8")


def test_only_a_release_pushes_the_image_that_was_tested_and_no_secret_is_needed() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: pip install -r requirements-dev.txt")
    jobs = dict(yaml.safe_load(WORKFLOW)["jobs"])
    build, push = jobs["build"], jobs["push"]
    assert (push["if"], push["needs"], push.get("env")) == ("github.event_name == 'release'", "build", None)
    kept = [step for step in build["steps"] if "save" in step.get("run", "") or "upload" in step.get("uses", "")]
    assert [step["if"] for step in kept] == ["github.event_name == 'release'"] * 2
    commands = "".join(step.get("run", "") for step in push["steps"])
    assert "docker load" in commands and "docker build" not in commands
    steps = "".join(step.get("run", "") for step in build["steps"])
    assert "docker push" not in steps
    assert set(re.findall(r"secrets\.(\w+)", WORKFLOW)) == {"GITHUB_TOKEN"}
    assert "permissions" not in build and push["permissions"] == {"packages": "write", "id-token": "write"}
    assert all(job["timeout-minutes"] <= 20 for job in jobs.values())
    assert "docker run --detach --name at-work" in steps and "docker stop --time 30 at-work" in steps, (
        "it works, and ends"
    )
    assert re.search(r"^permissions:\n  contents: read\n", WORKFLOW, re.MULTILINE)


def test_the_workflow_builds_when_anything_of_the_image_changes() -> None:
    (paths,) = {line.strip() for line in WORKFLOW.splitlines() if line.strip().startswith("paths: ")}
    wanted = {"Dockerfile", ".dockerignore", "requirements-worker.txt", ".github/workflows/image.yml"}
    wanted |= {f"{one}/**" if (ROOT / one).is_dir() else one for one in COPIED}
    assert set(paths.removeprefix("paths: [").removesuffix("]").split(", ")) == wanted
