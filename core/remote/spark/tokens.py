"""Tokens of Microsoft Entra for the services that we call; azure-identity keeps them and renews them."""

import threading
from typing import Any

from core.errors import EngineRefused, EngineUnreachable
from core.remote.hub.client import sync_credential
from core.remote.spark.http import Token

SYNAPSE = "https://dev.azuresynapse.net/.default"
FABRIC = "https://api.fabric.microsoft.com/.default"
DATABRICKS = "2ff814a6-3304-4ab8-85cb-cd0e6f879c1d/.default"  # Databricks' own application, in every tenant

_credential: list[Any] = []
_lock = threading.Lock()


def no_token() -> str | None:
    """For a service that asks for none."""
    return None


def entra_token(scope: str) -> Token:
    """Gets a token for a scope each time it is called; EngineRefused or EngineUnreachable say why there is none."""

    def token() -> str | None:
        from azure.core.exceptions import AzureError, ClientAuthenticationError

        with _lock:
            if not _credential:
                _credential.append(sync_credential())
        try:
            return str(_credential[0].get_token(scope).token)
        except ClientAuthenticationError as error:
            raise EngineRefused(f"no token for {scope}: {str(error).splitlines()[0]}") from error
        except AzureError as error:
            raise EngineUnreachable(f"no answer to the request for a token for {scope}") from error

    return token
