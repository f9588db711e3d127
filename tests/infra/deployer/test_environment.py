"""infra/hooks/deployer/environment.py: values go to the environment that azd works on, in one command."""

from pathlib import Path

import pytest

from infra.hooks.deployer.environment import set_values
from infra.hooks.errors import HookRefused
from tests.infra.doubles import plant

AZD = """#!/bin/sh
for word in "$@"; do echo "$word"; done > {asked}
if [ -e {asked}.fails ]; then echo "ERROR: no environment exists" >&2; exit 1; fi
"""


@pytest.fixture
def azd(tmp_path: Path) -> Path:
    """A command azd that notes its words."""
    return plant(tmp_path / "azd", AZD.format(asked=tmp_path / "asked")).parent


def test_all_values_are_set_at_once_in_the_named_environment(azd: Path) -> None:
    set_values({"A": "1", "B": "two words"}, {"PATH": str(azd), "AZURE_ENV_NAME": "hubledger-dev"})
    words = (azd / "asked").read_text().splitlines()
    assert words == ["env", "set", "A=1", "B=two words", "--environment", "hubledger-dev", "--no-prompt"]


def test_nothing_to_set_starts_nothing(azd: Path) -> None:
    set_values({}, {"PATH": str(azd)})
    assert not (azd / "asked").exists()


def test_a_refusal_of_azd_and_a_missing_azd_are_one_line(azd: Path) -> None:
    (azd / "asked.fails").touch()
    with pytest.raises(HookRefused, match=r"`azd env set A=1` failed: ERROR: no environment exists$"):
        set_values({"A": "1"}, {"PATH": str(azd)})
    with pytest.raises(HookRefused, match="azd is not on the PATH, so the hook cannot set A"):
        set_values({"A": "1"}, {"PATH": str(azd / "nowhere")})
