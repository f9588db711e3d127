"""The routes that an app must answer wherever it runs: one table, and a client.

All are open, or need the key of a monitor and no role, so the same checks hold with and without sign-in.
"""

import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

from infra.hooks.patience import Pending

TIMEOUT = 30.0  # seconds


@dataclass(frozen=True, slots=True)
class Check:
    """A route, its answer's content type, and keys of its JSON."""

    route: str
    content_type: str = "application/json"
    holds: tuple[str, ...] = ()


CHECKS = (
    Check("status", holds=("event_hub", "ledger_balanced", "accounted", "partitions")),
    Check("status/history", holds=("minutes",)),
    Check("health/live"),
    Check("health/ready"),
    Check("health/ledger"),
    Check("openapi.json", holds=("openapi", "paths")),
    Check("ops", content_type="text/html"),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer over HTTP."""

    status: int
    content_type: str
    body: bytes

    def json(self) -> Any:
        """Return the body as JSON."""
        return json.loads(self.body)


class AppUnreachable(Pending):
    """The app did not answer at all."""


@dataclass(frozen=True, slots=True)
class App:
    """An app by its address. `key` is a function key where the host asks for one."""

    base_url: str
    key: str | None = None

    def get(self, path: str) -> Answer:
        """Return the answer of any status. Raises AppUnreachable when there is none."""
        request = urllib.request.Request(f"{self.base_url.rstrip('/')}/{path.lstrip('/')}")
        if self.key:
            request.add_header("x-functions-key", self.key)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                return Answer(answer.status, answer.headers.get_content_type(), answer.read())
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.headers.get_content_type(), error.read())
        except (OSError, HTTPException) as error:
            raise AppUnreachable(f"{self.base_url} cannot be reached: {getattr(error, 'reason', error)}") from error

    def status(self) -> dict[str, Any]:
        """Return the body of the app's status. Raises Pending while the app has none."""
        answer = self.get("/api/status")
        if answer.status == 401:
            raise Pending(f"{self.base_url} refuses the key of the smoke tests (401)")
        if (answer.status, answer.content_type) != (200, "application/json"):
            raise Pending(f"{self.base_url} answers GET /api/status with {answer.status} {answer.content_type}")
        body: dict[str, Any] = answer.json()
        return body


def fault_of(app: App, check: Check) -> str | None:
    """Return the difference between the app's answer and a check. None without one."""
    answer = app.get(f"/api/{check.route}")
    if (answer.status, answer.content_type) != (200, check.content_type):
        said = answer.body[:200].decode(errors="replace")
        return f"GET /api/{check.route}: {answer.status} {answer.content_type}, not 200 {check.content_type}: {said}"
    missing = sorted(set(check.holds) - set(answer.json() if check.holds else ()))
    return f"GET /api/{check.route}: the answer has no {', '.join(missing)}" if missing else None
