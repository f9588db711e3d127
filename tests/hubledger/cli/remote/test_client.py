"""The client over real HTTP: what it repeats, what it never sends, and how it reports a refusal."""

import re
import socket
from itertools import chain, repeat

import pytest

from hubledger.cli.remote.client import MOST, Client, NoConnection, Refusal
from hubledger.cli.remote.connection import Address
from tests.hubledger.cli.small_app import Reply, Request, SmallApp, problem

DONE = Reply({"done": True})
BUSY_GATEWAY = Reply("", 502, {"Connection": "close"})


def app_of(*replies: Reply) -> SmallApp:
    """A small app that gives these answers, and then the last one again and again."""
    left = chain(replies, repeat(replies[-1]))
    return SmallApp(lambda _: next(left))


def refused(app: SmallApp, path: str = "status", *, change: bool = False) -> Refusal:
    """The refusal of a request."""
    with app, Client(Address(app.url)) as client, pytest.raises(Refusal) as caught:
        client.post(path, {}) if change else client.get(path)
    return caught.value


def test_a_reading_is_repeated_when_a_gateway_has_no_answer() -> None:
    with app_of(BUSY_GATEWAY, DONE) as app, Client(Address(app.url)) as client:
        assert client.get("status").value == {"done": True}
    assert len(app.requests) == 2


@pytest.mark.slow
def test_a_change_is_repeated_and_a_task_under_its_id() -> None:
    with app_of(BUSY_GATEWAY, BUSY_GATEWAY, DONE) as app, Client(Address(app.url)) as client:
        client.open_task("redrive", {"move": "retry"})
        client.open_task("redrive", {"move": "retry"})
        client.post("tasks/x/pause", {"reason": "why"})
    paths = [one.path for one in app.requests]
    assert [one.method for one in app.requests] == ["PUT"] * 4 + ["POST"]
    assert paths[0] == paths[1] == paths[2] != paths[3]
    assert app.requests[0].body == {"kind": "redrive", "move": "retry"}


def test_a_refusal_is_not_repeated() -> None:
    app = app_of(problem("conflict", 409, "the replay is done"))
    assert str(refused(app, "tasks/x/pause", change=True)) == "the replay is done"
    assert len(app.requests) == 1


FAULT = {"field": "limit", "detail": "too large"}
UNAVAILABLE = {"type": "urn:hubledger:problem:unavailable", "detail": "the database is away"}
TOLD: dict[str, Reply] = {  # by a pattern of the whole text
    "the database is away\n.*health.*": Reply(UNAVAILABLE, 503, media="application/problem+json"),
    "limit: too large": problem("invalid-request", 400, "limit: too large", errors=[FAULT]),
    "two faults\n  a: b\n  c: d": problem(
        "invalid-request", 400, "two faults", errors=[{"field": "a", "detail": "b"}, {"field": "c", "detail": "d"}]
    ),
    ".*tasks show 0d9f.*": problem("overlap", 409, "a different redrive is open", task_id="0d9f"),
}


@pytest.mark.parametrize("text", TOLD)
def test_a_refusal_names_each_fault_once_and_where_to_look(text: str) -> None:
    assert re.fullmatch(text, str(refused(app_of(TOLD[text]))), re.S)


@pytest.mark.parametrize(
    ("path", "change", "needed"),
    [
        ("status", False, "counting: it needs a key"),
        ("dead-letters", False, "role Hubledger.Read"),
        ("revealed/dead-letters", False, "role Hubledger.Reveal"),
        ("tasks/x/diff", False, "role Hubledger.Reveal"),
        ("tasks/x/pause", True, "role Hubledger.Operate"),
    ],
)
@pytest.mark.parametrize("reply", [Reply("", 401), problem("not-allowed", 403, "this route needs the app role")])
def test_a_missing_right_names_the_level(reply: Reply, path: str, change: bool, needed: str) -> None:
    assert needed in str(refused(app_of(reply), path, change=change))


def test_a_redirect_is_not_followed_because_it_would_carry_the_key_away() -> None:
    with SmallApp(lambda _: DONE) as elsewhere:
        app = app_of(Reply("", 302, {"Location": f"{elsewhere.url}/login"}))
        with app, Client(Address(app.url, key="secret")) as client, pytest.raises(Refusal, match="sign-in"):
            client.get("status")
    assert elsewhere.requests == []


def test_key_and_token_go_into_headers_and_no_netrc_replaces_them(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path_factory.mktemp("home") / "netrc"
    netrc.write_text("machine 127.0.0.1 login other password other\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with app_of(DONE) as app, Client(Address(app.url, key="secret"), lambda: "token") as client:
        client.get("status", {"limit": 3})
    (request,) = app.requests
    assert (request.headers["x-functions-key"], request.headers["authorization"]) == ("secret", "Bearer token")
    assert request.path == "/api/status?limit=3"


@pytest.mark.parametrize(
    "reply",
    [
        Reply("<html>", 200, media="text/html"),
        Reply("[1]"),
        Reply("[" * 100_000),
        Reply("gone", 404, media="text/html"),
    ],
    ids=["HTML", "a list", "deep nesting", "404"],
)
def test_a_different_site_is_no_hubledger(reply: Reply) -> None:
    with app_of(reply) as app, Client(Address(app.url)) as client, pytest.raises(NoConnection) as caught:
        client.get("status")
    assert "no Hubledger" in str(caught.value)
    assert app.url in str(caught.value)


def test_an_answer_that_is_too_large_is_of_no_hubledger() -> None:
    huge = SmallApp(lambda _: Reply("x" * (MOST + 1)))
    with huge as app, Client(Address(app.url)) as client, pytest.raises(NoConnection, match="more than 64 MiB"):
        client.get("status")


def test_no_answer_names_the_address() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        with Client(Address(url)) as client, pytest.raises(NoConnection) as caught:
            client.get("status")
    assert str(caught.value) == f"no answer from {url}: nothing listens there"


def test_pages_follow_the_cursor_with_the_same_filter() -> None:
    def answer(request: Request) -> Reply:
        return Reply({"next": None if "cursor=b%2B" in request.path else "b+"})

    with SmallApp(answer) as app, Client(Address(app.url)) as client:
        assert len(list(client.pages("dead-letters", {"status": "waiting"}, True))) == 2
        assert len(list(client.pages("dead-letters", {}, False))) == 1
    assert ["status=waiting" in one.path for one in app.requests] == [True, True, False]
