"""Tokens of Microsoft Entra for the services that we call; azure-identity caches and renews them."""

import threading
from typing import Any

from core.errors import EngineRefused, EngineUnreachable
from core.remote.hub.client import first_line, sync_credential
from core.remote.spark.http import Token

SYNAPSE = "https://dev.azuresynapse.net/.default"
FABRIC = "https://api.fabric.microsoft.com/.default"
DATABRICKS = "2ff814a6-3304-4ab8-85cb-cd0e6f879c1d/.default"  # Databricks' own application, in every tenant

_credential: list[Any] = []
_lock = threading.Lock()


def no_token() -> str | None:
    """Return None: the service takes no token."""
    return None


def own_credential() -> Any:
    """Return the identity of this process, which remembers its tokens: the same object at each call."""
    with _lock:
        if not _credential:
            _credential.append(sync_credential())
        return _credential[0]


def entra_token(scope: str) -> Token:
    """Return a function that gets a token for a scope; it raises EngineRefused or EngineUnreachable when it cannot."""

    def token() -> str | None:
        from azure.core.exceptions import AzureError, ClientAuthenticationError

        try:
            return str(own_credential().get_token(scope).token)
        except ClientAuthenticationError as error:
            raise EngineRefused(f"no token for {scope}: {first_line(error)}") from error
        except AzureError as error:
            raise EngineUnreachable(f"no answer to the request for a token for {scope}") from error

    return token
