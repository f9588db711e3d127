"""A trial start of the app: unpack the package, index its functions, read the settings, check the transform."""

import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from core.model.policies import REFERENCE
from infra.hooks import package
from infra.hooks.errors import HookRefused
from infra.hooks.room import NAME, name_of, with_remedy

TIMEOUT = 120.0  # seconds
TRIAL = """
import json, os
from core.remote.spark.open import job_arguments, open_engine
from core.settings import read_settings
from core.transforms.loading import check_transform
import function_app
names = [one.get_function_name() for one in function_app.app.get_functions()]
settings = read_settings(os.environ)
check_transform(settings.transform)
if open_engine(settings) is not None:
    job_arguments(settings)
print(json.dumps(names))
"""
_PIN = re.compile(r"[A-Za-z0-9._-]+(\[[A-Za-z0-9,._-]+\])?==[A-Za-z0-9.]+(; \S.*)?")  # for some Pythons only, perhaps


def refuse_unstartable(root: Path, settings: Mapping[str, str]) -> list[str]:
    """Return the names of the functions that the package registers with these settings.

    Raise HookRefused when the host could not start the package.
    """
    refuse_unpinned(root / "requirements.txt")
    with tempfile.TemporaryDirectory() as folder:
        archive, unpacked = Path(folder) / "package.zip", Path(folder) / "package"
        package.build(root, archive)
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(unpacked)
        return _functions(unpacked, settings)


def refuse_unpinned(requirements: Path) -> None:
    """Raise HookRefused unless each requirement names one version: a later deployment must build the same app."""
    lines = [line.split("#")[0].strip() for line in requirements.read_text(encoding="utf-8").splitlines()]
    loose = [line for line in lines if line and not _PIN.fullmatch(line)]
    if loose:
        raise HookRefused(*(f"requirements.txt: {line!r} must name one version, as in NAME==1.2.3" for line in loose))


def cloud_settings(root: Path, wired: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of the deployed app: those of infra/settings.json, and those that main.bicep computes."""
    chosen = json.loads((root / "infra" / "settings.json").read_text(encoding="utf-8"))
    settings = {**chosen, **wired, NAME: name_of(environment)}
    if settings.get("EVENTHUB", "").startswith(
        REFERENCE
    ):  # only Azure reads it, so the trial has a hub that is nowhere
        settings["EVENTHUB"] = f"Endpoint=sb://nowhere.example/;EntityPath={settings['EVENTHUB_NAME']}"
    return settings


def _functions(unpacked: Path, settings: Mapping[str, str]) -> list[str]:
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", TRIAL],
        cwd=unpacked,
        env={**kept, **settings, "PYTHONPATH": str(unpacked), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    if done.returncode:
        said = done.stderr.strip().splitlines()[-3:]
        raise HookRefused("the app does not start from its package:", *with_remedy(said))
    names: list[str] = json.loads(done.stdout.splitlines()[-1])
    if not names:
        raise HookRefused("the app starts without a single function: register at least one in function_app.py")
    return names
