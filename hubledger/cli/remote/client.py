"""Requests to the app with a time limit and safe repetitions, and its refusals in plain words."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any
from uuid import uuid4

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from hubledger.cli.output import Refused, UsageFault, program
from hubledger.cli.remote.connection import URL, Address

PREFIX = "urn:hubledger:problem:"
ROLES = {"reading": "Hubledger.Read", "revealing": "Hubledger.Reveal", "changing": "Hubledger.Operate"}


@dataclass(eq=False)
class Refusal(Refused):
    """The app refused a request. `kind` is the name of the problem's type, empty for an answer without a problem."""

    status: int
    kind: str = ""
    members: Mapping[str, Any] = field(default_factory=dict)
    sentence: str = ""

    def __str__(self) -> str:
        """Return the sentence, and a line for each hint."""
        return self.sentence


def refusal_of(status: int, members: Mapping[str, Any], level: str) -> Refusal:
    """Make the refusal of an answer. `members` are the members of its problem, if it has one."""
    kind, detail = str(members.get("type", "")).removeprefix(PREFIX), str(members.get("detail"))
    is_refused = status in (401, 403)
    plain = f"the app refuses the caller ({status})" if is_refused else f"the app answers {status} without a reason"
    errors = members.get("errors")
    listed = [one for one in errors if isinstance(one, dict)] if isinstance(errors, list) else []
    named = [f"{one.get('field')}: {one.get('detail')}" for one in listed]
    if {str(one.get("detail")) for one in listed} == {detail}:
        named = []
    hints = [line for line in named if line != detail]
    if members.get("task_id"):
        hints.append(f"look at it: {program()} tasks show {members['task_id']}")
    if is_refused:
        hints.append(needs(level))
    if kind == "unavailable":
        hints.append(f"nothing was changed; try again, and look at `{program()} health`")
    said = str(members.get("detail") or members.get("title") or plain)
    return Refusal(status, kind, members, "\n".join([said, *(f"  {line}" for line in hints)]))


def needs(level: str) -> str:
    """Return what a request of a level needs, and the settings that hold it."""
    role = ROLES.get(level)
    signed = f", and where sign-in is on a token (HUBLEDGER_SCOPE) of a person with the role {role}" if role else ""
    return f"this is {level}: it needs a key of the function (HUBLEDGER_KEY){signed}; see docs/access.md"


CONNECT, READ = 5.0, 60.0  # seconds
MOST = 64 * 2**20  # octets of an answer: no answer of an app is nearly as large
_COUNTING = ("status", "status/history", "health/ledger")
# The app says when to come back (Retry-After), or a gateway had no answer. A repeated change changes nothing more: it
# has the id of its task or order, or asks for a state that is reached.
_RETRY = Retry(
    total=3,
    connect=1,
    read=1,
    status=2,
    backoff_factor=0.5,
    backoff_max=5,
    status_forcelist={502, 504},
    allowed_methods={"GET", "POST", "PUT"},
    retry_after_max=10,
    raise_on_status=False,
)
Values = Mapping[str, Any]


class NoConnection(UsageFault):
    """No answer of a Hubledger came."""


class UnknownForm(UsageFault):
    """An answer lacks a field that every answer of its route has."""


class Interrupted(Exception):
    """Ctrl-C. The message says what goes on."""


@dataclass(frozen=True, slots=True)
class AppAnswer:
    """An answer of the app: its text, and the same as a value."""

    text: str
    value: Any
    status: int = 200


class Fields(dict[str, Any]):
    """An object of an answer. Raises UnknownForm for a field that it lacks."""

    def __missing__(self, name: str) -> Any:
        raise UnknownForm(
            f"the answer has no field {name}: look at {URL}, and use the command line of the app's release"
        )


class Signing(requests.auth.AuthBase):  # type: ignore[misc]  # of a package without types
    """Signs requests with the key and a token. As `auth`, it also keeps requests from reading ~/.netrc."""

    def __init__(self, address: Address, token: Callable[[], str] | None) -> None:
        self._key = address.key
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._key:
            request.headers["x-functions-key"] = self._key
        if self._token:
            request.headers["Authorization"] = f"Bearer {self._token()}"
        return request


class Client:
    """Talks to one app. Raises Refusal where the app refuses, NoConnection without an answer of an app."""

    def __init__(self, address: Address, token: Callable[[], str] | None = None) -> None:
        self.url = address.url
        self._session = requests.Session()
        self._session.auth = Signing(address, token)
        self._session.headers.update(
            {"Accept": "application/json", "User-Agent": f"hubledger-cli requests/{version('requests')}"}
        )
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, HTTPAdapter(max_retries=_RETRY))

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def get(self, path: str, query: Values | None = None, also: Sequence[int] = ()) -> AppAnswer:
        """Read an address below /api. Statuses in `also` are answers too."""
        level = "counting" if path in _COUNTING else "reading"
        level = "revealing" if path.startswith("revealed/") or path.endswith("/diff") else level
        given = {name: value for name, value in (query or {}).items() if value is not None}
        return self.call("GET", path, level, also, params=given)

    def call(self, method: str, path: str, level: str, also: Sequence[int] = (), **more: Any) -> AppAnswer:
        """Send a request of a level. Statuses in `also` are answers too."""
        if {".", ".."} & set(path.split("/")):  # requests would take the part away, and ask a different address
            raise UsageFault(f"{path}: . and .. name nothing")
        return _read(*self._send(method, path, level, **more), level, also)

    def pages(self, path: str, query: Values, everything: bool) -> Iterator[AppAnswer]:
        """Yield the first page, or all of them."""
        page = self.get(path, query)
        yield page
        while everything and page.value.get("next"):
            page = self.get(path, {**query, "cursor": page.value["next"]})
            yield page

    def post(self, path: str, body: Values) -> AppAnswer:
        """Request a change."""
        return self._change("POST", path, body)

    def open_task(self, kind: str, order: Values) -> AppAnswer:
        """Open a task, once: a repetition of the request has the same id."""
        return self._change("PUT", f"tasks/{uuid4()}", {"kind": kind, **order})

    def _change(self, method: str, path: str, body: Values) -> AppAnswer:
        given = {name: value for name, value in body.items() if value is not None}
        try:
            return self.call(method, path, "changing", json=given)
        except KeyboardInterrupt:
            raise Interrupted("interrupted while the request was sent: the app may have accepted it") from None

    def _send(self, method: str, path: str, level: str, **more: Any) -> tuple[requests.Response, bytes]:
        # A redirect would carry the key to a different address.
        how = {"timeout": (CONNECT, READ), "allow_redirects": False, "stream": True, **more}
        try:
            with self._session.request(method, f"{self.url}/api/{path}", **how) as answer:
                octets = bytearray()
                for part in answer.iter_content(2**16):
                    octets += part
                    if len(octets) > MOST:
                        much = f"{_site(answer)} sends more than {MOST >> 20} MiB"
                        raise NoConnection(f"{much}, so it is no Hubledger: look at {URL}")
        except requests.RequestException as error:
            raise NoConnection(f"no answer from {self.url}: {_reason(error)}") from None
        if answer.is_redirect:
            raise Refusal(
                answer.status_code,
                sentence=f"{self.url} leads to a sign-in or to a different address\n  {needs(level)}",
            )
        return answer, bytes(octets)


def _site(answer: requests.Response) -> str:
    return str(answer.url).partition("/api/")[0]


def _read(answer: requests.Response, octets: bytes, level: str, also: Sequence[int]) -> AppAnswer:
    try:
        text = octets.decode("utf-8")
        value = json.loads(text, object_hook=Fields) if text else None
    except (ValueError, RecursionError):
        value = text = None
    is_problem = answer.headers.get("Content-Type", "").startswith("application/problem+json")
    if (answer.ok or answer.status_code in also) and isinstance(value, dict) and not is_problem:
        return AppAnswer(text or "", value, answer.status_code)
    if answer.ok or (answer.status_code == 404 and not is_problem):
        raise NoConnection(f"{_site(answer)} is no Hubledger: look at {URL}")
    raise refusal_of(answer.status_code, value if isinstance(value, dict) and is_problem else {}, level)


def _reason(error: requests.RequestException) -> str:
    """Return the reason in plain words: the texts of the library quote its own objects."""
    text = str(error)
    if isinstance(error, requests.exceptions.SSLError):
        return "its certificate is not valid"
    if isinstance(error, requests.Timeout) or "timed out" in text:
        return "the time is over"
    if "NameResolution" in text:
        return "no host has this name"
    if "refused" in text:
        return "nothing listens there"
    return "the connection broke"
