"""The sign-in of the hooks: as azd does outside a pipeline, with one line that names the account."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infra.hooks.errors import HookRefused
from infra.hooks.rest import ARM

if TYPE_CHECKING:
    from azure.core.credentials import AccessToken, TokenCredential

PATIENCE = 60  # seconds for one answer of the command azd or az
LONGEST = 400  # characters of the reasons why there is no token
PIPELINE = ("CI", "GITHUB_ACTIONS", "TF_BUILD")  # TF_BUILD is Azure Pipelines' own


@dataclass(frozen=True, slots=True)
class Account:
    """The account of a token. A part that the token does not contain is empty. A person has no application id."""

    name: str
    object_id: str
    application_id: str
    tenant_id: str


class Identity:
    """The identity of the hooks, a credential of the Azure clients. It prints its account with its first token."""

    def __init__(self, credential: "TokenCredential") -> None:
        self._credential = credential
        self._is_named = False

    def get_token(self, *scopes: str, **options: Any) -> "AccessToken":
        """Return a token. Raises HookRefused in one line when there is none."""
        from azure.core.exceptions import AzureError

        try:
            token = self._credential.get_token(*scopes, **options)
        except AzureError as error:
            raise HookRefused(f"no token for {scopes[0]}: sign in with `azd auth login`; {_reasons(error)}") from error
        if not self._is_named:
            self._is_named = True
            account = account_of(token.token)
            print(
                f"signed in as {account.name} (object id {account.object_id}, tenant {account.tenant_id})", flush=True
            )
        return token

    def token(self, scope: str) -> str:
        """Return the text of a token for a scope."""
        return self.get_token(scope).token

    def account(self) -> Account:
        """Return the account that is signed in."""
        return account_of(self.token(ARM.scope))


def open_identity(environment: Mapping[str, str]) -> Identity:
    """Return the identity that azd deploys with, else that of `az`. In a pipeline, its federated one or that of `az`.

    DefaultAzureCredential alone would prefer the account of `az` at a desk, which may be a different one.
    """
    from azure.identity import (
        AzureCliCredential,
        AzureDeveloperCliCredential,
        ChainedTokenCredential,
        DefaultAzureCredential,
    )

    if in_pipeline(environment):
        return Identity(DefaultAzureCredential())
    tenant = environment.get("AZURE_TENANT_ID", "")
    as_azd = AzureDeveloperCliCredential(tenant_id=tenant, process_timeout=PATIENCE)
    return Identity(ChainedTokenCredential(as_azd, AzureCliCredential(tenant_id=tenant, process_timeout=PATIENCE)))


def in_pipeline(environment: Mapping[str, str]) -> bool:
    """Return True when a pipeline runs the hooks."""
    return any(environment.get(name, "").lower() not in ("", "0", "false") for name in PIPELINE)


def account_of(token: str) -> Account:
    """Return the account that a token names. The claims are shown and compared, and never trusted."""
    claims = _claims(token)
    application_id = claims.get("appid") or claims.get("azp") or ""
    names = ("upn", "preferred_username", "unique_name", "app_displayname")
    name = next((claims[one] for one in names if claims.get(one)), application_id)
    is_person = "scp" in claims  # the rights that a person delegates to the client; an application has none
    return Account(
        name=str(name or "an account that its token does not name"),
        object_id=str(claims.get("oid", "")),
        application_id="" if is_person else str(application_id),
        tenant_id=str(claims.get("tid", "")),
    )


def _reasons(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines()]
    return "; ".join([line for line in lines if "Credential: " in line] or lines[:1])[:LONGEST]


def _claims(token: str) -> dict[str, Any]:
    try:
        body = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except (IndexError, ValueError):
        return {}
    return claims if isinstance(claims, dict) else {}
