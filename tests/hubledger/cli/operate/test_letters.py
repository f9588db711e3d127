"""Letters, numbers and causes are named as a table or the page shows them, or by their first characters."""

import shlex

import pytest

from hubledger.cli.main import main
from tests.hubledger.cli.described import Described
from tests.hubledger.cli.small_app import Reply, Request, SmallApp
from tests.offenders import holds_for

TABLE = "c7d198bb3507cfa9"
OTHER = "c7d2000000000000"
VALUES = (f"{TABLE}.0a1b2c3d", f"{TABLE}.0a9f0000")


class App:
    """Groups letters by two causes, of which the first has two values."""

    def __init__(self, causes: tuple[str, ...] = (TABLE, OTHER)) -> None:
        self._causes = causes
        self._full = Described()

    def __call__(self, request: Request) -> Reply:
        reply = self._full(request)
        if "/dead-letters/groups" not in request.path:
            return reply
        names = VALUES if "fingerprint=" in request.path else self._causes
        return Reply({"groups": [{**reply.body["groups"][0], "fingerprint": one} for one in names]})


def asked(line: str, app: App | None = None) -> list[Request]:
    """Return what a command asks the app for."""
    with SmallApp(app or App()) as served:
        assert main([*shlex.split(line), "--url", served.url]) in (0, 1)
        return served.requests


@holds_for(["15 1111", "15/1111", "15 / 1,111", "15 /1,111", "15/1,111", "15 1,111", "'15 / 1,111'"])
def test_a_position_is_taken_in_every_way_in_which_we_show_one(written: str) -> None:
    assert asked(f"letters show {written}")[0].path == "/api/dead-letters/15/1111"
    assert asked(f"ledger explain {written}")[0].path == "/api/ledger/15/1111"
    ordered = asked(f"letters discard {written} --reason test --yes --no-wait")[-1].body
    assert ordered["letters"] == [{"partition_id": "15", "sequence_number": "1111"}]


def test_letters_are_named_one_after_the_other_and_each_once() -> None:
    ordered = asked("letters retry 3/41 3 / 1,042 4 7 3/41 --reason test --yes --no-wait")[-1].body
    named = [(one["partition_id"], one["sequence_number"]) for one in ordered["letters"]]
    assert named == [("3", "41"), ("3", "1042"), ("4", "7")]


def test_a_number_with_separators_is_a_number_wherever_one_is_taken() -> None:
    audit = asked("ledger audit --rows --first 1,111 --last 22,222 --no-wait")[0].body
    assert (audit["first"], audit["last"]) == ("1111", "22222")
    replay = asked("replay start --partition 15 --from 1,111 --to 1,112 --reason test --no-wait")[0].body
    assert (replay["from"], replay["to"]) == ({"sequence_number": "1111"}, {"sequence_number": "1112"})


@holds_for(["15", "15/", "/1111", "15/11,11", "15/1111/2", "3/41,3/42", "3/41 42", "15 -1", "15 ١", "15/1111x"])
def test_what_names_no_letter_is_refused_before_anything_is_sent(written: str) -> None:
    with SmallApp(App()) as served:
        for command in ("letters show", "ledger explain", "letters retry --reason test --yes"):
            assert main([*command.split(), "--url", served.url, "--", *written.split()]) == 2
        assert served.requests == []


def test_a_command_of_one_number_takes_one() -> None:
    with SmallApp(App()) as served:
        assert main(["letters", "show", "3/41", "3/42", "--url", served.url]) == 2


@holds_for([("c7d1", TABLE), ("c7d2", OTHER), (TABLE, TABLE), ("c7d1.0a1", VALUES[0]), (f"{TABLE}.0a9", VALUES[1])])
def test_a_cause_is_named_by_how_it_begins(case: tuple[str, str]) -> None:
    given, meant = case
    assert asked(f"letters retry --cause {given} --reason test --yes --no-wait")[-1].body["filter"] == {
        "fingerprint": meant
    }
    for command in ("letters list", "letters causes"):
        assert f"fingerprint={meant}" in asked(f"{command} --status exhausted --cause {given}")[-1].path


def test_a_beginning_of_several_causes_is_refused_with_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    with SmallApp(App()) as served:
        assert main(["letters", "retry", "--cause", "c7d", "--reason", "test", "--yes", "--url", served.url]) == 2
        assert main(["letters", "retry", "--cause", f"{TABLE}.0a", "--reason", "x", "--yes", "--url", served.url]) == 2
        assert {one.method for one in served.requests} == {"GET"}
    assert capsys.readouterr().err == (
        f"hubledger: --cause c7d begins 2 causes: {TABLE}, {OTHER}\n"
        f"hubledger: --cause {TABLE}.0a begins 2 causes: {', '.join(VALUES)}\n"
    )


def test_a_cause_that_is_empty_or_has_other_letters_is_refused_before_anything_is_sent(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for given in ("", " ", "zz", "C7D1", f"{TABLE}.", f"{TABLE}0"):
        with SmallApp(App()) as served:
            command = ["letters", "discard", "--cause", given, "--reason", "test", "--yes", "--url", served.url]
            assert main(command) == 2, given
            assert served.requests == [], given
        assert "letters causes" in capsys.readouterr().err, given


def test_where_the_app_does_not_name_every_cause_only_a_whole_one_is_taken() -> None:
    many = App((TABLE, *(f"{number:016x}" for number in range(99))))
    with SmallApp(many) as served:
        assert main(["letters", "list", "--cause", "c7d1", "--url", served.url]) == 2
    assert f"fingerprint={OTHER}" in asked(f"letters list --cause {OTHER}", many)[0].path
