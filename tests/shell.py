"""Shellcheck, which comes with requirements-dev.txt or with the machine."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def complaints(script: Path) -> str:
    """Return what shellcheck says of a script. Nothing of a sound one."""
    beside = Path(sys.executable).with_name("shellcheck")
    shellcheck = str(beside) if beside.exists() else shutil.which("shellcheck")
    if shellcheck is None:
        pytest.skip("shellcheck is not installed: pip install -r requirements-dev.txt")
    return subprocess.run([shellcheck, str(script)], capture_output=True, text=True, check=False).stdout
