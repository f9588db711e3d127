import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import structs

from core.api.room_operations import sign_link
from core.api.route import Route
from core.model.events import PartitionId
from core.model.policies import SubjectKey
from examples.home_security.routes import LINK
from examples.home_security.transform import Home, HomeAlert
from handlers.api import ROUTES
from handlers.app import app
from handlers.web.answering import HIDDEN
from tests.fakes.builders import EPOCH, NOON, commit, event, letter, settled
from tests.handlers.running import Reply, Running, reply_of, request, respond

MARK = "SECRET-OF-A-BODY"
ADA = "0f8fad5b-d9cb-469f-a165-70867728950e"
SECRET = "s" * 32
AT = {"partition_id": "1", "sequence_number": "1"}
JOB = "6f1e2f2b-52c8-4c5f-9d0a-0d8d3a3b9b11"
PLACES = {**AT, "home_id": MARK, "task_id": JOB, "run_id": "0123456789abcdef", "file": "ops.js"}
NEEDED = {"reading": "Hubledger.Read", "revealing": "Hubledger.Reveal", "changing": "Hubledger.Operate"}
TWINS = {
    "list_letters": "reveal_letters",
    "group_letters": "reveal_groups",
    "show_letter": "reveal_letter",
    "explain_number": "reveal_number",
}


@pytest.fixture
def filled(running: Running) -> Running:
    running.restart(RESIDENT_LINK_SECRET=SECRET)
    own = app()
    state = own.core.ingestion.store.read_partition(own.settings.stream.partition(PartitionId("1")))
    quoting = structs.replace(event(1, MARK, key=MARK), properties={"home": MARK})
    failed = replace(letter(quoting, error=f"no such kind {MARK}"), status="exhausted")
    rows: dict[int, list[Any]] = {0: [Home(MARK, "UTC", True), HomeAlert(MARK, MARK, "motion", None, EPOCH)]}
    own.core.ingestion.store.commit_batch(commit(state, 0, 1, settled(rows, letters=[failed])))
    running.sqlite.sql(
        "INSERT INTO dead_letter_attempt (stream_id, partition_id, sequence_number, attempt, kind, status, error_class,"
        " error_type, error, transform_version, done_by, done_at, touched_by)"
        " VALUES (1, '1', 1, 1, 'retry', 'exhausted', 'unknown', 'E', ?, 't', 'w', '2026-01-01T00:00:00.000000Z', 'c')",
        MARK,
    )
    for reason in ("outage", "store"):
        own.core.ingestion.store.note_stop(state, reason, f"one of the errors: {MARK}", NOON)
    return running


def ask(route: Route | str, headers: Mapping[str, str] | None = None, **params: str) -> Reply:
    found = next(one for one in ROUTES if route in (one, one.name))
    of_path = {name: value for name, value in PLACES.items() if f"{{{name}}}" in found.template}
    given = request(found.method, {}, params=params, route_params=of_path, headers=dict(headers or {}))
    return reply_of(respond(found.name, given))


def as_role(*roles: str, name: str = "ada@example.org") -> dict[str, str]:
    claims = [{"typ": "oid", "val": ADA}, *({"typ": "roles", "val": role} for role in roles)]
    encoded = base64.b64encode(json.dumps({"claims": claims}).encode()).decode()
    return {"x-ms-client-principal-name": name, "x-ms-client-principal": encoded}


def revealed(running: Running) -> list[dict[str, Any]]:
    return [line for line in running.lines if line.get("action") == "reveal"]


def test_no_route_that_counts_or_reads_quotes_an_event(filled: Running) -> None:
    quiet = [one for one in ROUTES if one.level.name in ("counting", "reading")]
    answers = {one.name: ask(one) for one in quiet}
    assert {name for name, one in answers.items() if MARK in str(one.body)} == set()
    assert {name for name, one in answers.items() if one.status in (200, 503)} >= {*TWINS, "status", "health_ledger"}
    assert revealed(filled) == []


@pytest.mark.parametrize("engine", ["none", "local", "an empty store"])
def test_no_route_that_reads_changes_any_table(request: pytest.FixtureRequest, engine: str) -> None:
    """The store is empty, or has an open audit whose time is over, and a faulty ledger."""
    of: Running = request.getfixturevalue("running" if engine == "an empty store" else "filled")
    if engine != "an empty store":
        of.restart(SPARK_ENGINE=engine, RESIDENT_LINK_SECRET=SECRET)
        of.drive(of.put("audit", {}).body["task_id"])
        of.put("audit", {})
        of.sqlite.sql("UPDATE task SET requested_at = '2020-01-01T00:00:00.000000Z' WHERE status = 'planned'")
        of.sqlite.sql("DELETE FROM batch_ledger")

    def contents() -> dict[str, list[Any]]:
        tables = of.sqlite.sql("SELECT name FROM sqlite_schema WHERE type = 'table'")
        return {table: of.sqlite.sql(f"SELECT * FROM {table}") for (table,) in tables if table != "schema_migration"}

    before, asked = contents(), [one for one in ROUTES if one.method == "GET"]
    for one in asked:
        ask(one)
        now = contents()
        assert now == before or (not before and not any(now.values())), one.name
    assert len(asked) > 20


def test_each_twin_has_the_same_shape_with_the_hidden_values_and_all_others_the_same(filled: Running) -> None:
    for name, twin in TWINS.items():
        hidden, shown = ask(name), ask(twin)
        assert (hidden.status, shown.status, hidden.body.keys()) == (200, 200, shown.body.keys())
        assert MARK in str(shown.body), twin
    assert ask("reveal_letter", body="text").body["body"]["shown"] == MARK
    assert ask("show_letter", body="text").fields == ["body"]
    of, all_of = ask("show_letter").body, ask("reveal_letter").body
    assert all_of["letter"] == {**of["letter"], "error": f"no such kind {MARK}", "partition_key": MARK}
    assert all_of["history"] == [{**of["history"][0], "error": MARK}]
    none = (of["letter"]["error"], of["letter"]["partition_key"], of["history"][0]["error"], of["properties"])
    assert (none, all_of["properties"]) == ((None,) * 4, {"home": MARK})
    written = filled.get("explain_number", {**AT, "sequence_number": "0"})
    assert (written.body["outcome"], written.body["rows"]) == ("written", None)


def test_a_filter_by_partition_key_is_revealing_too(filled: Running) -> None:
    assert ask("list_letters", partition_key=MARK).fields == ["partition_key"]
    assert ask("group_letters", partition_key=MARK).fields == ["partition_key"]
    assert len(ask("reveal_letters", partition_key=MARK).body["letters"]) == 1
    assert ask("reveal_groups", partition_key="nobody").body["groups"] == []


def test_a_change_that_names_a_key_is_counted_only_for_a_caller_who_may_reveal(filled: Running) -> None:
    filled.restart(WEBSITE_AUTH_ENABLED="true", ERASURE_KEY="k" * 32)
    redrive = {"move": "discard", "expected_count": 7, "reason": "known poison"}
    asked: dict[str, dict[str, Any]] = {
        "filter.partition_key": {"kind": "redrive", **redrive, "filter": {"partition_key": MARK}},
        "filter.fingerprint": {"kind": "redrive", **redrive, "filter": {"fingerprint": f"{'0' * 16}.{'0' * 8}"}},
        "keys": {"kind": "replay", "keys": [MARK], "reason": "because"},
        "subjects": {"kind": "erasure", "subjects": [MARK], "reason": "because"},
    }
    operator, both = as_role("Hubledger.Operate"), as_role("Hubledger.Operate", "Hubledger.Reveal")
    for name, body in asked.items():
        refused = filled.put(body["kind"], body, None, **operator)
        assert (refused.status, refused.fields) == (403, [name])
        assert "Hubledger.Reveal" in refused.body["detail"] and MARK not in str(refused.body)
    assert not [line for line in filled.lines if MARK in str(line.get("detail"))]
    told = filled.put("redrive", asked["filter.partition_key"], None, **both)
    assert (told.status, told.body["moved"]) == (201, 1)
    assert filled.put("redrive", {**redrive, "filter": {}}, None, **operator).status == 409
    assert filled.put("erasure", asked["subjects"], None, **both).status == 201
    filled.restart(WEBSITE_AUTH_ENABLED="false")  # the key of the function decides alone
    assert filled.put("redrive", asked["filter.partition_key"]).body["count"] == 0


def test_a_stop_tells_its_detail_only_where_it_quotes_no_error(filled: Running) -> None:
    own = app()
    state = own.core.ingestion.store.read_partition(own.settings.stream.partition(PartitionId("1")))
    for reason in ("held", "incarnation", "trigger"):
        own.core.ingestion.store.note_stop(state, reason, f"why {reason}", NOON)
    stops = {one["reason"]: one["detail"] for one in ask("status").body["partitions"][0]["stops"]}
    told = {reason: f"why {reason}" for reason in ("held", "incarnation", "trigger")}
    assert stops == {"outage": None, "store": None, **told}
    details = {one["reason"]: one["detail"] for one in ask("reveal_stops").body["stops"]}
    assert details == {**stops, **dict.fromkeys(("outage", "store"), f"one of the errors: {MARK}")}


def test_each_revealing_answer_logs_one_line_with_who_what_and_which_route(filled: Running) -> None:
    not_here = ("show_replay_diff",)  # there is no job
    routes = [one for one in ROUTES if one.level.name == "revealing" and one.name not in not_here]
    needs = {"reveal_places": {"key": MARK}, "reveal_preview": {"move": "discard"}}
    for one in routes:
        before = len(revealed(filled))
        assert ask(one, None, **needs.get(one.name, {})).status == 200
        (line,) = revealed(filled)[before:]
        assert (line["route"], line["who"], line["msg"]) == (one.name, "unverified (key holder)", "data revealed")
        assert {name: line[name] for name in PLACES if f"{{{name}}}" in one.template} == {
            name: HIDDEN if name == "home_id" else value
            for name, value in PLACES.items()
            if f"{{{name}}}" in one.template
        }
    ask("reveal_letter", body="hex")
    ask("find_homes", prefix="SEC", code="the-key")
    assert [line["asked"] for line in revealed(filled)[-2:]] == ["body=hex", f"prefix={HIDDEN} limit=20"]
    filled.restart(ERASURE_KEY="k" * 32, RESIDENT_LINK_SECRET=SECRET)
    given = "a\nb" + "x" * 1_000
    ask("reveal_letters", partition_key=given)
    line, count = revealed(filled)[-1], len(revealed(filled))
    assert line["asked"].split()[0] == f"partition_key=hash:{SubjectKey('k' * 32).hash_of(given)[:16]}"
    assert ask("show_replay_diff").status == 404
    assert len(revealed(filled)) == count, "a refusal reveals nothing, and is logged alone"
    assert [one["action"] for one in filled.lines if one["msg"] == "request refused"] == ["show_replay_diff"]


def test_where_the_platform_signs_callers_in_every_route_refuses_all_but_the_role_of_its_level(filled: Running) -> None:
    filled.restart(WEBSITE_AUTH_ENABLED="True")
    for one in ROUTES:
        needed = NEEDED.get(one.level.name)
        others = set(NEEDED.values()) - {needed}
        for headers in ({}, as_role(*others), {"x-ms-client-principal": "é"}):
            refused = ask(one, headers).status == 403
            assert refused == (needed is not None or one.level.name == "linked"), (one.name, headers)
        assert needed is None or ask(one, as_role(needed)).status != 403, one.name


def test_a_change_and_a_refusal_name_the_person_with_the_object_id(filled: Running) -> None:
    filled.restart(WEBSITE_AUTH_ENABLED="true", OPERATOR_ROLE="Mine")
    order = {"move": "discard", "expected_count": 1, "reason": "known poison", "filter": {}}
    assert filled.put("redrive", order, None, **as_role("Mine")).body["moved"] == 1
    done_by = filled.sqlite.sql("SELECT done_by FROM dead_letter_attempt WHERE kind = 'discard'")
    assert done_by == [(f"ada@example.org ({ADA})",)]
    refused = filled.put("redrive", order, None, **as_role("Hubledger.Operate"))
    assert (refused.status, "Mine" in refused.body["detail"]) == (403, True)
    (line,) = [one for one in filled.lines if one["msg"] == "request refused"]
    assert line["who"] == f"ada@example.org ({ADA})"


def test_a_role_without_sign_in_is_refused_at_start_and_open_routes_still_answer(running: Running) -> None:
    running.restart(OPERATOR_ROLE="Mine")
    for one in ROUTES:
        if one.level.name != "open":
            refused = ask(one)
            assert (refused.status, refused.body["fault"]) == (503, "SettingsRefused"), one.name
    assert ask("health_live").status == ask("openapi").status == ask("ops").status == 200


def link(home_id: str = MARK, *, minutes: int = 10, secret: str = SECRET) -> dict[str, str]:
    ends = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=minutes)
    return {"X-Home-Link": sign_link(LINK, home_id, ends, secret)}


def opens(headers: dict[str, str]) -> bool:
    return ask("show_own_activity", headers).status == 200


def test_the_site_makes_a_link_that_opens_the_home_and_no_other_one_does_and_both_are_logged(filled: Running) -> None:
    for headers in ({}, {"X-Home-Link": "é"}, link("SECRET-OF-A-BOD"), link(minutes=-1), as_role("Hubledger.Reveal")):
        assert ask("show_own_activity", headers | {"x-functions-key": "any"}).status == 403, headers
    assert revealed(filled) == []
    made = ask("make_home_link").body
    assert made["page"] == f"/api/homes/{MARK}#link={made['link']}"
    ends = datetime.fromisoformat(made["expires_at"]) - datetime.now(UTC)
    assert timedelta(minutes=59) < ends <= timedelta(hours=1)
    shown = ask("show_own_activity", {"X-Home-Link": made["link"]})
    assert (shown.status, shown.body["home_id"]) == (200, MARK)
    assert shown.body.keys() == ask("show_activity").body.keys()
    line = next(one for one in revealed(filled) if one["route"] == "show_own_activity")
    assert (line["who"], line["home_id"]) == ("resident (signed link)", HIDDEN)
    (signed,) = [one for one in filled.lines if one.get("action") == "make_home_link"]
    assert (signed["who"], signed["home_id"]) == ("unverified (key holder)", HIDDEN)
    assert not any(made["link"] in str(line) for line in filled.lines)


def test_the_former_secret_opens_until_it_is_gone_and_without_one_no_link_is_made_or_opens(filled: Running) -> None:
    former = link()
    filled.restart(RESIDENT_LINK_SECRET="n" * 32, RESIDENT_LINK_SECRET_PREVIOUS=SECRET)
    assert opens(former)
    present = {"X-Home-Link": ask("make_home_link").body["link"]}
    filled.without("RESIDENT_LINK_SECRET_PREVIOUS")
    filled.restart()
    assert (opens(former), opens(present)) == (False, True)
    filled.restart(RESIDENT_LINK_SECRET="")
    refused = ask("make_home_link").body
    assert refused["type"] == "urn:hubledger:problem:conflict"
    assert "RESIDENT_LINK_SECRET" in refused["detail"]
    assert [opens(link(secret=secret)) for secret in ("", SECRET)] == [False, False]
