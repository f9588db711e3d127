"""A small client of Azure's REST APIs: it signs in with Entra tokens, and does the work that Bicep cannot do."""

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from infra.hooks.errors import HookRefused
from infra.hooks.patience import RIGHTS, Clock, NotYet, patiently

TIMEOUT = 60.0  # seconds
BY_POLICY = "RequestDisallowedByPolicy"  # a 403 that no wait ends
Token = Callable[[str], str]  # returns a token for a scope
Body = Mapping[str, Any] | bytes | None
NO_MORE: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Service:
    """One service: its address, and the scope of its tokens."""

    address: str
    scope: str


ARM = Service("https://management.azure.com", "https://management.azure.com/.default")


class Rest:
    """A client that calls services with the deployer's tokens. It waits for rights that are not in force yet."""

    def __init__(self, token: Token, clock: Clock) -> None:
        self._token = token
        self._clock = clock

    def call(
        self, method: str, service: Service, path: str, body: Body = None, headers: Mapping[str, str] = NO_MORE
    ) -> Any:
        """Return the answer as JSON. Raises HookRefused with the error text of the service.

        `headers` win: a request with an Authorization of its own has no token.
        """
        return patiently(lambda: self._call(service, method, path, body, headers), self._clock)

    def _call(self, service: Service, method: str, path: str, body: Body, more: Mapping[str, str]) -> Any:
        headers = {"Content-Type": "application/json", **more}
        if "Authorization" not in headers:
            headers["Authorization"] = f"Bearer {self._token(service.scope)}"
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(f"{service.address}{path}", content, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace")[:500]
            fault = f"{method} {service.address}{path} failed with status {error.code}: {said}"
            if error.code == 403 and BY_POLICY not in said:
                raise NotYet(fault, RIGHTS, "the account that is signed in needs the role") from error
            raise HookRefused(fault) from error
        except OSError as error:
            raise HookRefused(f"{service.address} cannot be reached: {getattr(error, 'reason', error)}") from error


@contextmanager
def made_for_now(rest: Rest, what: str, paths: Sequence[str], make: Callable[[str], object]) -> Iterator[None]:
    """Make resources of Azure for the time of the block, and no longer, after a failure too.

    A killed hook leaves them under the same paths: the next hook replaces them and removes them.
    """
    made: list[str] = []
    try:
        for path in paths:
            made.append(path)  # before the call, whose answer may be lost
            make(path)
        yield
    finally:
        for path in made:
            try:
                rest.call("DELETE", ARM, path)
            except HookRefused as error:
                if "status 404" not in str(error):
                    print(f"{what} stays; the next deployment replaces and removes it: {error}", file=sys.stderr)
