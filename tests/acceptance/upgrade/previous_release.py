"""The previous release: its commit, and its code in a folder.

At a release, move PREVIOUS to the commit of the release before it, and TRANSFORM to the name that it gives the example.
"""

import subprocess
import tarfile
from io import BytesIO
from pathlib import Path

from tests.acceptance.upgrade.git import GIT
from tests.checkout import ROOT

PREVIOUS = "af40fe23475dc5f8ef2979d6af655981ff6d4c22"
TRANSFORM = "core.transforms.home_security"


def is_in_history() -> bool:
    """Return False in a shallow clone and in an archive of the source."""
    if GIT is None:
        return False
    asked = [GIT, "-C", str(ROOT), "cat-file", "-e", f"{PREVIOUS}^{{commit}}"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def unpack(folder: Path) -> Path:
    """Write the code of the previous release into a folder, and return the folder."""
    archive = subprocess.run([str(GIT), "-C", str(ROOT), "archive", PREVIOUS], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return folder
