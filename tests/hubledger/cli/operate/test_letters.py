"""Letters, numbers and causes are named as a table or the page shows them, or by their first characters."""

from collections.abc import Callable

import pytest

from tests.hubledger.cli.operate.conftest import Ask
from tests.hubledger.cli.small_app import Described, Reply, Request, problem

TABLE = "c7d198bb3507cfa9"
OTHER = "c7d2000000000000"
VALUES = (f"{TABLE}.0a1b2c3d", f"{TABLE}.0a9f0000")
SENT = "--reason test --yes --no-wait"
Answer = Callable[[Request], Reply]


def app(causes: tuple[str, ...] = (TABLE, OTHER), *, may_reveal: bool = True) -> Answer:
    """Answer with one letter, and with these causes, of which the first has two values and its messages can be seen."""
    full = Described(kind="redrive")

    def answer(request: Request) -> Reply:
        if "/revealed/" in request.path and not may_reveal:
            return problem("forbidden", 403, "no")
        reply = full(request)
        if "/groups" in request.path:
            names = VALUES if "fingerprint=" in request.path else causes
            told = {**reply.body["groups"][0], "template": "no such kind: …", "examples": ["lamp", "desk"]}
            return Reply({"groups": [{**told, "fingerprint": one} for one in names]})
        if "/dead-letters?" in request.path:
            own = {"fingerprint": VALUES[0], "error": None, "status": "exhausted"}
            return Reply({"letters": [{**reply.body["letters"][0], **own}], "next": None})
        return (
            Reply({**reply.body, "letters": None, "filter": {"fingerprint": TABLE}})
            if "filter" in reply.body
            else reply
        )

    return answer


@pytest.mark.parametrize(
    "written", ["15 1111", "15/1111", "15 / 1,111", "15 /1,111", "15/1,111", "15 1,111", "'15 / 1,111'"]
)
def test_a_position_is_taken_in_every_way_in_which_we_show_one(written: str, ask: Ask) -> None:
    assert ask(f"letters show {written}").requests[0].path == "/api/dead-letters/15/1111"
    assert ask(f"ledger explain {written}").requests[0].path == "/api/ledger/15/1111"
    ordered = ask(f"letters discard {written} {SENT}").last.body
    assert ordered["letters"] == [{"partition_id": "15", "sequence_number": "1111"}]


def test_letters_are_named_one_after_the_other_and_each_once(ask: Ask) -> None:
    ordered = ask(f"letters retry 3/41 3 / 1,042 4 7 3/41 {SENT}").last.body
    named = [(one["partition_id"], one["sequence_number"]) for one in ordered["letters"]]
    assert named == [("3", "41"), ("3", "1042"), ("4", "7")]


def test_a_number_with_separators_is_a_number_wherever_one_is_taken(ask: Ask) -> None:
    audit = ask("ledger audit --rows --first 1,111 --last 22,222 --no-wait").requests[0].body
    assert (audit["first"], audit["last"]) == ("1111", "22222")
    replay = ask("replay start --partition 15 --from 1,111 --to 1,112 --reason test --no-wait").requests[0].body
    assert (replay["from"], replay["to"]) == ({"sequence_number": "1111"}, {"sequence_number": "1112"})


WRONG = ["15", "15/", "/1111", "15/11,11", "15/1111/2", "3/41,3/42", "3/41 42", "15 -1", "15 ١", "15/1111x"]


@pytest.mark.parametrize("command", ["letters show", "ledger explain", "letters retry --reason test --yes"])
def test_what_names_no_letter_is_refused_before_anything_is_sent(command: str, ask: Ask) -> None:
    for written in (*WRONG, *(["3/41 3/42"] if "--yes" not in command else [])):
        found = ask(f"{command} -- {written}")
        assert (found.code, found.requests) == (2, []), written


BEGINNINGS = {"c7d1": TABLE, "c7d2": OTHER, TABLE: TABLE, "c7d1.0a1": VALUES[0], f"{TABLE}.0a9": VALUES[1]}


@pytest.mark.parametrize(("given", "meant"), BEGINNINGS.items())
def test_a_cause_is_named_by_how_it_begins(given: str, meant: str, ask: Ask) -> None:
    assert ask(f"letters retry --cause {given} {SENT}", app()).last.body["filter"] == {"fingerprint": meant}
    for command in ("letters list", "letters causes"):
        asked = ask(f"{command} --status exhausted --cause {given}", app()).requests
        assert any(f"fingerprint={meant}" in one.path for one in asked), command


def test_a_beginning_of_several_causes_is_refused_with_their_names(ask: Ask) -> None:
    for given, names in {"c7d": (TABLE, OTHER), f"{TABLE}.0a": VALUES}.items():
        found = ask(f"letters retry --cause {given} --reason test --yes", app())
        assert (found.code, {one.method for one in found.requests}) == (2, {"GET"})
        assert found.err == f"hubledger: --cause {given} begins 2 causes: {', '.join(names)}\n"


def test_a_cause_that_is_empty_or_has_other_letters_is_refused_before_anything_is_sent(ask: Ask) -> None:
    for given in ("", " ", "zz", "C7D1", f"{TABLE}.", f"{TABLE}0"):
        found = ask(f"letters discard --cause '{given}' --reason test --yes", app())
        assert (found.code, found.requests, "letters causes" in found.err) == (2, [], True), given


def test_where_the_app_does_not_name_every_cause_only_a_whole_one_is_taken(ask: Ask) -> None:
    many = app((TABLE, *(f"{number:016x}" for number in range(99))))
    assert ask("letters list --cause c7d1", many).code == 2
    assert f"fingerprint={OTHER}" in ask(f"letters list --cause {OTHER}", many).requests[0].path


@pytest.mark.parametrize("command", ["letters list", "tasks show 6f1e2f2b-52c8-4c5f-9d0a-0d8d3a3b9b11"])
@pytest.mark.parametrize("may_reveal", [True, False])
def test_a_cause_has_its_message_and_examples_where_the_caller_may_see_them(
    command: str, may_reveal: bool, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    monkeypatch.setenv("COLUMNS", "240")
    found, is_list = ask(command, app((TABLE,), may_reveal=may_reveal)), command == "letters list"
    assert (found.code, found.err) == (0, "")
    assert ("no such kind: … (e.g. lamp, desk)" in found.out) == may_reveal
    assert is_list or TABLE in found.out
    for told in ("mended: bin/hubledger letters retry", "give them up: bin/hubledger letters discard"):
        assert (f"{told} --cause {TABLE} --reason WHY\n" in found.out) == is_list


def test_the_json_of_letters_is_the_answer_alone(ask: Ask) -> None:
    found = ask("letters list --json", app())
    assert [one.path.partition("?")[0] for one in found.requests] == ["/api/dead-letters"]
    assert "no such kind" not in found.out
