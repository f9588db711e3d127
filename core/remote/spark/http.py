"""JSON over HTTP for the engines. A call ends with an answer, a refusal or no answer. That decides whether it may be
repeated."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from core.errors import EngineRefused, EngineUnreachable
from core.remote.hub.client import first_line, sync_credential

TIMEOUT = (10.0, 30.0)  # seconds: to connect, and between bytes
_PASSING = (408, 409, 425, 429)  # statuses that count as no answer, like every status from 500 on

Token = Callable[[], str | None]


class NotFound(EngineRefused):
    """Status 404: the engine does not know the job."""


class JsonHttp:
    """Sends requests to the paths under one address, with a token if the service takes one."""

    def __init__(self, address: str, token: Token) -> None:
        self._address = address
        self._token = token

    def address_of(self, path: str) -> str:
        """Return the whole address of a path."""
        return self._address + path

    def get(self, path: str, **query: object) -> Mapping[str, Any]:
        """Return the answer to a GET. Raises NotFound, EngineRefused (a setting has to change) or EngineUnreachable."""
        return self._call("GET", path, params=query)

    def post(self, path: str, body: Mapping[str, Any], **query: object) -> Mapping[str, Any]:
        """Return the answer to a POST. After EngineUnreachable, it is unknown whether the service carried it out."""
        return self._call("POST", path, json=body, params=query)

    def delete(self, path: str) -> Mapping[str, Any]:
        return self._call("DELETE", path)

    def _call(self, verb: str, path: str, **more: Any) -> Mapping[str, Any]:
        import requests

        token = self._token()
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        try:
            answer = requests.request(
                verb, self._address + path, headers=headers, timeout=TIMEOUT, allow_redirects=False, **more
            )
            body = answer.content
        except requests.RequestException as error:
            raise EngineUnreachable(f"{verb} {self._address}{path}: {first_line(error)}") from error
        where = f"{verb} {self._address}{path} answered {answer.status_code}"
        if answer.status_code == 404:
            raise NotFound(f"{where}: {_text(body)}")
        if answer.status_code in _PASSING or answer.status_code >= 500:
            raise EngineUnreachable(f"{where}: {_text(body)}")
        if answer.status_code >= 300:
            raise EngineRefused(f"{where}: {_text(body)}")
        try:
            found = answer.json() if body else {}
        except ValueError as error:
            raise EngineUnreachable(f"{where} with a body that is not JSON") from error
        if not isinstance(found, dict):
            raise EngineUnreachable(f"{where} with a JSON {type(found).__name__}, not an object")
        return found


def _text(body: bytes) -> str:
    return body[:300].decode("utf-8", "replace").replace("\n", " ")


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
    """Return a function that gets a token for a scope. It raises EngineRefused or EngineUnreachable when it cannot."""

    def token() -> str | None:
        from azure.core.exceptions import AzureError, ClientAuthenticationError

        try:
            return str(own_credential().get_token(scope).token)
        except ClientAuthenticationError as error:
            raise EngineRefused(f"no token for {scope}: {first_line(error)}") from error
        except AzureError as error:
            raise EngineUnreachable(f"no answer to the request for a token for {scope}") from error

    return token
