"""The programs of azd's hooks: their inputs, their refusals, their requests."""

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pytest

from infra.hooks import __main__ as hooks
from infra.hooks import database, rights
from infra.hooks.database import DatabaseUser
from infra.hooks.errors import HookRefused
from infra.hooks.outputs import Outputs, read_outputs
from infra.hooks.rest import Rest, Service
from tests.infra.test_policies import FILES
from tests.repo.product import ROOT
from tests.sql.gates import gates

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


class Cloud(Rest):
    """Services with given answers, which store each put."""

    def __init__(self, roles: Any) -> None:
        self.roles = roles
        self.put_: dict[str, Mapping[str, Any]] = {}
        self.asked: list[str] = []

    def call(self, method: str, service: Service, path: str, body: Mapping[str, Any] | None = None) -> Any:
        if body is not None:
            self.put_[service.address + path] = body
            return body
        self.asked.append(service.address + path)
        return self.roles


def outputs(**changes: str) -> Outputs:
    return read_outputs({**ENVIRONMENT, **changes})


def test_every_output_that_a_hook_reads_is_one_of_the_template() -> None:
    assert set(NAMES) <= {one.name for one in FILES["main.bicep"].of_kind("output")}


def test_outputs_are_read_whole_or_refused_with_every_fault() -> None:
    assert outputs().app_identity_client_id == CLIENT
    with pytest.raises(HookRefused) as refusal:
        read_outputs({**ENVIRONMENT, "FUNCTION_APP_URI": "", "APP_IDENTITY_CLIENT_ID": "x"})
    assert [line.split()[0] for line in refusal.value.faults] == ["FUNCTION_APP_URI", "APP_IDENTITY_CLIENT_ID"]
    assert read_outputs({**ENVIRONMENT, "SYNAPSE_WORKSPACE": ""}).synapse_workspace == ""


def test_the_app_gets_the_role_in_the_pool_and_nothing_wider() -> None:
    cloud = Cloud([{"name": "Synapse Administrator", "id": "wide"}, {"name": "Synapse Compute Operator", "id": "r"}])
    rights.allow_submitting(outputs(), cloud)
    rights.allow_submitting(outputs(), cloud)
    ((address, body),) = cloud.put_.items()
    assert address.startswith("https://w.dev.azuresynapse.net/roleAssignments/")
    assert (body["roleId"], body["scope"]) == ("r", "workspaces/w/bigDataPools/spark35")


def test_without_synapse_no_role_is_set() -> None:
    cloud = Cloud([])
    rights.allow_submitting(outputs(SPARK_ENGINE_CHOICE="none"), cloud)
    assert cloud.put_ == {}


def test_a_workspace_that_does_not_show_the_role_is_refused() -> None:
    with pytest.raises(HookRefused, match="Synapse Administrator"):
        rights.allow_submitting(outputs(), Cloud({"value": []}))


def test_with_synapse_the_workspaces_own_identity_and_that_of_the_submitter_get_the_role_of_the_jobs() -> None:
    cloud = Cloud({"properties": {"clientId": str(JOBS), "principalId": "p"}})
    submitter = DatabaseUser("id-app", CLIENT, "hubledger_job")
    assert rights.database_users(outputs(), cloud, {}) == [*USERS, submitter]
    assert cloud.asked == [
        "https://management.azure.com/subscriptions/s/resourceGroups/g/providers/Microsoft.Synapse/workspaces/w"
        "/providers/Microsoft.ManagedIdentity/identities/default?api-version=2023-01-31"
    ]


@pytest.mark.parametrize("answer", [{}, {"properties": {}}, {"properties": {"clientId": "x"}}, [], None])
def test_a_workspace_without_an_identity_is_refused(answer: Any) -> None:
    with pytest.raises(HookRefused, match="workspaces/w has no managed identity"):
        rights.database_users(outputs(), Cloud(answer), {})


def test_without_a_spark_engine_only_the_app_enters_the_database() -> None:
    cloud = Cloud([])
    assert rights.database_users(outputs(SPARK_ENGINE_CHOICE="none"), cloud, {}) == USERS[:1]
    assert cloud.asked == []


def test_with_databricks_the_identity_that_is_named_enters_and_without_one_that_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    own, cloud = outputs(SPARK_ENGINE_CHOICE="databricks"), Cloud([])
    named = {"JOB_IDENTITY_NAME": "w", "JOB_IDENTITY_CLIENT_ID": str(JOBS)}
    assert rights.database_users(own, cloud, named) == USERS
    assert rights.database_users(own, cloud, {}) == USERS[:1]
    assert "azd env set JOB_IDENTITY_NAME and JOB_IDENTITY_CLIENT_ID" in capsys.readouterr().out
    with pytest.raises(HookRefused, match="JOB_IDENTITY_CLIENT_ID must be the client id"):
        rights.database_users(own, cloud, {"JOB_IDENTITY_NAME": "w"})


@pytest.mark.parametrize("gate", sorted(gates()))
def test_the_statement_for_the_user_is_t_sql(gate: str) -> None:
    text = database.USER.read_text("utf-8")
    assert list(gates()[gate]({"whole": text, "damaged": text.replace("BEGIN", "BEGINN")})) == ["damaged"]


def test_a_step_that_is_refused_ends_with_1_and_a_line_for_each_fault(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    assert hooks.main(["provisioned"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(NAMES) - 4, "four are empty without what they name"
    assert all(line.startswith("provisioned: ") for line in lines)


def unforeseen() -> None:
    """Fail as no hook expects."""
    raise LookupError("a text\nof two lines")


def interrupted() -> None:
    """End as Ctrl-C does."""
    raise KeyboardInterrupt


def test_an_error_that_no_hook_foresees_is_one_line_and_its_traceback_comes_on_request(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(hooks.STEPS, "deployable", unforeseen)
    monkeypatch.delenv(TRACEBACK, raising=False)
    assert hooks.main(["deployable"]) == 1
    said = f"LookupError: a text of two lines ({TRACEBACK}=1 shows the place in the code)"
    assert capsys.readouterr().err == f"deployable: {said}\n"
    monkeypatch.setenv(TRACEBACK, "1")
    with pytest.raises(LookupError):
        hooks.main(["deployable"])


def test_a_step_that_is_interrupted_ends_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(hooks.STEPS, "deployable", interrupted)
    assert hooks.main(["deployable"]) == 1
    assert capsys.readouterr().err == "deployable: interrupted; it is safe to run again\n"


def test_each_fault_of_a_refusal_is_one_line() -> None:
    assert HookRefused("a\n  b", "c").faults == ("a b", "c")


def test_every_step_of_the_hooks_is_one_of_the_program() -> None:
    programs = [path.read_text("utf-8") for path in (ROOT / "infra" / "hooks").glob("p*.py")]
    called = [re.findall(r'sys\.argv\[1:\] = \["(\w+)"\]', text) for text in programs]
    assert sorted(step for steps in called for step in steps) == sorted(hooks.STEPS)
