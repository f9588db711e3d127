import json
import re
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from io import StringIO
from typing import Any, get_args

import pytest
from rich.console import Console

from core.model.commits import ErrorClass, LetterStatus
from handlers.operations.tasks import KINDS
from hubledger.cli.main import main
from hubledger.cli.operate.commands import GROUPS, SINGLE
from hubledger.cli.operate.tasks import Job, wait_for
from hubledger.cli.output import Output
from hubledger.cli.remote.client import AppAnswer, NoConnection, Refusal
from tests.hubledger.cli.operate.conftest import Ask
from tests.hubledger.cli.small_app import Described, Reply, Request, SmallApp, problem, unsafe

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
    "erase forget-key": "--reason why --for-real --yes",
    "purge start": "--older-than batch_ledger=90 --reason why --for-real --yes",
}  # fmt: skip
CHANGING = [f"{group} {name}" for group, (_, own) in GROUPS.items() for name, (_, changes) in own.items() if changes]
HOSTILE = "\x1b[31mred\x1b]0;title\x07[bold]b[/bold]\x9b2J\u202e\r\nline\x00:skull:"
Answer = Callable[[Request], Reply]


def line(name: str) -> str:
    return f"{name} {COMMANDS[name]}"


def changing(change: Callable[[Any], Any], full: Described | None = None) -> Answer:
    described = full or Described()

    def answer(request: Request) -> Reply:
        reply = described(request)
        return replace(reply, body={**reply.body, **change(reply.body)})

    return answer


def test_every_command_is_tried() -> None:
    groups = [f"{group} {name}" for group, (_, own) in GROUPS.items() for name in own]
    elsewhere = (
        "logs",
        "mcp",
    )  # logs asks no app: test_doctor.py; mcp prints no answer: tests/acceptance/cli/test_cli.py
    assert sorted([*COMMANDS, *elsewhere]) == sorted([*SINGLE, *groups])


@pytest.mark.parametrize(("width", "is_empty"), [("60", False), ("80", False), ("200", False), ("80", True)])
def test_every_command_shows_a_full_and_an_empty_answer_at_every_width(
    width: str, is_empty: bool, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    for name in COMMANDS:
        for text in (None, lambda _: "some words of the app " * 9):
            found = ask(line(name), Described(text, is_empty=is_empty))
            lines = [
                one for one in found.out.splitlines() if not one.startswith("bin/hubledger ")
            ]  # which is to be pasted
            assert (found.code in (0, 1), found.err, found.out != "") == (True, "", True), name
            assert max(map(len, lines), default=0) <= int(width), name


@pytest.mark.parametrize("kind", [*KINDS])
@pytest.mark.parametrize("text", [None, lambda _: HOSTILE])
def test_each_kind_of_task_is_shown_with_its_own_facts(kind: str, text: Callable[[str], str] | None, ask: Ask) -> None:
    for is_empty in (False, True):
        for name in ("tasks list", "tasks show"):
            found = ask(line(name), Described(text, kind=kind, is_empty=is_empty))
            assert (found.code in (0, 1), found.err, unsafe(found.out)) == (True, "", set())
            assert kind in found.out or (is_empty and name == "tasks list")


def test_a_kind_without_facts_of_its_own_shows_its_plain_fields(ask: Ask) -> None:
    own = {"kind": "census", "balanced": {"poison": 1_200, "unknown": 2}}
    out = ask(line("tasks show"), changing(lambda _: own, Described(kind="audit"))).out
    for shown in ("census +TASK_ID", "balanced +poison=1,200, +unknown=2", "complete +yes", "accounted +1,234,567"):
        assert re.search(f"^ *{shown} *$", out, re.M), shown
    assert "partitions" not in out


@pytest.mark.parametrize(
    ("erased_by", "said"),
    [(ID, f"An erasure blanked it: bin/hubledger tasks show {ID}"), (None, "--body text the body.")],
)
def test_an_erased_letter_is_said_to_be_erased_with_its_task(erased_by: str | None, said: str, ask: Ask) -> None:
    answer = changing(lambda full: {"letter": {**full["letter"], "erased_by": erased_by}, "body": None})
    out = ask("letters show 3 41", answer).out
    assert said in out.replace("\n", " ")
    assert bool(re.search("^ *body +erased *$", out, re.M)) is (erased_by is not None)


def test_a_refusal_of_the_app_is_code_1_and_no_text_steers_the_terminal(ask: Ask) -> None:
    refusal = problem(HOSTILE, 409, HOSTILE, errors=[{"field": HOSTILE, "detail": HOSTILE + "!"}], task_id=HOSTILE)
    for name in COMMANDS:
        for form in ("", " --json"):
            found = ask(line(name) + form, Described(lambda _: HOSTILE))
            assert (found.code in (0, 1), unsafe(found.out + found.err)) == (True, set()), (name, form)
            if form:
                lines = found.out.splitlines()
                assert lines and all(isinstance(json.loads(one), dict) for one in lines), name
        refused = ask(line(name), lambda _: refusal)
        assert (refused.code, unsafe(refused.err)) == (1, set()), name


def test_every_page_is_a_line_of_json(ask: Ask) -> None:
    found = ask(
        "letters list --all --json",
        lambda one: Reply({"letters": [], "next": None if "cursor=two" in one.path else "two"}),
    )
    assert (found.code, found.out) == (0, '{"letters": [], "next": "two"}\n{"letters": [], "next": null}\n')


def test_what_changes_data_sends_nothing_without_a_person_and_without_yes(ask: Ask) -> None:
    for name in CHANGING:
        found = ask(line(name).replace("--yes", ""))
        assert (found.code, "give --yes" in found.err) == (2, True), name
        assert [one.path for one in found.requests if one.method != "GET"] == [], name


def test_every_task_and_order_has_an_id_of_its_own(ask: Ask) -> None:
    sent = [one for name in COMMANDS for one in ask(line(name)).requests]
    tasks = [one.path for one in sent if one.method == "PUT"]
    orders = [one.body["order_id"] for one in sent if one.method == "POST" and "order_id" in one.body]
    assert (len(set(tasks)), len(set(orders)), len(tasks), len(orders)) == (9, 7, 9, 7)


def test_help_ends_with_an_example_that_the_command_takes(capsys: pytest.CaptureFixture[str]) -> None:
    for name in COMMANDS:
        main([*name.split(), "--help"])
        example = " ".join(capsys.readouterr().out.rpartition("\n\n")[2].split())
        assert example.startswith(f"Example: bin/hubledger {name}"), name
        given = shlex.split(example.removeprefix("Example: bin/hubledger ").replace(" --watch", ""))
        assert main([*given, "--url", "http://127.0.0.1:1", *(["--yes"] if name in CHANGING else [])]) == 2
        assert "no answer from http://127.0.0.1:1: nothing listens there" in capsys.readouterr().err, name


def test_the_codes_and_the_first_lines_say_whether_the_thing_is_healthy(ask: Ask) -> None:
    def unhealthy(body: Any) -> Any:
        changed: dict[str, Any] = {name: False for name in ("ledger_balanced", "healthy", "balanced") if name in body}
        if isinstance(body.get("status"), str):
            changed["status"] = "failed"
        return changed | ({"run": {**body["run"], "status": "failed"}} if "run" in body else {})

    full = changing(unhealthy)

    def answer(request: Request) -> Reply:
        return replace(full(request), status=503) if "/health/" in request.path else full(request)

    named = ("status", "health", "tasks show", "ledger audit", "runs show", "letters retry", "replay start")
    found = {name: ask(line(name), answer) for name in named}
    assert {name: one.code for name, one in found.items()} == dict.fromkeys(named, 1)
    assert re.search(r"^ledger +NOT BALANCED *$", found["status"].out, re.M)


STOP = {"partition_id": "3", "reason": "outage", "detail": None, "stopped_at": "2026-11-23T03:00:00Z", "attempts": 4}
STOP |= {"patience": 10, "failure": "KeyError at transform.py:57", "failed": 99, "tried": 100, "letters": 0}


@pytest.mark.parametrize("may_reveal", [True, False])
def test_a_status_names_the_error_of_a_stop_and_the_next_command_of_the_worst_thing(may_reveal: bool, ask: Ask) -> None:
    full, state = Described(), {"exhausted": 3, "reason": "outage", "balanced": True, "attempts": 4}

    def answer(request: Request) -> Reply:
        body, stops = full(request).body, [{**STOP, **state}] if state["reason"] else []
        if "/revealed/stops" in request.path:
            detail = "99 of 100 events fail: KeyError: 'unit'"
            seen = Reply({"stops": [{**one, "detail": detail} for one in stops]})
            return seen if may_reveal else Reply("", 403)
        books = {**body["partitions"][0], "partition_id": "3", "stops": stops}
        letters = {**body["letters"], "exhausted": state["exhausted"]}
        own = {"stops": len(stops), "standing": [], "ledger_balanced": state["balanced"], "hub_fault": state.get("hub")}
        gone = {"partition_id": "3", "kind": "unkept", "events": 2, "before": "1234"}
        oldest = {"partition_id": "9", "sequence_number": "77", "failed_at": body["at"]}
        own |= {"hub_forgets": {**body["hub_forgets"], "events_lost": 2, "lost": [gone]}, "oldest_open_letter": oldest}
        return Reply({**body, **own, "letters": letters, "partitions": [books]})

    outage = ask("status", answer)
    assert ("KeyError: 'unit'" in outage.out, "Words of errors are hidden" in outage.err) == (
        may_reveal,
        not may_reveal,
    )
    seen = " ".join(outage.out.split())
    assert "99 of 100 events fail, most with KeyError at transform.py:57: held, attempt 4 of 10" in seen
    assert re.search(" oldest [^()]*9[^()]* failed ", seen)
    assert " STOPPED " in seen and "lost (partition 3 before 1234), " in seen
    state["attempts"] = 10
    accepted = " ".join(ask("status", answer).out.split())
    assert " FAILS " in accepted and "no longer held: events that fail become letters now, 0 so far" in accepted
    state["attempts"] = 4
    nexts = {"outage": "logs", "incarnation": "streams next-incarnation", "": "letters causes --status exhausted"}
    for reason, following in nexts.items():
        state["reason"] = reason
        assert ask("status", answer).out.endswith(f"\nNext: bin/hubledger {following}\n"), reason
    state |= {"reason": "outage", "attempts": 10}  # its events become letters now
    assert ask("status", answer).out.endswith("\nNext: bin/hubledger letters causes\n")
    state |= {"balanced": False, "reason": ""}
    assert ask("status", answer).out.endswith("\nNext: bin/hubledger ledger audit\n")
    state |= {"balanced": True, "hub": "it did not answer"}
    assert ask("status", answer).out.endswith("\nNext: bin/hubledger logs\n")
    state |= {"hub": None, "exhausted": 0}
    assert "Next:" not in ask("status", answer).out


def test_health_shows_what_it_may_see_without_a_key(ask: Ask) -> None:
    found = ask(
        "health", lambda one: Reply("", 401) if "ledger" in one.path else Reply({"healthy": True, "fault": None})
    )
    assert (found.code, found.out.count("healthy"), "HUBLEDGER_KEY" in found.err) == (1, 2, True)


def test_a_replay_by_key_sends_its_keys_twice_and_says_when_no_event_has_one(ask: Ask) -> None:
    def done(body: Any) -> Any:
        none = {"status": "done", "keys": 2, "counts": {**body.get("counts", {}), "events": 0, "events_changed": 0}}
        return none if "counts" in body else {}

    keyed = ask("replay start --key 'home 1' --key ü --reason why --for-real --yes", changing(done))
    plain = ask("replay start --reason why", changing(done))
    sent = [one.body for one in (*keyed.requests, *plain.requests) if one.method == "PUT"]
    keys = ["home 1", "ü"]
    assert [(one.get("keys"), one["dry_run"]) for one in sent] == [(keys, True), (keys, False), (None, True)]
    assert (keyed.code, "no event of the range has one of these partition keys" in keyed.out) == (0, True)


def test_the_places_of_a_key_end_with_the_words_of_the_app_and_a_next_step(ask: Ask) -> None:
    place = {"partition_id": "3", "sequence_number": "41", "letter": True, "tables": ["sensor_reading", "home"]}

    def answer(request: Request) -> Reply:
        places, following = ([], None) if "cursor=two" in request.path else ([place], "two")
        return Reply({"places": places, "next": following, "sentence": "Searched here. It cannot find that."})

    first = ask("ledger find --key 'home 1' --partition 3", answer)
    whole = ask("ledger find --key 'home 1' --all", answer).out.splitlines()
    assert first.last.path.startswith("/api/revealed/ledger?")
    assert "key=home+1" in first.last.path and "partition_id=3" in first.last.path
    assert re.search(r"3 +41 +yes +sensor_reading, home", first.out)
    told = "find that.\nOlder numbers were not searched yet: give --all.\nNext: bin/hubledger ledger explain"
    assert told in first.out
    assert whole[-2:] == ["Searched here. It cannot find that.", "Next: bin/hubledger ledger explain 3 41"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("ledger find", "give --since TIME"),
        ("ledger find --since today --key home-1", "give --since TIME"),
        ("ledger audit --no-wait", "give --rows"),
        ("status --watch", "--json"),  # without a terminal
    ],
)
def test_a_wrong_choice_of_options_is_refused_before_anything_is_sent(given: str, why: str, ask: Ask) -> None:
    assert not sys.stdout.isatty()
    found = ask(given)
    assert (found.code, why in found.err, found.requests) == (2, True, [])


def test_with_yes_the_count_follows_a_stream_that_goes_on(ask: Ask) -> None:
    full = Described()

    def answer(request: Request) -> Reply:
        if request.method == "PUT" and request.body["expected_count"] != 12:
            return problem("count-differs", 409, "12 letters can be moved now", count=12)
        return full(request)

    found = ask(line("letters retry"), answer)
    assert [one.body["expected_count"] for one in found.requests if one.method == "PUT"] == [1_234_567, 12]
    assert found.code == 0


def test_a_redrive_takes_the_letters_of_its_preview_and_says_what_became_of_them(ask: Ask) -> None:
    counts = {"total": 545, "moved": 540, "unmoved": 5, "came_later": 37}
    preview = {"count": 545, "failed_before": "2026-11-23T03:00:00.123456Z"}
    answer = changing(lambda body: counts if "total" in body else preview if "count" in body else {})
    for name, given in {"retry": "--cause aaaa --failed-from 2026-11-20T03:00:00Z", "discard": "--partition 3"}.items():
        found = ask(f"letters {name} {given} --reason why --yes", answer)
        (ordered,) = [one.body for one in found.requests if one.method == "PUT"]
        assert (ordered["expected_count"], ordered["filter"]["failed_before"]) == (545, preview["failed_before"])
        assert len(ordered["filter"]) == len(given.split()) / 2 + 1
        said = "moved 540 of 545 letters\n5 letters not moved: changed meanwhile\n37 letters not moved: they came"
        assert (found.code, f"{said} after the preview" in found.out) == (0, True)
    shown = " ".join(ask(line("tasks show"), changing(lambda _: counts, Described(kind="redrive"))).out.split())
    assert "540 of 545 letters" in shown and "came later 37" in shown


def test_a_retry_waits_for_the_tries_of_its_letters_and_says_that_it_did_not_help(ask: Ask) -> None:
    full, looks = Described(kind="redrive"), iter(["not_tried", "not_tried", "did_not_help"])

    def answer(request: Request) -> Reply:
        reply = full(request)
        if "move" not in reply.body:
            return reply
        outcome = None
        if request.method == "GET" and "/tasks/" in request.path:
            words = {"result": next(looks), "words": "0 resolved, 40 failed again"}
            outcome = {**reply.body["outcome"], **words}
        return Reply({**reply.body, "move": "retry", "outcome": outcome})

    found = ask(line("letters retry"), answer)
    assert (found.code, found.out.splitlines()[-2:]) == (
        1,
        ["0 resolved, 40 failed again", "Next: bin/hubledger letters causes"],
    )
    assert next(looks, None) is None


def test_an_answer_without_the_fields_of_an_app_is_a_fault_of_one_line(ask: Ask) -> None:
    for name in COMMANDS:
        found = ask(line(name), lambda _: Reply({"ok": True}))
        assert (found.code, len(found.err.splitlines())) == (2, 1), name
        assert "the answer has no field" in found.err, name


def test_a_run_shows_its_rows_and_the_late_ones(ask: Ask) -> None:
    out = " ".join(ask(line("runs show")).out.split())
    assert re.search(r"rows read [\d,]+ windows [\d,]+ rows late [\d,]+ ", out)


def test_the_rows_of_a_run_are_one_number_in_the_list_in_the_run_and_on_the_page(ask: Ask) -> None:
    full = Described()

    def answer(request: Request) -> Reply:
        body = full(request).body
        run = body["run"] if "run" in body else body["runs"][0]
        run |= {"rows_planned": 800, "quality": run["quality"] | {"rows_ledger": 300}}
        return Reply(body)

    for call in ("runs list", "runs show"):
        out = ask(line(call), answer).out
        assert (re.search(r"\b300\b", out) is not None, "800" in out) == (True, False), call


@pytest.mark.parametrize("kind", ["audit", "replay", "erasure"])
def test_a_task_that_is_only_planned_claims_no_result_and_says_how_to_look(kind: str, ask: Ask) -> None:
    planned = {"status": "planned", "balanced": True, "faults": [], "accounted": 0, "ended_at": None}
    answer = changing(lambda body: planned, Described(kind=kind, is_empty=True))
    start = {
        "audit": "ledger audit --rows",
        "replay": "replay start --reason why",
        "erasure": "erase start x --reason why",
    }
    for command in (f"{start[kind]} --no-wait", f"tasks show {ID}"):
        found = ask(command, answer)
        said = found.out.replace("\n", " ")
        assert (found.code, "It is planned. To see how it ends: bin/hubledger tasks show " in said) == (0, True)
        assert "none" not in said.split()
        assert not re.search("^ *(ledger +balanced|faults +0|accounted +0)", found.out, re.M), found.out


def test_a_dry_run_says_how_to_go_on_or_that_nothing_is_to_be_done_and_what_is_not_found_where_to_look(
    ask: Ask,
) -> None:
    is_done, nothing = {"status": "done", "ended_at": "2026-11-23T03:00:00Z"}, "There is nothing to do."
    for rows, said in {0: nothing, 3: "Nothing was changed yet: the same command with --for-real does it."}.items():
        answer = changing(partial(dict, rows=rows, **is_done), Described(kind="purge"))
        assert ask("purge start --reason why", answer).out.splitlines()[-1] == said
    found = ask(
        "purge start --reason why --for-real --yes", changing(lambda _: {**is_done, "rows": 0}, Described(kind="purge"))
    )
    assert (found.out.splitlines()[-1], [one.method for one in found.requests].count("PUT")) == (nothing, 1)
    missing = ask("letters show 3 41", lambda _: problem("not-found", 404, "partition 3 has no letter 41"))
    assert missing.err.endswith("where the number went: bin/hubledger ledger explain 3 41\n")
    short = ask("letters discard 3/41 --reason x --yes")
    assert (short.code, short.requests, "--reason: say why" in short.err) == (2, [], True)
    assert ask("ledger find --since -1h --partition 9", lambda _: Reply({"commits": []})).code == 1


def test_a_move_of_no_letter_is_refused_with_a_hint(ask: Ask) -> None:
    for move in ("retry", "discard"):
        none = ask(f"letters {move} --cause {TABLE} --reason why --yes", changing(lambda _: {"count": 0, "causes": []}))
        assert (none.code, none.out, [one.method for one in none.requests]) == (1, "", ["GET"]), move
        assert none.err == f"hubledger: no letter to {move}\n  look at what there is: bin/hubledger letters causes\n"


def wait(*found: tuple[str, int, str | None] | Exception, out: Output | None = None) -> AppAnswer:
    """Wait for a task without a pause between two looks, which find these."""
    left = iter(found)

    def read() -> AppAnswer:
        one = next(left)
        if isinstance(one, Exception):
            raise one
        status, done, fault = one
        return AppAnswer("", {"status": status, "done": done, "total": 2_000, "fault": fault})

    return wait_for(Job("replay", read, "done"), out or Output(), every=0)


def test_the_bar_of_a_wait_shows_counts_and_the_fault_of_the_app_without_what_steers() -> None:
    out, screen = Output(), StringIO()
    out.errors = Console(file=screen, force_terminal=True, width=120, color_system=None, _environ={})
    wait(("paused", 1_500, "\x1b]0;owned\x07[bold]b[/bold][/]\x9b2J"), out=out)
    assert "1,500 of 2,000" in screen.getvalue()
    assert "\\x1b]0;owned\\x07[bold]b[/bold][/]\\x9b2J" in screen.getvalue()
    assert "\x1b]" not in screen.getvalue() and "\x9b" not in screen.getvalue()


def test_a_wait_bears_a_silence_and_ends_with_a_long_one_a_refusal_and_the_end_or_a_pause_of_the_task() -> None:
    silence = NoConnection("no answer")
    assert wait(*[silence, Refusal(503, "unavailable")] * 5, ("done", 0, None)).value["status"] == "done"
    for status in ("done", "cancelled", "failed", "paused"):
        assert wait(("running", 0, None), (status, 0, None)).value["status"] == status
    with pytest.raises(NoConnection):
        wait(*[silence] * 30)
    with pytest.raises(Refusal):
        wait(Refusal(404, "not-found"), ("done", 0, None))


TABLE = "c7d198bb3507cfa9"
OTHER = "c7d2000000000000"
VALUES = (f"{TABLE}.0a1b2c3d", f"{TABLE}.0a9f0000")
SENT = "--reason test --yes --no-wait"


def app(causes: tuple[str, ...] = (TABLE, OTHER), *, may_reveal: bool = True) -> Answer:
    """Answer with one letter, and with these causes, of which the first has two values and its messages can be seen."""
    full = Described(kind="redrive")

    def answer(request: Request) -> Reply:
        if "/revealed/" in request.path and not may_reveal:
            return problem("forbidden", 403, "no")
        reply = full(request)
        if "/groups" in request.path:
            names = VALUES if "fingerprint=" in request.path and "/revealed/" in request.path else causes
            told = {**reply.body["groups"][0], "template": "no such kind: …", "examples": ["lamp", "desk"]}
            return Reply({"groups": [{**told, "fingerprint": one} for one in names]})
        if "/dead-letters?" in request.path:
            place = {"partition_id": "3", "sequence_number": "41"}
            own = {**place, "fingerprint": VALUES[0], "error": None, "status": "exhausted"}
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
    placed = ask("replay start --from '15 / 1,111' --to 15/1,112 --reason test --no-wait").requests[0].body
    assert (placed["from"], placed["to"], placed["partitions"]) == (replay["from"], replay["to"], ["15"])
    of_one = ask("ledger audit --rows --partition 15 --first '15 / 1,111' --no-wait").requests[0].body
    assert (of_one["partition_id"], of_one["first"]) == ("15", "1111")
    for partitions in ("--partition 3 --from 15/7", "--from 3/7 --to 15/7", "--partition 3 --partition 15 --from 15/7"):
        assert ask(f"replay start {partitions} --reason test --no-wait").requests == [], partitions


WRONG = ["15", "15/", "/1111", "15/11,11", "15/1111/2", "3/41,3/42", "3/41 42", "15 -1", "15 ١", "15/1111x"]


@pytest.mark.parametrize("command", ["letters show", "ledger explain", "letters retry --reason test --yes"])
def test_what_names_no_letter_is_refused_before_anything_is_sent(command: str, ask: Ask) -> None:
    for written in (*WRONG, *(["3/41 3/42"] if "--yes" not in command else [])):
        found = ask(f"{command} -- {written}")
        assert (found.code, found.requests) == (2, []), written


BEGINNINGS = {"c7d1": TABLE, "c7d2": OTHER, TABLE: TABLE, "c7d1.0a1": VALUES[0], f"{TABLE}.0a9": VALUES[1]}


@pytest.mark.parametrize(("given", "meant"), BEGINNINGS.items())
def test_a_cause_is_named_by_how_it_begins(given: str, meant: str, ask: Ask) -> None:
    assert ask(f"letters retry --cause {given} {SENT}", app()).last.body["filter"]["fingerprint"] == meant
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
    for told in ("mended: bin/hubledger letters retry", "them up: bin/hubledger letters discard"):
        assert (f"{told} --cause {TABLE}\n" in found.out) == is_list


def test_the_json_of_letters_is_the_answer_alone(ask: Ask) -> None:
    found = ask("letters list --json", app())
    assert [one.path.partition("?")[0] for one in found.requests] == ["/api/dead-letters"]
    assert "no such kind" not in found.out


TASKS = ("270c1111-52c8-4c5f-9d0a-0d8d3a3b9b11", "270c2222-52c8-4c5f-9d0a-0d8d3a3b9b11")
RUNS = {1_003: "3a00000000000000", 3: "4f1e2f2b52c84c5f", 2: "3b00000000000000"}


def listing_app(request: Request) -> Reply:
    """Answer with two tasks, a page each, and with three runs, of which only one number is on the second page."""
    body, is_second = Described()(request).body, "cursor=two" in request.path
    following = {"next": None if is_second else "two"}
    if "/api/tasks?" in request.path:
        return Reply({**body, "tasks": [{**body["tasks"][0], "task_id": TASKS[is_second]}], **following})
    if "/api/aggregations?" in request.path:
        numbers = [3, 2] if is_second else [1_003]
        runs = [{**body["runs"][0], "number": one, "run_id": RUNS[one]} for one in numbers]
        return Reply({**body, "runs": runs, "jobs": ["home_activity", "rows.home"], **following})
    return Reply(body)


def test_a_task_and_a_run_are_named_by_how_their_ids_begin_and_a_run_by_its_number(ask: Ask) -> None:
    for command in ("show 270c1", "diff 270c1", "pause 270C1 --reason why --yes", "cancel 270c1 --reason why --yes"):
        assert f"/api/tasks/{TASKS[0]}" in ask(f"tasks {command}", listing_app).last.path, command
    for given, number in {"3": 3, "1,003": 1_003, "4f1e": 3, "3a": 1_003, "2": 2}.items():
        for command in ("show {}", "cancel {} --reason why --yes", "discard {} --reason why --yes"):
            found = ask(f"runs {command.format(given)} --job rows", listing_app)
            assert f"/api/aggregations/runs/{RUNS[number]}" in found.last.path, (given, command)
            assert "job=rows.home" in found.requests[1].path
    for command in ("pause", "resume", "withdraw", "repair", "step"):
        for given, name in {"--job rows.home": "rows.home", "--job rows": "rows.home", "": "home_activity"}.items():
            reason = "" if command == "step" else "--reason why"
            assert ask(f"runs {command} {given} {reason} --yes", listing_app).last.body["job"] == name, (command, given)


def test_a_beginning_of_several_or_of_none_is_refused_and_what_is_no_id_is_not_asked_for(ask: Ask) -> None:
    several = ask("tasks show 270c", listing_app)
    assert (several.code, several.err) == (2, f"hubledger: 270c begins 2 tasks: {', '.join(TASKS)}\n")
    several = ask("runs list --job ho", lambda one: Reply({**listing_app(one).body, "jobs": ["home_1", "home_2"]}))
    assert (several.code, several.err) == (2, "hubledger: --job ho begins 2 aggregates: home_1, home_2\n")
    for given, hint in {"tasks show 99": "tasks list --all", "runs show 7": "runs list --all"}.items():
        none = ask(given, listing_app)
        assert (none.code, f"look at what there is: bin/hubledger {hint}" in none.err) == (1, True), given
    for given in ("tasks show home", "tasks pause '' --reason why --yes", "runs show home", "runs show 1,1"):
        assert (found := ask(given, listing_app)).code == 2 and found.requests == [], given


def test_a_word_that_is_none_of_a_list_is_refused_with_the_list_before_anything_is_sent(ask: Ask) -> None:
    lists = {
        "letters list --status": ", ".join(get_args(LetterStatus)),
        "letters causes --class": ", ".join(get_args(ErrorClass)),
        "tasks list --status": "planned, running, paused, done, cancelled, failed",
        "tasks list --kind": ", ".join(KINDS),
        "letters show 3 41 --body": "text, json, hex",
        f"runs discard {RUN} --reason why --what": "run, result",
    }
    for call, words in lists.items():
        found = ask(f"{call} home")
        assert (found.code, found.requests) == (2, []), call
        listed = ", ".join(map(repr, words.split(", ")))
        assert found.err == f"hubledger: Invalid value for '{call.split()[-1]}': 'home' is not one of {listed}\n"
        for word in words.split(", "):
            assert ask(f"{call} {word} {'--yes' if 'why' in call else ''}").code == 0, (call, word)


def test_a_day_and_an_anchor_may_be_words_and_distances(ask: Ask) -> None:
    now = datetime.now(UTC)
    for given, days in {"today": 0, "yesterday": 1, "-3d": 3}.items():
        for command in ("repair", "backfill"):
            sent = ask(f"runs {command} --since {given} --until 2026-02-03 --reason why --yes").last.body
            began = {(one - timedelta(days=days)).date().isoformat() for one in (now, datetime.now(UTC))}
            assert (sent["since_day"] in began, sent["until_day"]) == (True, "2026-02-03"), given
    for given, wanted in {"latest": "latest", "-2h": "", "2026-11-23T03:00:00+01:00": "2026-11-23T02:00:00Z"}.items():
        anchor = ask(f"streams next-incarnation --anchor {given} --reason why").last.body["anchor"]
        assert anchor == wanted or (not wanted and re.fullmatch(r"[\d-]+T[\d:]+Z", anchor)), given
    for call in ("runs repair --since soon --reason why --yes", "streams next-incarnation --anchor soon --reason why"):
        found = ask(call)
        assert (found.code, found.requests, "soon: write 2026" in found.err) == (2, [], True), call


def test_a_short_h_shows_the_help_everywhere(ask: Ask) -> None:
    for call in ("", "letters", "letters list", "use", "try", "new"):
        assert ask(f"{call} -h").out == ask(f"{call} --help").out != "", call


@pytest.mark.parametrize("call", ["letters list --url {}", "--url {} letters list"])
def test_what_an_output_names_next_can_be_pasted_as_it_is(
    call: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("HUBLEDGER_URL", raising=False)
    with SmallApp(app()) as small:
        assert main(shlex.split(call.format(small.url))) == 0
        named = re.findall(r"(?:: |^)bin/hubledger (.+)", capsys.readouterr().out, re.M)
        assert len(named) == 3
        for one in named:
            words = shlex.split(one)
            is_change = "show" not in words
            assert (
                main([*words, *(["--no-wait", "--yes", "--reason", "a terminal asks for it"] if is_change else [])])
                == 0
            )
    assert {one.headers["host"] for one in small.requests} == {small.url.removeprefix("http://")}


def test_without_a_terminal_a_change_needs_its_reason(ask: Ask) -> None:
    found = ask(f"letters retry --cause {TABLE} --yes")
    assert (found.code, found.requests, "Missing option '--reason'" in found.err) == (2, [], True)


@pytest.mark.parametrize("may_reveal", [True, False])
def test_the_error_comes_first_and_has_the_room_that_fewer_columns_leave(
    may_reveal: bool, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    for width in (60, 80):
        monkeypatch.setenv("COLUMNS", str(width))
        head, _, first, *more = ask("letters causes", app((TABLE,), may_reveal=may_reveal)).out.splitlines()[1:]
        assert head.split()[:2] == ["error", "letters"], width
        assert re.fullmatch(rf" ERROR_TYPE.* 1,234,567 .*{TABLE}.*", first), first
        said = " ".join(" ".join(one[: head.index("letters") - 3] for one in [first, *more]).split())
        assert said.startswith("ERROR_TYPE: no such kind: … (e.g. lamp, desk)" if may_reveal else "ERROR_TYPE"), said
