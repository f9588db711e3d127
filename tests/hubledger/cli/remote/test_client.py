import re
from itertools import chain, repeat

import pytest

from hubledger.cli.output import UsageFault
from hubledger.cli.remote.client import MOST, Client, NoConnection, Refusal
from hubledger.cli.remote.connection import Address, read_address
from tests.hubledger.cli.small_app import Reply, Request, SmallApp, problem

DONE = Reply({"done": True})
BUSY_GATEWAY = Reply("", 502, {"Connection": "close"})


def app_of(*replies: Reply) -> SmallApp:
    left = chain(replies, repeat(replies[-1]))
    return SmallApp(lambda _: next(left))


def refused(reply: Reply, path: str = "status", *, change: bool = False) -> str:
    """The words of a refusal, which is not repeated."""
    with app_of(reply) as app, Client(Address(app.url)) as client, pytest.raises(Refusal) as caught:
        client.post(path, {}) if change else client.get(path)
    assert len(app.requests) == 1
    return str(caught.value)


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
    assert re.fullmatch(text, refused(TOLD[text], change="overlap" in TOLD[text].body["type"]), re.S)


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
    assert needed in refused(reply, path, change=change)


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


OTHERS = {
    "HTML": Reply("<html>", 200, media="text/html"), "a list": Reply("[1]"), "deep nesting": Reply("[" * 100_000),
    "404": Reply("gone", 404, media="text/html"), "more than 64 MiB": Reply("x" * (MOST + 1)),
}  # fmt: skip


@pytest.mark.parametrize("site", OTHERS)
def test_a_different_site_is_no_hubledger(site: str) -> None:
    with app_of(OTHERS[site]) as app, Client(Address(app.url)) as client, pytest.raises(NoConnection) as caught:
        client.get("status")
    assert app.url in str(caught.value)
    assert ("more than 64 MiB" if OTHERS[site].body[0] == "x" else "no Hubledger") in str(caught.value)


def test_pages_follow_the_cursor_with_the_same_filter() -> None:
    def answer(request: Request) -> Reply:
        return Reply({"next": None if "cursor=b%2B" in request.path else "b+"})

    with SmallApp(answer) as app, Client(Address(app.url)) as client:
        assert len(list(client.pages("dead-letters", {"status": "waiting"}, True))) == 2
        assert len(list(client.pages("dead-letters", {}, False))) == 1
    assert ["status=waiting" in one.path for one in app.requests] == [True, True, False]


HERE = "http://localhost:7071"


def read(given: str | None = None, run: str | None = None, **settings: str) -> Address:
    return read_address(given, settings, lambda: run)


def test_the_option_goes_before_the_setting_and_the_setting_before_the_local_run() -> None:
    assert read("https://a.example", HERE, HUBLEDGER_URL="https://b.example").url == "https://a.example"
    assert read(None, HERE, HUBLEDGER_URL="https://b.example").url == "https://b.example"
    assert read(None, HERE).url == HERE
    with pytest.raises(UsageFault, match=r"HUBLEDGER_URL.*make run"):
        read()
    for text in ("https://a.example/", "https://a.example/api/"):
        assert read(text).url == "https://a.example"
    assert read("https://a.example:8443/one/api").url == "https://a.example:8443/one"
    assert read("http://[::1]:7071").url == "http://[::1]:7071"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a.example", "begins with https://"),
        ("ftp://a.example", "begins with https://"),
        ("https://", "begins with https://"),
        ("https://a.example:x", "--url https://a.example:x"),
        ("https://a.example/?code=secret", "HUBLEDGER_KEY"),
        ("https://me:secret@a.example", "leave them out"),
    ],
)
def test_a_wrong_address_is_refused_without_its_secrets(text: str, why: str) -> None:
    with pytest.raises(UsageFault) as caught:
        read(text)
    assert why in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_key_crosses_no_network_in_the_clear_and_is_never_shown() -> None:
    for url, secret in (("http://a.example", "HUBLEDGER_KEY"), ("http://localhost.example", "HUBLEDGER_SCOPE")):
        with pytest.raises(UsageFault, match="not https"):
            read(url, **{secret: "api://app/.default"})
    known = read(HERE, HUBLEDGER_KEY="secret")
    assert (known.key, "secret" in repr(known)) == ("secret", False)
    with pytest.raises(UsageFault) as caught:
        read(HERE, HUBLEDGER_KEY="secret\nX-Other: 1")
    assert "secret" not in str(caught.value)
