"""The answers of every route, word for word, as `answers.jsonl` has them: who changes an answer changes that file.

`RECORD=1 python -m pytest tests/handlers/test_answers.py` writes the file again. Ids, times, cursors and links
have the place of their first appearance in the place of their value.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from core.model.events import PartitionId, SequenceNumber, Span
from core.remote.hub.reader import read_ends
from core.store.columns import instant_text
from core.store.database import write
from handlers.api import ROUTES
from handlers.app import HUB_ENDS, app
from handlers.remembered import Remembered
from tests.fakes.aggregation_engines import ROW_LOST, SqliteAggregation, finish, stage
from tests.fakes.builders import EPOCH
from tests.handlers.conftest import Aggregating
from tests.handlers.running import (
    HOME,
    MOTION,
    Running,
    SettingsHub,
    forget_health,
    functions,
    handed_over,
    request,
    respond,
)

FILE = Path(__file__).with_name("answers.jsonl")
SECRET = "a secret of at least 32 characters"
ALARM = b'{"kind":"gas","home_id":"home-1","sensor_id":"g","ppm":900,"observed_at":"2026-01-01T12:01:00Z"}'
NOT_TEXT = b"\xff\xfe\x00"
BODIES = [HOME, MOTION, b"{", MOTION, ALARM, NOT_TEXT, b'{"kind":"?"}', MOTION]
LARGE = 2**53 + 1
LARGE_BODIES = [HOME, b"{", MOTION]
LONGEST = 20_000  # characters that are kept; of a longer answer, the hash of its words
NOBODY, NO_RUN = "00000000-0000-0000-0000-000000000000", "0123456789abcdef"
REASON = {"reason": "because I say so"}
CHANGING = (
    ("id", r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    ("link", r"v1\.\d+\.[\w-]+"),
    ("run", r"(?<![0-9a-f])(?!90071992547409)[0-9a-f]{16}(?![0-9a-f])(?=[\"-])"),
    ("time", r"20(?!26-01-)\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)"),
    ("cursor", r"(?<=\"next\":\")[\w=-]+"),
    ("cursor", r"(?<=\"cursor\": \")[\w=-]{9,}"),
)  # fmt: skip


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:40]


class Recorder:
    """Asks routes, and keeps each answer as one line."""

    def __init__(self, running: Running) -> None:
        self.running, self.lines, self.served = running, list[str](), set[str]()
        self.known: dict[str, str] = {}  # a stable word for each value that differs from run to run

    def get(self, name: str, route: Mapping[str, str] | None = None, headers: Any = None, **params: str) -> Any:
        forget_health()
        for one in (app().letter_counts, app().hub_ends):
            one.forget()
        asked = request("GET", params=params, route_params=route or {}, headers=headers or {})
        return self._kept("GET", name, {**(route or {}), **params}, respond(name, asked))

    def put(self, kind: str, body: Mapping[str, object]) -> Any:
        return self.post("put_task", {"kind": kind, **body}, {"task_id": str(uuid4())})

    def post(self, name: str, body: object, route: Mapping[str, str] | None = None) -> Any:
        if name.endswith("_aggregation") and name != "start_aggregation" and isinstance(body, dict):
            body = {**body, "order_id": str(uuid4())}
        answer = respond(name, request("POST", body, route_params=route or {}))
        return self._kept("PUT" if name == "put_task" else "POST", name, {**(route or {}), "body": body}, answer)

    def _kept(self, method: str, name: str, given: Mapping[str, Any], response: Any) -> Any:
        text = re.sub(r"(?<=_seconds\":)[\d.]+", "0.0", response.get_body().decode())
        if response.status_code < 300:
            self.served.add(name)
        if "json" not in response.mimetype:
            text = hash_of(text)
        elif len(text) > LONGEST:  # the description: Python 3.13 leaves the indents of docstrings out
            text = hash_of(" ".join(sorted(re.findall(r"[\w$/{}.-]+", text.replace("\\n", " ")))))
        words = [f"{method} {name} {json.dumps(given, sort_keys=True, default=str)}", text]
        for kind, form in CHANGING:
            words = [re.sub(form, partial(self._word, kind), word) for word in words]
        self.lines.append(json.dumps([*words, response.status_code, response.mimetype]))
        return json.loads(response.get_body()) if "json" in response.mimetype else None

    def _word(self, kind: str, found: re.Match[str]) -> str:
        if found[0] in (NOBODY, NO_RUN):
            return found[0]
        count = sum(one.startswith(f"<{kind} ") for one in self.known.values())
        return self.known.setdefault(found[0], f"<{kind} {1 + count}>")


@pytest.fixture
def recorder(aggregating: Aggregating) -> Recorder:
    aggregating.restart(
        RESIDENT_LINK_SECRET=SECRET, ERASURE_KEY=SECRET, ORDER_POLICY="hold_key", HUB_RETENTION_HOURS="24"
    )
    return Recorder(aggregating)


def test_every_route_answers_as_before(recorder: Recorder) -> None:
    publish()
    for part in PARTS:
        part(recorder)
    if os.environ.get("RECORD"):
        FILE.write_text("".join(f"{one}\n" for one in recorder.lines), encoding="utf-8")
    before = FILE.read_text(encoding="utf-8").splitlines()
    for was, now in zip(before, recorder.lines, strict=False):
        assert now == was
    assert len(recorder.lines) == len(before)
    assert {one.name for one in ROUTES} - recorder.served == set()


def publish() -> None:
    """Give the app a hub that holds the events."""
    logs = {
        "1": [handed_over(number, body) for number, body in enumerate(BODIES)],
        "10": [handed_over(LARGE + place, body) for place, body in enumerate(LARGE_BODIES)],
    }
    hub: Any = SettingsHub(logs)
    own = app()
    gap_reading = replace(own.core.ingestion.gap_reading, hub=hub)
    core = replace(own.core, ingestion=replace(own.core.ingestion, gap_reading=gap_reading))
    ends = Remembered(lambda: read_ends(hub), HUB_ENDS)
    app.value = replace(own, hub=hub, hub_ends=ends, core=core)


def of_nothing(to: Recorder) -> None:
    """Ask before there is a stream."""
    for name in ("status", "status_history", "list_letters", "group_letters", "list_tasks"):
        to.get(name)
    for name in ("health_live", "health_ready", "health_ledger", "openapi", "ops"):
        to.get(name)
    own = app()
    app.value = replace(own, hub_ends=Remembered(dict, HUB_ENDS))  # a hub without events, so that nothing stands
    to.get("health_ledger")
    app.value = own
    to.get("ops_file", {"file": "letters.js"})
    to.get("ops_file", {"file": "nothing.js"})


def fill(to: Recorder) -> None:
    """Ingest events of two partitions, of which some fail."""
    own = app()
    to.running.ingest(list(range(len(BODIES))), BODIES)
    to.running.ingest([LARGE, LARGE + 1, LARGE + 2], LARGE_BODIES, partition_id="10")
    state = own.core.ingestion.store.read_partition(own.settings.stream.partition(PartitionId("1")))
    own.core.ingestion.store.note_gap(replace(state), Span(SequenceNumber(8), SequenceNumber(9)), EPOCH)
    own.core.ingestion.store.note_stop(state, "outage", "a row says <what>", EPOCH)


def of_ledger(to: Recorder) -> None:
    for number in ("0", "1", "2", "8", "77"):
        to.get("explain_number", {"partition_id": "1", "sequence_number": number})
    to.get("reveal_number", {"partition_id": "1", "sequence_number": "1"})
    to.get("explain_number", {"partition_id": "10", "sequence_number": str(LARGE)})
    for at in ("2020-01-01T00:00:00Z", "2090-01-01T00:00:00Z"):
        to.get("find_commits", at=at)
    to.get("find_commits", at="2020-01-01T00:00:00+02:00", partition_id="10")
    page = to.get("reveal_places", key="home-1", limit="2")
    to.get("reveal_places", key="home-1", limit="3", cursor=page["next"])
    for asked in ({"key": "k"}, {"key": "nobody", "partition_id": "10"}, {}, {"key": "nobody", "cursor": page["next"]}):
        to.get("reveal_places", **asked)
    for name in ("status", "reveal_stops", "health_ledger", "audit_ledger", "status_history"):
        to.get(name)
    functions()["watch"](None)
    to.get("status_history")


def of_letters(to: Recorder) -> None:
    place = {"partition_id": "1", "sequence_number": "2"}
    for kind in ("list_letters", "reveal_letters"):
        page = to.get(kind, limit="2")
        to.get(kind, limit="2", cursor=page["next"])
    to.get("list_letters", status="exhausted", partition_id="10")
    for kind in ("group_letters", "reveal_groups"):
        to.get(kind)
        to.get(kind, error_class="poison", limit="1")
    to.get("reveal_letters", partition_key="k")
    to.get("show_letter", place)
    to.get("show_letter", {**place, "sequence_number": "77"})
    for form in ("text", "json", "hex"):
        to.get("reveal_letter", {**place, "sequence_number": "5"}, body=form)
    chosen = {"move": "retry", "letters": [place], "expected_count": 1, **REASON}
    to.put("redrive", chosen)
    to.put("redrive", {**chosen, "expected_count": 2})
    to.put("redrive", {**chosen, "move": "discard"})
    to.get("show_letter", place)
    to.get("reveal_letter", place)
    to.get("explain_number", place)


def of_redrives(to: Recorder) -> None:
    found = to.get("preview_redrive", move="retry")
    to.get("reveal_preview", move="discard", partition_key="k")
    to.get("preview_redrive", move="discard", error_class="poison")
    asked = {"move": "retry", "expected_count": found["count"], "filter": {}, **REASON}
    begun = to.put("redrive", asked)
    to.put("redrive", asked)
    job = {"task_id": begun["task_id"]}
    for verb in ("pause", "resume", "cancel", "resume"):
        to.post(f"{verb}_task", REASON, job)
    to.get("show_task", job)
    to.get("show_task", {"task_id": NOBODY})
    letters = [{"partition_id": "1", "sequence_number": "5"}]
    begun = to.put("redrive", {"move": "discard", "expected_count": 1, "letters": letters, **REASON})
    to.running.drive(begun["task_id"])
    job = {"task_id": begun["task_id"]}
    to.get("show_task", job)
    page = to.get("list_tasks", limit="1")
    to.get("list_tasks", limit="1", cursor=page["next"])


def of_replays(to: Recorder) -> None:
    for dry_run in (True, False):
        begun = to.put("replay", {**REASON, "partitions": ["1"], "dry_run": dry_run})
        job = {"task_id": begun["task_id"]}
        to.post("pause_task", REASON, job)
        to.post("resume_task", REASON, job)
        to.running.drive(begun["task_id"])
        to.get("show_task", job)
        to.get("show_replay_diff", job, limit="1")
    to.post("cancel_task", REASON, job)
    begun = to.put("replay", {**REASON, "from": {"sequence_number": "3"}})
    to.post("cancel_task", REASON, {"task_id": begun["task_id"]})
    page = to.get("list_tasks", kind="replay", limit="1")
    to.get("list_tasks", kind="replay", limit="1", cursor=page["next"])


def of_replays_by_key(to: Recorder) -> None:
    begun = to.put("replay", {**REASON, "partitions": ["1"], "keys": ["home-1", "home-2"]})
    job = {"task_id": begun["task_id"]}
    to.running.drive(begun["task_id"])
    to.get("show_task", job)
    to.get("show_replay_diff", job)


def of_audits(to: Recorder) -> None:
    to.running.sqlite.sql(
        "UPDATE batch_ledger SET written = written + 1, dead_lettered = dead_lettered - 1 WHERE commit_number = 1"
    )
    begun = to.put("audit", {})
    to.running.drive(begun["task_id"])
    to.get("show_task", {"task_id": begun["task_id"]})
    to.get("audit_ledger")
    to.get("status")
    to.get("health_ledger")
    to.running.sqlite.sql(
        "UPDATE batch_ledger SET written = written - 1, dead_lettered = dead_lettered + 1 WHERE commit_number = 1"
    )


def of_purges(to: Recorder) -> None:
    now = dict.fromkeys(("batch_ledger", "event_hub_dead_letter"), 0)
    for dry_run in (True, False):
        begun = to.put("purge", {**REASON, "older_than_days": now, "dry_run": dry_run})
        to.put("purge", {**REASON})
        to.running.drive(begun["task_id"])
        to.get("show_task", {"task_id": begun["task_id"]})
    begun = to.put("purge", REASON)
    to.post("cancel_task", REASON, {"task_id": begun["task_id"]})
    to.post("cancel_task", REASON, {"task_id": begun["task_id"]})
    to.get("list_tasks", status="done", limit="2")
    to.get("explain_number", {"partition_id": "1", "sequence_number": "0"})


def of_erasures(to: Recorder) -> None:
    asked = {**REASON, "subjects": ["home-1", "nobody"]}
    begun = to.put("erasure", asked)
    to.put("erasure", {**asked, "subjects": ["somebody-else"]})
    to.running.drive(begun["task_id"])
    to.get("show_task", {"task_id": begun["task_id"]})
    begun = to.put("erasure", {**asked, "dry_run": False, "most_rows": 3})
    to.put("erasure", {**asked, "dry_run": False})
    to.post("cancel_task", REASON, {"task_id": begun["task_id"]})
    to.put("erasure", {**asked, "reason": "home-1 asked for it"})
    begun = to.put("erasure", {**asked, "subjects": ["home-1 "]})
    own = app().stream.database
    given = {"hashes": '[["ab"]]', "key_hash": "lost", "erased_by": "somebody", "erased_at": instant_text(EPOCH)}
    write(own, "a lost key", "add_erased_subjects", **given)
    to.get("status")
    to.get("health_ledger")
    to.post("forget_erasure_keys", REASON)
    to.post("forget_erasure_keys", {**REASON, "dry_run": False})
    to.post("cancel_task", REASON, {"task_id": begun["task_id"]})
    to.post("forget_erasure_keys", {**REASON, "dry_run": False})
    to.post("forget_erasure_keys", {})


def of_aggregations(to: Recorder) -> None:
    to.post("start_aggregation", {})
    run = to.get("list_aggregations")["runs"][0]["run_id"]
    to.get("show_aggregation", {"run_id": run})
    to.get("show_aggregation", {"run_id": NO_RUN})
    to.post("pause_aggregation", REASON)
    to.post("pause_aggregation", REASON)
    to.post("resume_aggregation", REASON)
    to.post("cancel_aggregation", REASON, {"run_id": run})
    to.post("discard_aggregation", {**REASON, "what": "run"}, {"run_id": run})
    for kind in ("repair", "backfill"):
        given = {"since_day": "2026-01-01", "until_day": "2026-01-02"}
        to.post(f"{kind}_aggregation", {**REASON, **given})
        to.get("list_aggregations")
        to.post("withdraw_aggregation", REASON)
    to.post("repair_aggregation", {**REASON, "since_day": "2026-01-03", "until_day": "2026-01-02"})
    to.post("start_aggregation", {})
    run = to.get("list_aggregations")["runs"][0]["run_id"]
    tables = SqliteAggregation(to.running.sqlite)
    stage(tables, "s", run, [])
    finish(tables, "s", run, EPOCH, json.dumps(ROW_LOST))
    to.post("start_aggregation", {})
    to.get("show_aggregation", {"run_id": run})
    to.get("list_aggregations", limit="1")
    to.post("repair_aggregation", {**REASON, "since_day": "2026-01-01"})
    to.get("list_aggregations")


def of_rooms(to: Recorder) -> None:
    home = {"home_id": "home-1"}
    page = to.get("find_homes", limit="1")
    to.get("find_homes", prefix="zz", limit=str(1 + len(page["homes"])))
    to.get("show_activity", home, until="2026-01-01T13:00:00Z")
    to.get("show_activity", {"home_id": "nobody"})
    to.get("home_page", home)
    link = to.post("make_home_link", b"", home)["link"]
    to.get("show_own_activity", home, {"x-home-link": link}, until="2026-01-01T13:00:00Z")
    to.get("show_own_activity", home, {"x-home-link": "odd"})


def of_streams(to: Recorder) -> None:
    asked = {"expected_incarnation": 1, **REASON}
    to.post("open_next_incarnation", asked)
    to.post("open_next_incarnation", {**asked, "expected_incarnation": 7})
    hub: Any = app().hub
    hub.recreate_hub(EPOCH)
    planned = to.post("open_next_incarnation", {**asked, "force": True})
    given = {"dry_run": False, "expected_hub_created_at": planned["hub_created_at"], "force": True}
    to.post("open_next_incarnation", {**asked, **given})
    to.get("status")


PARTS = (
    of_nothing, fill, of_ledger, of_letters, of_redrives, of_replays, of_audits, of_purges, of_erasures,
    of_aggregations, of_rooms, of_replays_by_key, of_streams,
)  # fmt: skip
