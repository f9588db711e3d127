"""Every command of an operator, against an app that answers with the shapes of the API's own description."""

import json
import re
import shlex
import sys
import webbrowser
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from handlers.operations.tasks import KINDS
from hubledger.cli.main import main
from hubledger.cli.operate.commands import GROUPS, SINGLE
from tests.hubledger.cli.described import Described, unsafe
from tests.hubledger.cli.small_app import Reply, Request, SmallApp, problem

ID = "6f1e2f2b-52c8-4c5f-9d0a-0d8d3a3b9b11"
RUN = "0123456789abcdef"
COMMANDS = {
    "status": "", "health": "", "doctor": "", "open": "",
    "letters list": "--status waiting --all", "letters causes": "", "letters show": "3 41 --body text",
    "letters retry": "--cause aaaa --reason why --yes", "letters discard": "3/41 --reason why --yes",
    "tasks list": "--all", "tasks show": ID, "tasks diff": f"{ID} --all",
    "tasks pause": f"{ID} --reason why --yes", "tasks resume": f"{ID} --reason why --yes",
    "tasks cancel": f"{ID} --reason why --yes",
    "replay start": "--partition 3 --from 40 --to 2026-11-23T03:00:00Z --reason why --for-real --yes",
    "ledger explain": "3 41 --revealed", "ledger find": "--since 2026-11-23T03:00:00Z",
    "ledger audit": "--rows",
    "streams show": "--revealed", "streams next-incarnation": "--reason why --for-real --yes",
    "runs list": "--job home_activity", "runs step": "--yes",
    "runs show": RUN, "runs pause": "--reason why --yes",
    "runs resume": "--reason why --yes", "runs repair": "--since 2026-02-01 --reason why --yes",
    "runs backfill": "--until 2026-02-01 --reason why --yes", "runs withdraw": "--reason why --yes",
    "runs cancel": f"{RUN} --reason why --yes", "runs discard": f"{RUN} --reason why --yes",
    "erase start": "home-7 --reason why --for-real --yes",
    "purge start": "--older-than batch_ledger=90 --reason why --for-real --yes",
}  # fmt: skip
CHANGING = [f"{group} {name}" for group, (_, own) in GROUPS.items() for name, (_, changes) in own.items() if changes]
HOSTILE = "\x1b[31mred\x1b]0;title\x07[bold]b[/bold]\x9b2J\u202e\r\nline\x00:skull:"
Run = Callable[..., int]


def words(name: str) -> list[str]:
    """A command with its arguments."""
    return [*name.split(), *shlex.split(COMMANDS[name])]


@pytest.fixture
def against(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command against a small app."""

    def run(app: SmallApp, *arguments: str) -> int:
        monkeypatch.setenv("HUBLEDGER_URL", app.url)
        monkeypatch.setattr(webbrowser, "open", lambda _: True)
        return main(arguments)

    return run


def test_every_command_is_tried() -> None:
    groups = [f"{group} {name}" for group, (_, own) in GROUPS.items() for name in own]
    assert sorted([*COMMANDS, "logs"]) == sorted([*SINGLE, *groups])  # logs asks no app: test_doctor.py has it


@pytest.mark.parametrize(("width", "is_empty"), [("60", False), ("80", False), ("200", False), ("80", True)])
def test_every_command_shows_a_full_and_an_empty_answer_at_every_width(
    width: str, is_empty: bool, against: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    wrong = {}
    with SmallApp(Described(is_empty=is_empty)) as app:
        for name in COMMANDS:
            code, found = against(app, *words(name)), capsys.readouterr()
            longest = max(map(len, found.out.splitlines()), default=0)
            if code == 2 or found.err or not found.out or (longest > int(width) and not is_empty):
                wrong[name] = (code, found.err, longest)
    assert wrong == {}


@pytest.mark.parametrize("kind", [*KINDS])
@pytest.mark.parametrize("text", [None, lambda _: HOSTILE])
def test_each_kind_of_task_is_shown_with_its_own_facts(
    kind: str, text: Callable[[str], str] | None, against: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = []
    for is_empty in (False, True):
        with SmallApp(Described(text, kind=kind, is_empty=is_empty)) as app:
            for name in ("tasks list", "tasks show"):
                assert against(app, *words(name)) in (0, 1)
                found = capsys.readouterr()
                assert found.err == ""
                assert unsafe(found.out) == set()
                shown.append(found.out)
    assert all(kind in out for out in (*shown[:2], shown[3]))


def test_a_kind_without_facts_of_its_own_shows_its_plain_fields(
    against: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    own = {"kind": "census", "balanced": {"poison": 1_200, "unknown": 2}}
    with SmallApp(changing(lambda _: own, Described(kind="audit"))) as app:
        against(app, *words("tasks show"))
    found = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [
        line for line in found if line[:1] and line[0] in ("census", "balanced", "complete", "accounted", "partitions")
    ] == [
        ["census", "TASK_ID"],
        ["balanced", "poison=1,200,", "unknown=2"],
        ["complete", "yes"],
        ["accounted", "1,234,567"],
    ]


def test_no_text_of_the_app_steers_the_terminal(against: Run, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {}
    with SmallApp(Described(lambda _: HOSTILE)) as app:
        for name, form in product(COMMANDS, ([], ["--json"])):
            code, found = against(app, *words(name), *form), capsys.readouterr()
            if code not in (0, 1) or unsafe(found.out + found.err):
                wrong[name, *form] = (code, unsafe(found.out + found.err), found.err)
    assert wrong == {}


def test_a_refusal_of_the_app_is_code_1_and_none_steers_the_terminal(
    against: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal = problem(HOSTILE, 409, HOSTILE, errors=[{"field": HOSTILE, "detail": HOSTILE + "!"}], task_id=HOSTILE)
    with SmallApp(lambda _: refusal) as app:
        assert {name: code for name in COMMANDS if (code := against(app, *words(name))) != 1} == {}
    assert unsafe(capsys.readouterr().err) == set()


def test_json_is_the_answer_of_the_app(against: Run, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {}
    with SmallApp(Described()) as app:
        for name in COMMANDS:
            against(app, *words(name), "--json")
            lines = capsys.readouterr().out.splitlines()
            if not lines or not all(isinstance(json.loads(line), dict) for line in lines):
                wrong[name] = lines
    assert wrong == {}


def test_every_page_is_a_line_of_json(against: Run, capsys: pytest.CaptureFixture[str]) -> None:
    def answer(request: Request) -> Reply:
        return Reply({"letters": [], "next": None if "cursor=two" in request.path else "two"})

    with SmallApp(answer) as app:
        assert against(app, "letters", "list", "--all", "--json") == 0
    assert capsys.readouterr().out == '{"letters": [], "next": "two"}\n{"letters": [], "next": null}\n'


def test_what_changes_data_sends_nothing_without_a_person_and_without_yes(
    against: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    names = CHANGING
    with SmallApp(Described()) as app:
        codes = {name: against(app, *(word for word in words(name) if word != "--yes")) for name in names}
        sent = [one.path for one in app.requests if one.method != "GET"]
    assert codes == dict.fromkeys(names, 2)
    assert sent == []
    assert "give --yes" in capsys.readouterr().err


def test_every_task_and_order_has_an_id_of_its_own(against: Run) -> None:
    with SmallApp(Described()) as app:
        for name in COMMANDS:
            against(app, *words(name))
    tasks = [one.path for one in app.requests if one.method == "PUT"]
    orders = [one.body["order_id"] for one in app.requests if one.method == "POST" and "order_id" in one.body]
    assert (len(set(tasks)), len(set(orders))) == (len(tasks), len(orders))
    assert (len(tasks), len(orders)) == (9, 7)


def test_help_ends_with_an_example_that_the_command_takes(capsys: pytest.CaptureFixture[str]) -> None:
    for name in COMMANDS:
        main([*name.split(), "--help"])
        example = " ".join(capsys.readouterr().out.rpartition("\n\n")[2].split())
        assert example.startswith(f"Example: bin/hubledger {name}"), name
        given = shlex.split(example.removeprefix("Example: bin/hubledger "))
        given.remove("--watch") if "--watch" in given else None
        assert main([*given, "--url", "http://127.0.0.1:1", *(["--yes"] if name in CHANGING else [])]) == 2
        assert "nothing listens there" in capsys.readouterr().err, name


def changing(change: Callable[[Any], Any], full: Described | None = None) -> Callable[[Request], Reply]:
    """Answer as the description says, with a change of each body, which may also give the status."""
    described = full or Described()

    def answer(request: Request) -> Reply:
        reply = described(request)
        return Reply({**reply.body, **change(reply.body)}, reply.status, reply.headers)

    return answer


def test_the_codes_and_the_first_lines_say_whether_the_thing_is_healthy(
    against: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    def unhealthy(body: Any) -> Any:
        changed: dict[str, Any] = {name: False for name in ("ledger_balanced", "healthy", "balanced") if name in body}
        if isinstance(body.get("status"), str):
            changed["status"] = "failed"
        return changed | ({"run": {**body["run"], "status": "failed"}} if "run" in body else {})

    answer = changing(unhealthy)
    named = ("status", "health", "tasks show", "ledger audit", "runs show", "letters retry", "replay start")
    with SmallApp(lambda one: replace(answer(one), status=503) if "/health/" in one.path else answer(one)) as app:
        assert {name: against(app, *words(name)) for name in named} == dict.fromkeys(named, 1)
        capsys.readouterr()
        against(app, *words("status"))
    assert re.search(r"^ledger +NOT BALANCED *$", capsys.readouterr().out, re.M)


@pytest.mark.parametrize("exhausted", [0, 3])
def test_a_status_names_the_next_command_when_letters_need_a_person(
    exhausted: int, against: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = changing(lambda body: {"letters": {**body["letters"], "exhausted": exhausted}})
    with SmallApp(answer) as app:
        against(app, "status")
    assert ("\nNext: bin/hubledger letters causes --status exhausted\n" in capsys.readouterr().out) == (exhausted > 0)


def test_health_shows_what_it_may_see_without_a_key(against: Run, capsys: pytest.CaptureFixture[str]) -> None:
    def answer(request: Request) -> Reply:
        return Reply("", 401) if "ledger" in request.path else Reply({"healthy": True, "fault": None})

    with SmallApp(answer) as app:
        assert against(app, "health") == 1
    found = capsys.readouterr()
    assert found.out.count("healthy") == 2
    assert "HUBLEDGER_KEY" in found.err


def test_a_replay_by_key_sends_its_keys_twice_and_says_when_no_event_has_one(
    against: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    def done(body: Any) -> Any:
        if "counts" not in body:
            return {}
        return {"status": "done", "keys": 2, "counts": {**body["counts"], "events": 0, "events_changed": 0}}

    answer = changing(done)
    with SmallApp(answer) as app:
        asked = ["--key", "home 1", "--key", "ü", "--reason", "why", "--for-real", "--yes"]
        assert against(app, "replay", "start", *asked) == 0
        against(app, "replay", "start", "--reason", "why")
    sent = [one.body for one in app.requests if one.method == "PUT"]
    assert [(one.get("keys"), one["dry_run"]) for one in sent] == [
        (["home 1", "ü"], True),
        (["home 1", "ü"], False),
        (None, True),
    ]
    assert "no event of the range has one of these partition keys" in capsys.readouterr().out


def test_the_places_of_a_key_end_with_the_words_of_the_app_and_a_next_step(
    against: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    place = {"partition_id": "3", "sequence_number": "41", "letter": True, "tables": ["sensor_reading", "home"]}
    pages = {"two": ([], None), "": ([place], "two")}

    def answer(request: Request) -> Reply:
        assert request.path.startswith("/api/revealed/ledger?")
        places, following = pages["two" if "cursor=two" in request.path else ""]
        return Reply({"places": places, "next": following, "sentence": "Searched here. It cannot find that."})

    with SmallApp(answer) as app:
        assert against(app, "ledger", "find", "--key", "home 1", "--partition", "3") == 0
        first = capsys.readouterr().out
        assert against(app, "ledger", "find", "--key", "home 1", "--all") == 0
        whole = capsys.readouterr().out
    assert "key=home+1" in app.requests[0].path
    assert "partition_id=3" in app.requests[0].path
    assert re.search(r"3 +41 +yes +sensor_reading, home", first)
    assert "find that.\nOlder numbers were not searched yet: give --all.\nNext: bin/hubledger ledger explain" in first
    assert whole.splitlines()[-2:] == ["Searched here. It cannot find that.", "Next: bin/hubledger ledger explain 3 41"]


@pytest.mark.parametrize("asked", [[], ["--since", "today", "--key", "home-1"]])
def test_a_search_is_for_a_time_or_for_a_key(
    asked: list[str], against: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    with SmallApp(Described()) as app:
        assert against(app, "ledger", "find", *asked) == 2
        assert app.requests == []
    assert "give --since TIME" in capsys.readouterr().err


def test_with_yes_the_count_follows_a_stream_that_goes_on(against: Run) -> None:
    full = Described()

    def answer(request: Request) -> Reply:
        if request.method == "PUT" and request.body["expected_count"] != 12:
            return problem("count-differs", 409, "12 letters can be moved now", count=12)
        return full(request)

    with SmallApp(answer) as app:
        assert against(app, *words("letters retry")) == 0
    assert [one.body["expected_count"] for one in app.requests if one.method == "PUT"] == [1_234_567, 12]


@pytest.mark.parametrize(
    ("moved", "said"),
    [
        (2_160, "moved 2,160 of 2,169 letters"),
        (2_184, "moved 2,184 letters, 15 more than confirmed: they became movable later"),
    ],
)
def test_a_redrive_says_how_many_letters_it_moved_beyond_the_confirmed_ones(
    against: Run, capsys: pytest.CaptureFixture[str], moved: int, said: str
) -> None:
    answer = changing(lambda body: {"total": 2_169, "moved": moved} if "total" in body else {})
    with SmallApp(answer) as app:
        assert against(app, *words("letters retry")) == 0
        assert said in capsys.readouterr().out
        against(app, *words("tasks show"))
    assert said.removeprefix("moved ") in " ".join(capsys.readouterr().out.split())


def test_a_retry_waits_for_the_tries_of_its_letters_and_says_that_it_did_not_help(
    against: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    full, looks = Described(kind="redrive"), iter(["not_tried", "not_tried", "did_not_help"])

    def answer(request: Request) -> Reply:
        reply = full(request)
        if "move" in reply.body:
            is_look = request.method == "GET" and "/tasks/" in request.path
            words = {"result": next(looks), "words": "0 resolved, 40 failed again"} if is_look else {}
            return Reply(
                {**reply.body, "move": "retry", "outcome": {**reply.body["outcome"], **words} if words else None}
            )
        return reply

    with SmallApp(answer) as app:
        assert against(app, *words("letters retry")) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "0 resolved, 40 failed again"
    assert next(looks, None) is None


def test_an_answer_without_the_fields_of_an_app_is_a_fault_of_one_line(
    against: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    with SmallApp(lambda _: Reply({"ok": True})) as app:
        for name in COMMANDS:
            assert against(app, *words(name)) == 2, name
            said = capsys.readouterr().err
            assert "the answer has no field" in said, name
            assert len(said.splitlines()) == 1, name


def test_a_watch_without_a_terminal_needs_json(against: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert not sys.stdout.isatty()
    with SmallApp(Described()) as app:
        assert against(app, "status", "--watch") == 2
    assert "--json" in capsys.readouterr().err


def test_a_run_shows_its_rows_and_the_late_ones(against: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with SmallApp(Described()) as app:
        assert against(app, *words("runs show")) == 0
    assert re.search(r"rows read [\d,]+ windows [\d,]+ rows late [\d,]+ ", " ".join(capsys.readouterr().out.split()))
