"""The programs of azd's hooks: their inputs, refusals and requests, patience and firewalls, and the smoke tests.

An event is sent by the role of the deployer, and proven to be a row where others send too.
"""

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ServiceRequestError

from core.aggregation.spark_engine import JobRequest
from core.model.rows import References
from core.remote.spark.http_engines import LivyJobs
from core.remote.spark.job_package import package_version
from core.transforms.loading import load_transform
from infra.hooks import __main__ as hooks
from infra.hooks import lake, rights
from infra.hooks.database import DatabaseUser
from infra.hooks.door import open_to, rules_of
from infra.hooks.errors import HookRefused
from infra.hooks.outputs import Outputs, read_outputs
from infra.hooks.patience import PAUSE, RIGHTS, NotYet, Pending, patiently
from infra.hooks.rest import Rest, Service
from infra.hooks.smoke.app import Answer, App, Check, fault_of
from infra.hooks.smoke.event import BODIES, Hub, HubRefused, event_to_send
from infra.hooks.smoke.key import smoke_key
from infra.hooks.smoke.proof import prove_event
from infra.hooks.smoke.sender import NotSent, Sender
from infra.hooks.watch import expect_watch
from local.feed.event_file import FileEvent
from tests.acceptance.postdeploy.azure import DEPLOYER, SENDER, token
from tests.fakes.builders import FakeClock, event
from tests.fakes.leaping import Leaping
from tests.infra.doubles import Services, answering
from tests.infra.test_policies import FILES
from tests.repo.product import ROOT

CLIENT = uuid.UUID("01234567-89ab-cdef-0123-456789abcdef")
JOBS = uuid.UUID("89abcdef-0123-4567-89ab-cdef01234567")
TRACEBACK = "HOOKS_TRACEBACK"
USERS = [DatabaseUser("id-app", CLIENT, "hubledger_app"), DatabaseUser("w", JOBS, "hubledger_job")]
WIRED = {
    "STORE_CONNECTION": "Driver={ODBC Driver 18 for SQL Server};Server=tcp:s,1433;Database=d",
    "EVENTHUB__fullyQualifiedNamespace": "n.servicebus.windows.net",
    "EVENTHUB_CONSUMER_GROUP": "hubledger",
    "HUB_READER_CONSUMER_GROUP": "hubledger-reader",
}
NAMES = [one.name.upper() for one in fields(Outputs)]
ENVIRONMENT = {
    "FUNCTION_APP_ID": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Web/sites/f",
    "FUNCTION_APP_URI": "https://f.azurewebsites.net",
    "WATCH_ALERT_ID": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Insights/scheduledQueryRules/w",
    "APP_IDENTITY_NAME": "id-app",
    "APP_IDENTITY_CLIENT_ID": str(CLIENT),
    "APP_IDENTITY_PRINCIPAL_ID": str(CLIENT),
    "FIREWALL_SERVER_ID": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Sql/servers/q",
    "EVENTHUB_NAME": "telemetry",
    "EVENTHUB_ID": "/subscriptions/s/resourceGroups/g/providers/Microsoft.EventHub/namespaces/n/eventhubs/telemetry",
    "LAKE_BLOB_ENDPOINT": "https://l.blob.core.windows.net/",
    "LAKE_CONTAINER": "spark",
    "SPARK_ENGINE_CHOICE": "synapse",
    "SYNAPSE_WORKSPACE": "w",
    "SYNAPSE_POOL": "spark35",
    "WIRED_SETTINGS": json.dumps(WIRED),
}


def outputs(**changes: str) -> Outputs:
    return read_outputs({**ENVIRONMENT, **changes})


def test_outputs_are_those_of_the_template_read_whole_or_refused_with_every_fault() -> None:
    assert set(NAMES) <= {one.name for one in FILES["main.bicep"].of_kind("output")}
    assert outputs().app_identity_client_id == CLIENT
    with pytest.raises(HookRefused) as refusal:
        read_outputs({**ENVIRONMENT, "FUNCTION_APP_URI": "", "APP_IDENTITY_CLIENT_ID": "x"})
    assert [line.split()[0] for line in refusal.value.faults] == ["FUNCTION_APP_URI", "APP_IDENTITY_CLIENT_ID"]
    assert read_outputs({**ENVIRONMENT, "SYNAPSE_WORKSPACE": ""}).synapse_workspace == ""


def shows(answer: Any) -> Services:
    return Services(lambda method, path, body: answer)


def test_the_app_gets_the_role_in_the_pool_and_nothing_wider() -> None:
    there = shows([{"name": "Synapse Administrator", "id": "wide"}, {"name": "Synapse Compute Operator", "id": "r"}])
    rights.allow_submitting(outputs(), there)
    rights.allow_submitting(outputs(), there)
    ((address, body), (again, same)) = [(path, body) for _, path, body in there.calls if body is not None]
    assert (address, body) == (again, same)
    assert address.startswith("https://w.dev.azuresynapse.net/roleAssignments/")
    assert (body["roleId"], body["scope"]) == ("r", "workspaces/w/bigDataPools/spark35")


def test_with_synapse_the_workspaces_own_identity_and_that_of_the_submitter_get_the_role_of_the_jobs() -> None:
    there = shows({"properties": {"clientId": str(JOBS), "principalId": "p"}})
    submitter = DatabaseUser("id-app", CLIENT, "hubledger_job")
    assert rights.database_users(outputs(), there, {}) == [*USERS, submitter]
    ((_, asked, _),) = there.calls
    assert asked == (
        "https://management.azure.com/subscriptions/s/resourceGroups/g/providers/Microsoft.Synapse/workspaces/w"
        "/providers/Microsoft.ManagedIdentity/identities/default?api-version=2023-01-31"
    )


def test_without_a_spark_engine_only_the_app_enters_the_database_and_no_role_is_set() -> None:
    there, own = Services(), outputs(SPARK_ENGINE_CHOICE="none")
    assert rights.database_users(own, there, {}) == USERS[:1]
    rights.allow_submitting(own, there)
    assert there.calls == []


NO_IDENTITY: list[Any] = [{}, {"properties": {}}, {"properties": {"clientId": "x"}}, [], None]


def test_with_databricks_the_identity_that_is_named_enters(capsys: pytest.CaptureFixture[str]) -> None:
    own, named = outputs(SPARK_ENGINE_CHOICE="databricks"), {"JOB_IDENTITY_NAME": "w"}
    assert rights.database_users(own, Services(), {**named, "JOB_IDENTITY_CLIENT_ID": str(JOBS)}) == USERS
    assert rights.database_users(own, Services(), {}) == USERS[:1]
    assert "azd env set JOB_IDENTITY_NAME and JOB_IDENTITY_CLIENT_ID" in capsys.readouterr().out
    with pytest.raises(HookRefused, match="JOB_IDENTITY_CLIENT_ID must be the client id"):
        rights.database_users(own, Services(), named)


def test_a_workspace_that_shows_neither_its_identity_nor_the_role_is_refused() -> None:
    for answer in NO_IDENTITY:
        with pytest.raises(HookRefused, match="workspaces/w has no managed identity"):
            rights.database_users(outputs(), shows(answer), {})
    with pytest.raises(HookRefused, match="Synapse Administrator"):
        rights.allow_submitting(outputs(), shows({"value": []}))


def test_after_a_deployment_the_alert_on_silence_is_on_and_stays_on() -> None:
    there = Services()
    assert expect_watch(outputs(), there) == {"APP_DEPLOYED": "true"}
    assert expect_watch(outputs(WATCH_ALERT_ID=""), there) == {}
    ((method, path, body),) = there.calls
    assert (method, body) == ("PATCH", {"properties": {"enabled": True}})
    assert path.endswith("/scheduledQueryRules/w?api-version=2023-12-01")


def test_a_step_that_is_refused_ends_with_1_and_a_line_for_each_fault(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    assert hooks.main(["provisioned"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(NAMES) - 4, "four are empty without what they name"
    assert all(line.startswith("provisioned: ") for line in lines)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            LookupError("a text\nof two lines"),
            f"LookupError: a text of two lines ({TRACEBACK}=1 shows the place in the code)",
        ),
        (KeyboardInterrupt(), "interrupted; it is safe to run again"),
        (HookRefused("a\n  b", "c"), "a b\ndeployable: c"),
    ],
)
def test_an_error_is_one_line_for_each_fault_and_its_traceback_comes_on_request(
    error: BaseException, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def step() -> None:
        raise error

    monkeypatch.delenv(TRACEBACK, raising=False)
    assert hooks.main(["deployable"], {"deployable": step}) == 1
    assert capsys.readouterr().err == f"deployable: {said}\n"
    if isinstance(error, LookupError):
        monkeypatch.setenv(TRACEBACK, "1")
        with pytest.raises(LookupError):
            hooks.main(["deployable"], {"deployable": step})


PROVIDERS = "/subscriptions/s/resourceGroups/g/providers"
SQL = f"{PROVIDERS}/Microsoft.Sql/servers/q/firewallRules/deployer?api-version=2023-08-01"
SYNAPSE = f"{PROVIDERS}/Microsoft.Synapse/workspaces/w/firewallRules/deployer?api-version=2021-06-01"
BODY = {"properties": {"startIpAddress": "8.8.8.8", "endIpAddress": "8.8.8.8"}}


def firewalls(rules: dict[str, Any], loses: str = "", keeps: str = "") -> Services:
    """Return rules by their paths over ARM. The one that is set may lose its answer, and one may refuse to go."""

    def answer(method: str, path: str, body: Any) -> None:
        if body is not None:
            rules[path] = body
        if path == loses and method == "PUT":
            raise HookRefused("the connection was reset")
        if path == keeps and method == "DELETE":
            raise HookRefused("DELETE failed with status 409")
        if method == "DELETE":
            rules.pop(path, None)

    return Services(answer)


def test_firewalls_are_open_only_while_a_hook_runs_whatever_a_killed_one_left() -> None:
    rules: dict[str, Any] = {SQL: {"properties": {"startIpAddress": "9.9.9.9"}}}
    with open_to("8.8.8.8", outputs(), firewalls(rules)):
        assert rules == {SQL: BODY, SYNAPSE: BODY}
    assert rules == {}
    with pytest.raises(HookRefused, match="the migration"), open_to("8.8.8.8", outputs(), firewalls(rules)):
        raise HookRefused("the migration failed")
    assert rules == {}
    with pytest.raises(HookRefused, match="reset"), open_to("8.8.8.8", outputs(), firewalls(rules, loses=SYNAPSE)):
        raise AssertionError("the door is not open")
    assert rules == {}, "the rule whose answer was lost is removed with the others"


def test_a_rule_that_stays_is_said_and_the_step_is_not_undone(capsys: pytest.CaptureFixture[str]) -> None:
    rules: dict[str, Any] = {}
    with open_to("8.8.8.8", outputs(), firewalls(rules, keeps=SQL)):
        pass
    assert list(rules) == [SQL]
    assert capsys.readouterr().err.startswith("a firewall rule stays; the next deployment replaces and removes it")


def test_the_server_of_somebody_else_is_never_opened_and_nothing_without_an_address() -> None:
    assert rules_of(outputs(FIREWALL_SERVER_ID="")) == [SYNAPSE]
    assert rules_of(outputs(FIREWALL_SERVER_ID="", SYNAPSE_WORKSPACE="")) == []
    rules: dict[str, Any] = {}
    with open_to(None, outputs(), firewalls(rules)):
        assert rules == {}


MINUTE = timedelta(minutes=1)
NO_RIGHT = NotYet("no right", MINUTE, "get it")


def tried(clock: FakeClock, *refusals: Exception) -> str:
    """Return an attempt that raises each refusal once and then succeeds."""
    left = list(refusals)

    def attempt() -> str:
        if left:
            raise left.pop(0)
        return "done"

    return patiently(attempt, clock)


def test_a_refusal_that_passes_costs_pauses_and_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    clock, two = FakeClock(), FakeClock()
    assert (tried(clock, *[NO_RIGHT] * 3), clock.slept) == ("done", [PAUSE] * 3)
    left = ("1:00", "0:45", "0:30")
    assert capsys.readouterr().out.splitlines() == [f"no right; trying again, for 0:0{one} at most" for one in left]
    assert tried(two, *[NotYet("a", MINUTE, "")] * 4, *[NotYet("b", 2 * MINUTE, "")] * 8) == "done"
    assert sum(two.slept) == 180, "each kind has a time of its own"


def test_a_refusal_that_does_not_pass_ends_after_its_time_with_the_remedy() -> None:
    cases: list[tuple[HookRefused, str, list[float]]] = [
        (NO_RIGHT, "^no right. This did not pass in 0:01:00: get it$", [PAUSE] * 4),
        (NotYet("x", timedelta(seconds=20), ""), "did not pass", [PAUSE, 5]),
        (HookRefused("wrong"), "^wrong$", []),
    ]
    for refusal, says, slept in cases:
        clock = FakeClock()
        with pytest.raises(HookRefused, match=says) as ended:
            tried(clock, *[refusal] * 9)
        assert not isinstance(ended.value, NotYet)
        assert clock.slept == slept


def call(address: str, clock: FakeClock, method: str = "GET", body: dict[str, Any] | None = None) -> Any:
    return Rest(lambda scope: "token", clock).call(method, Service(address, "scope"), "/x", body)


def test_a_right_that_is_not_in_force_yet_is_waited_for() -> None:
    clock, requests = FakeClock(), list[tuple[str, str, bytes]]()
    with answering((403, "AuthorizationFailed"), (403, "AuthorizationFailed"), (200, '{"a": 1}')) as address:
        assert call(address, clock, "PUT", {}) == call(address, clock) == {"a": 1}
    assert clock.slept == [PAUSE] * 2
    with answering((204, ""), requests=requests) as address:
        assert call(address, clock, "PUT", {"a": 1}) is None
    assert requests == [("application/json", "Bearer token", b'{"a": 1}')]


TOO_LATE = "AuthorizationFailed.*did not pass in 0:10:00"


@pytest.mark.parametrize(
    ("status", "text", "says", "slept"),
    [
        (403, '{\n"code": "AuthorizationFailed"}', TOO_LATE, RIGHTS.total_seconds()),
        *((status, "no", "", 0) for status in (401, 404, 409, 500)),
        (403, "RequestDisallowedByPolicy", "", 0),
    ],
)
def test_a_right_that_never_comes_is_refused_after_ten_minutes(status: int, text: str, says: str, slept: float) -> None:
    clock = FakeClock()
    with answering((status, text)) as address, pytest.raises(HookRefused) as refusal:
        call(address, clock)
    assert re.search(f"failed with status {status}.*{says}", str(refusal.value))
    assert sum(clock.slept) == slept
    assert len(str(refusal.value).splitlines()) == 1


def container(blobs: dict[str, bytes], *refusals: Exception) -> Any:
    """Return a container that stores each upload, after it has refused some."""
    left = list(refusals)

    def upload(name: str, content: Any, overwrite: bool) -> None:
        assert overwrite
        if left:
            raise left.pop(0)
        blobs[name] = content.read()

    return SimpleNamespace(upload_blob=upload)


def refused(status: int) -> HttpResponseError:
    error = HttpResponseError("This request is not authorized\nto perform this operation")
    error.status_code = status
    return error


def test_the_files_that_a_batch_names_are_uploaded_when_the_right_on_the_lake_is_there(tmp_path: Path) -> None:
    clock, blobs = FakeClock(), dict[str, bytes]()
    there = container(blobs, refused(403), refused(403))
    assert lake.upload_jobs("synapse", lambda: there, clock, tmp_path) == sorted(blobs)
    assert clock.slept == [PAUSE] * 2
    assert all(blobs.values()), "each blob is whole after a refusal"
    batch = LivyJobs(f"jobs/{package_version()}").batch(JobRequest("n", "aggregate.py", ()))
    named = {batch["file"], *batch["pyFiles"], *(one.partition("#")[0] for one in batch["archives"])}
    assert named <= set(blobs)


@pytest.mark.parametrize("error", [refused(404), ServiceRequestError("no such host")])
def test_any_other_fault_of_the_lake_is_refused_at_once_in_one_line(error: Exception, tmp_path: Path) -> None:
    clock = FakeClock()
    with pytest.raises(HookRefused, match="the jobs were not uploaded to the lake: ") as refusal:
        lake.upload_jobs("synapse", lambda: container({}, error), clock, tmp_path)
    assert clock.slept == [] and len(str(refusal.value).splitlines()) == 1
    nowhere = tmp_path / "no such folder of wheels"
    assert lake.upload_jobs("none", lambda: container({}, error), clock, nowhere) == [], "without an engine, nothing"


EXPLAINED = {"outcome": "written", "sentence": "Commit 1 wrote 1 row of it.", "range": {"first": "5", "last": "5"}}
FOUND = Answer(200, "application/json", json.dumps(EXPLAINED).encode())


def told(*statuses: Mapping[str, Any], explained: Answer = FOUND) -> App:
    """Return an app that gives one status after the other, and then the last one again."""
    left = list(statuses)

    class Told(App):
        def get(self, path: str) -> Answer:
            if path != "/api/status":
                return explained
            body = left.pop(0) if len(left) > 1 else left[0]
            return Answer(200, "application/json", json.dumps(body).encode())

    return Told("http://app")


def status(second: int, *, read: int, end: int, **books: Any) -> dict[str, Any]:
    own = {"hub_end": str(end), "checkpoint": str(books.pop("checkpoint", end))}
    partition = {**own, "written": 0, "stops": [], "balanced": True, **books}
    stopped = {**partition, "partition_id": "0", "stops": [{"reason": "outage"}]}
    return {
        "at": f"2026-01-01T00:00:{second:02}Z",
        "hub_read_at": f"2026-01-01T00:00:{read:02}Z",
        "hub_fault": None,
        "partitions": [stopped, {**partition, "partition_id": "1"}],
    }


BEFORE = status(1, read=1, end=4)


def prove(*statuses: Mapping[str, Any], explained: Answer = FOUND, chosen: bool = True) -> tuple[str, list[str]]:
    sent: list[str] = []

    def send(partition_ids: Sequence[str]) -> Sequence[str]:
        sent.extend(partition_ids[:1] if chosen else partition_ids)
        return tuple(sent)

    return prove_event(told(*statuses, explained=explained), send, Leaping(1.0)), sent


def test_the_event_goes_to_a_partition_that_is_not_stopped_and_its_range_is_named() -> None:
    said, sent = prove(BEFORE, status(2, read=1, end=4), status(3, read=3, end=5, written=1))
    assert sent == ["1"]
    assert said == "event 1/5: Commit 1 wrote 1 row of it. Its range is 5 to 5."


def test_an_end_that_was_read_before_the_sending_is_not_taken_for_the_event() -> None:
    """Others send too: number 5 is theirs, and ours is 6."""
    theirs = status(2, read=1, end=5, written=1)
    said, _ = prove(status(1, read=0, end=4), theirs, theirs, status(4, read=3, end=6, written=2))
    assert said == "accounted for: 1/5 to 1/6; events of it that became rows: 2"


def test_an_event_that_goes_to_any_partition_is_looked_for_in_each_that_is_not_stopped() -> None:
    def two(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
        other = {**second["partitions"][1], "partition_id": "2"}
        return {**first, "partitions": [*first["partitions"], other]}

    before, still = two(BEFORE, BEFORE), two(status(2, read=1, end=4), BEFORE)
    said, sent = prove(before, still, two(status(3, read=3, end=4), WRITTEN), chosen=False)
    assert (sent, said) == (["1", "2"], "event 2/5: Commit 1 wrote 1 row of it. Its range is 5 to 5.")
    both = two(status(3, read=3, end=6, written=1), WRITTEN)
    ranges = "accounted for: 1/5 to 1/6, 2/5 to 2/5; events of it that became rows: 2"
    assert prove(before, still, both, chosen=False)[0] == ranges
    with pytest.raises(HookRefused, match="no new row for the 3 events 1/5 to 1/6, 2/5 to 2/5"):
        prove(before, still, two(status(3, read=3, end=6), status(2, read=2, end=5)), chosen=False)


WAITED = "waited 300 s for the ledger range of event 1/5: .*partition 1"
NO_ROW = "event 1/5 was sent and became no row"
WRITTEN = status(2, read=2, end=5, written=1)
LOOSE = Answer(200, "application/json", json.dumps({**EXPLAINED, "range": None}).encode())
LOST = Answer(404, "application/problem+json", b"{}")


@pytest.mark.parametrize(
    ("after", "explained", "says"),
    [
        (status(2, read=2, end=6), FOUND, "no new row for the 2 events 1/5 to 1/6"),
        (status(2, read=2, end=5, written=1, checkpoint=4), FOUND, f"{WAITED} is committed up to 4"),
        (status(2, read=2, end=5, written=1, balanced=False), FOUND, f"{WAITED} do not balance"),
        (status(2, read=2, end=5), LOST, f"{NO_ROW}: the app answers 404"),
        pytest.param(WRITTEN, LOOSE, NO_ROW, id="a row without a range"),
    ],
)
def test_an_event_not_proven_is_refused_after_a_wait(after: dict[str, Any], explained: Answer, says: str) -> None:
    with pytest.raises(HookRefused, match=says):
        prove(BEFORE, after, explained=explained)


def test_a_hub_that_the_app_does_not_reach_and_an_answer_that_differs_from_its_check_are_named() -> None:
    with pytest.raises(HookRefused, match="waited 300 s for a partition: the app does not reach the hub: no answer"):
        prove({**BEFORE, "hub_fault": "no answer", "hub_read_at": None})
    for answer, fault in (
        (Answer(200, "application/json", b'{"minutes": [], "more": 1}'), None),
        (Answer(200, "application/json", b"{}"), "the answer has no minutes"),
        (Answer(503, "application/json", b"{}"), "503 application/json, not 200 application/json: {}"),
        (Answer(200, "text/html", b"<p>"), "200 text/html, not 200 application/json: <p>"),
    ):
        found = fault_of(told(explained=answer), Check("route", holds=("minutes",)))
        assert found == (fault and f"GET /api/route: {fault}")


OWNER = f"{SENDER.rpartition('/')[0]}/f526a384-b230-433a-b45c-95f59c4a2dec"


def roles(*ids: str) -> Services:
    assignments = [{"properties": {"roleDefinitionId": role}} for role in ids]
    return Services(lambda method, path, body: {"value": assignments})


def no_list(method: str, path: str, body: object) -> None:
    raise HookRefused("GET failed with status 403")


X = FileEvent(1, b"x")


def send(there: Services, *faults: Pending, private: bool = False) -> list[tuple[FileEvent, str]]:
    """Send an event to a hub that raises these faults, one after the other, and then takes events. Return those."""
    left, sent = list(faults), list[tuple[FileEvent, str]]()

    class Faulty(Hub):
        def send(self, event: FileEvent, partition_id: str) -> None:
            if left:
                raise left.pop(0)
            sent.append((event, partition_id))

    hub = Faulty("n.servicebus.windows.net", "telemetry", token)
    sender = Sender(hub, outputs().eventhub_id, there, private, Leaping(1.0))
    assert sender.send(X, ("3", "4")) == ("3",)
    return sent


def test_the_event_is_sent_when_the_role_is_in_force(capsys: pytest.CaptureFixture[str]) -> None:
    refused = HubRefused("Unauthorized access")
    assert send(roles(OWNER)) == send(roles(SENDER), refused, private=True) == [(X, "3")]
    capsys.readouterr()
    assert send(roles(SENDER), *[refused] * 100) == [(X, "3")], "a role may take minutes"
    lines = capsys.readouterr().out.splitlines()
    assert (len(lines), lines[1]) == (7, "waiting for the hub (15 s of 600): Unauthorized access")


@pytest.mark.parametrize("there", [roles(SENDER), Services(no_list)], ids=["role", "unknown"])
def test_a_hub_that_refuses_until_the_deadline_names_the_role(there: Services) -> None:
    with pytest.raises(NotSent) as refusal:
        send(there, *[HubRefused("Unauthorized\naccess")] * 1000)
    assert str(refusal.value).startswith(f"waited 600 s for the hub: Unauthorized access; the account {DEPLOYER} lacks")


def test_the_body_is_that_of_the_transform_unless_a_file_is_named() -> None:
    def body_of(**environment: str) -> bytes | None:
        found = event_to_send(ROOT, environment)
        return None if found is None else found.body

    assert body_of(TRANSFORM="examples.flight_info") == BODIES["examples.flight_info"]
    assert body_of(TRANSFORM="") == BODIES["examples.home_security"]
    assert body_of(TRANSFORM="own", SMOKE_EVENT="host.json") == (ROOT / "host.json").read_bytes()
    for name, body in BODIES.items():
        rows = load_transform(name).rows_of(event(0, body), References({}))
        assert list(rows), f"the body of {name} becomes no row without another event"


def test_a_key_whose_answer_was_lost_is_removed() -> None:
    keys: set[str] = set()

    def losing(method: str, path: str, body: object) -> None:
        if method == "DELETE":
            return keys.remove(path)
        keys.add(path)
        raise HookRefused("the connection was reset")

    with pytest.raises(HookRefused, match="the connection was reset"), smoke_key("/app", Services(losing), Leaping()):
        raise AssertionError("no key was given")
    assert keys == set()
