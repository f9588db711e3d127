"""Principals over HTTP, with sign-in on. Without it, test_orders.py sends a forged one."""

from collections.abc import Iterator

import pytest

from tests.acceptance.api.conftest import fill
from tests.acceptance.api.served import Served
from tests.handlers.web.test_identity import ADA, principal

PATHS = ("dead-letters", "revealed/dead-letters/0/1", "revealed/ledger/0/1", "homes", "tasks")
FORGED = principal(("roles", "Hubledger.Operate"), ("roles", "Hubledger.Reveal"), ("oid", ADA))
MALFORMED = ("no base64!", FORGED[:-3], f"{FORGED},{FORGED}", "é" * 8)  # more of them: test_identity.py


@pytest.fixture(scope="module")
def signing_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A host whose platform says that sign-in is on."""
    made = Served(tmp_path_factory.mktemp("principals"), WEBSITE_AUTH_ENABLED="True")
    fill(made)
    yield made
    made.close()


def test_no_malformed_principal_gives_a_role_or_raises(signing_in: Served) -> None:
    for header in MALFORMED:
        headers = {"X-MS-CLIENT-PRINCIPAL": header.encode().decode("latin-1")}
        assert {signing_in.get(path, headers=headers).status for path in PATHS} == {403}, header


def test_a_principal_that_the_platform_set_opens_what_its_roles_say(signing_in: Served) -> None:
    headers = {"X-MS-CLIENT-PRINCIPAL": FORGED, "X-MS-CLIENT-PRINCIPAL-NAME": "ada@example.org"}
    statuses = {path: signing_in.get(path, headers=headers).status for path in PATHS}
    assert statuses == {**dict.fromkeys(PATHS, 200), "dead-letters": 403, "tasks": 403}
    assert signing_in.get("status").status == 200  # a monitor's key is enough
