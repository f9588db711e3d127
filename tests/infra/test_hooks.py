"""The programs of azd's hooks: their inputs, their refusals, their requests."""

import json
import re
import uuid
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from infra.hooks import __main__ as hooks
from infra.hooks import database, rights
from infra.hooks.database import DatabaseUser
from infra.hooks.errors import HookRefused
from infra.hooks.outputs import Outputs, read_outputs
from infra.hooks.watch import expect_watch
from tests.infra.doubles import Services
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


def shows(answer: Any) -> Services:
    """Return services that show this."""
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
NAMED = {"JOB_IDENTITY_NAME": "w", "JOB_IDENTITY_CLIENT_ID": str(JOBS)}


def test_with_databricks_the_identity_that_is_named_enters_and_without_one_that_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    own = outputs(SPARK_ENGINE_CHOICE="databricks")
    assert rights.database_users(own, Services(), NAMED) == USERS
    assert rights.database_users(own, Services(), {}) == USERS[:1]
    assert "azd env set JOB_IDENTITY_NAME and JOB_IDENTITY_CLIENT_ID" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("engine", "answer", "named", "says"),
    [
        ("databricks", [], {"JOB_IDENTITY_NAME": "w"}, "JOB_IDENTITY_CLIENT_ID must be the client id"),
        *(("synapse", answer, {}, "workspaces/w has no managed identity") for answer in NO_IDENTITY),
    ],
)
def test_an_identity_of_jobs_that_nobody_knows_is_refused(
    engine: str, answer: Any, named: dict[str, str], says: str
) -> None:
    with pytest.raises(HookRefused, match=says):
        rights.database_users(outputs(SPARK_ENGINE_CHOICE=engine), shows(answer), named)


def test_a_workspace_that_does_not_show_the_role_is_refused() -> None:
    with pytest.raises(HookRefused, match="Synapse Administrator"):
        rights.allow_submitting(outputs(), shows({"value": []}))


def test_after_a_deployment_the_alert_on_silence_is_on_and_stays_on() -> None:
    there = Services()
    assert expect_watch(outputs(), there) == {"APP_DEPLOYED": "true"}
    assert expect_watch(outputs(WATCH_ALERT_ID=""), there) == {}
    ((method, path, body),) = there.calls
    assert (method, body) == ("PATCH", {"properties": {"enabled": True}})
    assert path.endswith("/scheduledQueryRules/w?api-version=2023-12-01")


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


def fails(error: BaseException) -> Callable[[], None]:
    def step() -> None:
        raise error

    return step


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            LookupError("a text\nof two lines"),
            f"LookupError: a text of two lines ({TRACEBACK}=1 shows the place in the code)",
        ),
        (KeyboardInterrupt(), "interrupted; it is safe to run again"),
    ],
)
def test_an_error_that_no_hook_foresees_is_one_line(
    error: BaseException, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(TRACEBACK, raising=False)
    assert hooks.main(["deployable"], {"deployable": fails(error)}) == 1
    assert capsys.readouterr().err == f"deployable: {said}\n"


def test_the_traceback_of_an_error_comes_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TRACEBACK, "1")
    with pytest.raises(LookupError):
        hooks.main(["deployable"], {"deployable": fails(LookupError())})


def test_each_fault_of_a_refusal_is_one_line() -> None:
    assert HookRefused("a\n  b", "c").faults == ("a b", "c")


def test_every_step_of_the_hooks_is_one_of_the_program() -> None:
    programs = [path.read_text("utf-8") for path in (ROOT / "infra" / "hooks").glob("p*.py")]
    called = [re.findall(r'sys\.argv\[1:\] = \["(\w+)"\]', text) for text in programs]
    assert sorted(step for steps in called for step in steps) == sorted(hooks.STEPS)
