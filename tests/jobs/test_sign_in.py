import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import azure.identity
import pytest

from core.remote.spark.job_package import JdbcAddress
from jobs.sign_in import RESOURCE, SignInRefused, entra_token, sign_in_of


class Credentials:
    """The tool of a workspace. It knows some audiences, and refuses the others as Synapse does."""

    def __init__(self, **tokens: str) -> None:
        self.tokens = {name.replace("resource", RESOURCE): token for name, token in tokens.items()}

    def getToken(self, audience: str) -> str:  # noqa: N802 - its own name
        if audience not in self.tokens:
            raise ValueError("400: Audience has invalid characters\nand more")
        return self.tokens[audience]


@pytest.fixture
def workspace(monkeypatch: pytest.MonkeyPatch) -> Any:
    def make(fabric: Credentials | None = None, synapse: Credentials | None = None) -> None:
        module = ModuleType("notebookutils")
        if fabric is not None:
            module.credentials = fabric  # type: ignore[attr-defined]
        if synapse is not None:
            module.mssparkutils = SimpleNamespace(credentials=synapse)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "notebookutils", module)

    return make


@pytest.fixture
def identity(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Answer for azure-identity. Without a token in the list it fails."""
    tokens: list[str] = []

    def get_token(self: object, scope: str) -> Any:
        assert scope == f"{RESOURCE}.default"
        if not tokens:
            raise azure.identity.CredentialUnavailableError("no managed identity endpoint")
        return SimpleNamespace(token=tokens.pop())

    monkeypatch.setattr(azure.identity.DefaultAzureCredential, "get_token", get_token)
    return tokens


def test_fabric_is_asked_first_then_synapse_by_its_short_name(workspace: Any, identity: list[str]) -> None:
    identity.append("of an identity")
    workspace(Credentials(resource="of Fabric"), Credentials(DW="of Synapse"))
    assert entra_token() == "of Fabric"
    workspace(Credentials(DW="wrong module"), Credentials(DW="of Synapse"))
    assert entra_token() == "of Synapse"
    workspace()
    assert entra_token() == "of an identity"


def test_every_failure_is_named(workspace: Any, identity: list[str]) -> None:
    workspace(Credentials(), Credentials(DW=""))
    with pytest.raises(SignInRefused) as refused:
        entra_token()
    assert str(refused.value) == (
        "no way to sign in to Azure SQL works:"
        " notebookutils (Fabric): ValueError: 400: Audience has invalid characters;"
        ' mssparkutils.credentials.getToken("DW") (Synapse): it gave no token;'
        " azure-identity: CredentialUnavailableError: no managed identity endpoint"
    )


def test_each_connection_has_a_fresh_token_and_a_name_and_password_stay(identity: list[str]) -> None:
    identity += ["second", "first"]
    sign_in = sign_in_of(None)
    assert [sign_in(), sign_in()] == [{"accessToken": "first"}, {"accessToken": "second"}]
    named = sign_in_of(JdbcAddress("jdbc:x", "app", None))
    assert named() == {"user": "app", "password": ""}
