"""The routes that an app must answer wherever it runs: one table, and a client.

All are open, or need the key of a monitor and no role, so the same tests hold with and without sign-in.
"""

import json
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.repo.product import ROOT

ROUTES = """
import json, function_app
bindings = [b.get_dict_repr() for one in function_app.app.get_functions() for b in one.get_bindings()]
print(json.dumps([b["route"] for b in bindings if b["type"].lower() == "httptrigger"]))
"""


@dataclass(frozen=True)
class Check:
    """A route that the app has or will have; `holds` are keys of its JSON. It is checked once it is registered."""

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


@dataclass(frozen=True)
class Answer:
    """An answer over HTTP."""

    status: int
    content_type: str
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class App:
    """An app by its address; `key` is a function key where the host asks for one."""

    base_url: str
    key: str | None = None

    def get(self, path: str) -> Answer:
        """Ask for a path. An answer of any status is one."""
        request = urllib.request.Request(f"{self.base_url.rstrip('/')}/{path.lstrip('/')}")
        if self.key:
            request.add_header("x-functions-key", self.key)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return Answer(answer.status, answer.headers.get_content_type(), answer.read())
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.headers.get_content_type(), error.read())


@cache
def registered() -> frozenset[str]:
    """The routes of this code's function_app, read in a new process: a process can index it only once."""
    done = subprocess.run([sys.executable, "-c", ROUTES], cwd=ROOT, capture_output=True, text=True, check=True)
    return frozenset(json.loads(done.stdout.splitlines()[-1]))
