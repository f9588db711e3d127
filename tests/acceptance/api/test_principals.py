"""Malformed principals over HTTP, with sign-in on: none gives a role. Without it, test_orders.py sends a forged one."""

from collections.abc import Iterator

import pytest

from tests.acceptance.api.conftest import fill
from tests.acceptance.api.served import Served
from tests.handlers.web.test_identity import ADA, MALFORMED, principal

LETTER = {"partition_id": "0", "sequence_number": "1"}
ORDER = {"move": "discard", "expected_count": 1, "reason": "forged", "letters": [LETTER]}
PATHS = ("dead-letters", "revealed/dead-letters/0/1", "revealed/ledger/0/1", "homes", "tasks")
HOST_LIMIT = 8_000  # characters of a header that the local host takes
FORGED = principal(("roles", "Hubledger.Operate"), ("roles", "Hubledger.Reveal"), ("oid", ADA))


@pytest.fixture(scope="module")
def signing_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A host whose platform says that sign-in is on."""
    made = Served(tmp_path_factory.mktemp("principals"), WEBSITE_AUTH_ENABLED="True")
    fill(made)
    yield made
    made.close()


def sendable(text: str) -> str:
    """Return a header's value as its UTF-8 octets; a client can send no other letters, and no NUL."""
    return text.replace("\x00", "").encode("utf-8", "surrogatepass").decode("latin-1")


def test_no_malformed_principal_gives_a_role_or_raises(signing_in: Served) -> None:
    for case, header in MALFORMED.items():
        headers = {"X-MS-CLIENT-PRINCIPAL": sendable(header), "X-MS-CLIENT-PRINCIPAL-NAME": sendable("é\ud800")}
        refused = {path: signing_in.get(path, headers=headers).status for path in PATHS}
        refused["discard"] = signing_in.order("redrive", ORDER, headers=headers).status
        # The host itself refuses headers beyond its limit, before the app sees them.
        assert set(refused.values()) <= ({400, 403, 431} if len(header) > HOST_LIMIT else {403}), (case, refused)


def test_a_principal_that_the_platform_set_opens_what_its_roles_say(signing_in: Served) -> None:
    headers = {"X-MS-CLIENT-PRINCIPAL": FORGED, "X-MS-CLIENT-PRINCIPAL-NAME": "ada@example.org"}
    statuses = {path: signing_in.get(path, headers=headers).status for path in PATHS}
    assert statuses == {**dict.fromkeys(PATHS, 200), "dead-letters": 403, "tasks": 403}
    assert signing_in.get("status").status == 200  # a monitor's key is enough
