"""The environment of azd, as far as the hooks change it."""

import shutil
import subprocess
from collections.abc import Mapping

from infra.hooks.errors import HookRefused

TIMEOUT = 60.0  # seconds


def in_virtual_network(environment: Mapping[str, str]) -> bool:
    """Return True when only machines in a virtual network reach the database, the hub and the storage."""
    return environment.get("VNET_ENABLED", "").lower() == "true"


def set_values(values: Mapping[str, str], environment: Mapping[str, str]) -> None:
    """Set values in the environment that azd works on, all or none. Raises HookRefused when azd does not."""
    if not values:
        return
    azd = shutil.which("azd", path=environment.get("PATH"))
    if azd is None:
        raise HookRefused("azd is not on the PATH, so the hook cannot set " + ", ".join(values))
    chosen = ["--environment", environment["AZURE_ENV_NAME"]] if environment.get("AZURE_ENV_NAME") else []
    pairs = [f"{name}={value}" for name, value in values.items()]
    done = subprocess.run(
        [azd, "env", "set", *pairs, *chosen, "--no-prompt"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    if done.returncode:
        raise HookRefused(f"`azd env set {' '.join(pairs)}` failed: {done.stderr or done.stdout}")
