"""A cause is shown by its message to who may see messages, and by its hash to others."""

import pytest

from hubledger.cli.main import main
from tests.hubledger.cli.described import Described
from tests.hubledger.cli.small_app import Reply, Request, SmallApp, problem

CAUSE = "5f5f"
TASK = "6f1e2f2b-52c8-4c5f-9d0a-0d8d3a3b9b11"


class App:
    """Has one letter, and a redrive of its cause. It tells messages or refuses to."""

    def __init__(self, *, may_reveal: bool) -> None:
        self._may_reveal = may_reveal
        self._full = Described(kind="redrive")

    def __call__(self, request: Request) -> Reply:
        if "/revealed/" in request.path and not self._may_reveal:
            return problem("forbidden", 403, "no")
        reply = self._full(request)
        if "/groups" in request.path:
            own = {"fingerprint": CAUSE, "template": "no such kind: …", "examples": ["lamp", "desk"]}
            return Reply({"groups": [{**reply.body["groups"][0], **own}]})
        if "/dead-letters" in request.path:
            one = {**reply.body["letters"][0], "fingerprint": f"{CAUSE}.77", "error": None, "status": "exhausted"}
            return Reply({"letters": [one], "next": None})
        return Reply({**reply.body, "letters": None, "filter": {"fingerprint": CAUSE}})


@pytest.mark.parametrize("command", [("letters", "list"), ("tasks", "show", TASK)])
@pytest.mark.parametrize("may_reveal", [True, False])
def test_a_cause_has_its_message_and_examples_where_the_caller_may_see_them(
    command: tuple[str, ...], may_reveal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "240")
    with SmallApp(App(may_reveal=may_reveal)) as app:
        assert main([*command, "--url", app.url]) == 0
    found = capsys.readouterr()
    assert ("no such kind: … (e.g. lamp, desk)" in found.out) == may_reveal
    assert command[0] == "letters" or CAUSE in found.out
    assert (f"mended: bin/hubledger letters retry --cause {CAUSE} --reason WHY\n" in found.out) == (
        command[0] == "letters"
    )
    assert (f"give them up: bin/hubledger letters discard --cause {CAUSE} --reason WHY\n" in found.out) == (
        command[0] == "letters"
    )
    assert found.err == ""


def test_json_is_the_answer_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with SmallApp(App(may_reveal=True)) as app:
        assert main(["letters", "list", "--json", "--url", app.url]) == 0
        assert [one.path.partition("?")[0] for one in app.requests] == ["/api/dead-letters"]
    assert "no such kind" not in capsys.readouterr().out
