"""The programs of azd's hooks: their inputs, their refusals, their requests."""

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from core.aggregation.spark import JobRequest
from core.errors import StoreUnavailable
from core.remote.spark.livy import LivyJobs
from core.remote.spark.package import package_version
from core.store.queries import SQL
from core.store.sqlserver.odbc import Session
from infra.hooks import __main__ as hooks
from infra.hooks import database, lake, rights
from infra.hooks.database import DatabaseUser
from infra.hooks.errors import HookRefused
from infra.hooks.outputs import NAMES, Outputs, read_outputs
from infra.hooks.rest import Service
from tests.fakes.odbc_driver import Error, fault
from tests.infra.test_policies import FILES
from tests.repo.product import ROOT
from tests.sql.gates import gates

CLIENT = uuid.UUID("01234567-89ab-cdef-0123-456789abcdef")
JOBS = uuid.UUID("89abcdef-0123-4567-89ab-cdef01234567")
USERS = [DatabaseUser("id-app", CLIENT, "hubledger_app"), DatabaseUser("w", JOBS, "hubledger_job")]
ENVIRONMENT = {
    "FUNCTION_APP_ID": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Web/sites/f",
    "FUNCTION_APP_URI": "https://f.azurewebsites.net",
    "EVENTHUB__fullyQualifiedNamespace": "n.servicebus.windows.net",
    "EVENTHUB_NAME": "telemetry",
    "APP_IDENTITY_NAME": "id-app",
    "APP_IDENTITY_CLIENT_ID": str(CLIENT),
    "APP_IDENTITY_PRINCIPAL_ID": str(CLIENT),
    "STORE_CONNECTION": "Driver={ODBC Driver 18 for SQL Server};Server=tcp:s,1433;Database=d",
    "LAKE_BLOB_ENDPOINT": "https://l.blob.core.windows.net/",
    "LAKE_CONTAINER": "spark",
    "SPARK_ENGINE_CHOICE": "synapse",
    "SYNAPSE_WORKSPACE": "w",
    "SYNAPSE_POOL": "spark35",
}


class Cloud:
    """Services with given answers, which store each put."""

    def __init__(self, roles: Any) -> None:
        self.roles = roles
        self.put_: dict[str, Mapping[str, Any]] = {}
        self.asked: list[str] = []

    def get(self, service: Service, path: str) -> Any:
        self.asked.append(service.address + path)
        return self.roles

    def put(self, service: Service, path: str, body: Mapping[str, Any]) -> Any:
        self.put_[service.address + path] = body
        return body


class Database:
    """A connection that stores each statement, or refuses it."""

    def __init__(self, refuses: Error | None = None) -> None:
        self.executed: list[tuple[str, list[object]]] = []
        self.closed = False
        self._refuses = refuses
        self.description = None

    def cursor(self) -> "Database":
        return self

    def setinputsizes(self, sizes: list[object]) -> None:
        """Accept the sizes that a session declares for its parameters."""

    def execute(self, text: str, given: list[object]) -> None:
        if self._refuses is not None:
            raise self._refuses
        self.executed.append((text, given))

    def nextset(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True


class Driver:
    """The part of a driver that a session needs."""

    Error = Error


def outputs(**changes: str) -> Outputs:
    return read_outputs({**ENVIRONMENT, **changes})


def test_every_output_that_a_hook_reads_is_one_of_the_template() -> None:
    assert set(NAMES.values()) <= {one.name for one in FILES["main.bicep"].of_kind("output")}


def test_outputs_are_read_whole_or_refused_with_every_fault() -> None:
    assert outputs().app_identity_client_id == CLIENT
    with pytest.raises(HookRefused) as refusal:
        read_outputs({**ENVIRONMENT, "STORE_CONNECTION": "", "APP_IDENTITY_CLIENT_ID": "x"})
    assert [line.split()[0] for line in refusal.value.faults] == ["APP_IDENTITY_CLIENT_ID", "STORE_CONNECTION"]
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


class Container:
    """A container that stores each upload."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    def upload_blob(self, name: str, content: Any, overwrite: bool) -> None:
        assert overwrite
        self.blobs[name] = content.read()


def test_the_files_that_a_batch_names_are_those_that_were_uploaded(tmp_path: Path) -> None:
    container = Container()
    assert lake.upload_jobs(container, tmp_path) == sorted(container.blobs)
    batch = LivyJobs(f"jobs/{package_version()}").batch(JobRequest("n", "aggregate.py", ()))
    named = {batch["file"], *batch["pyFiles"], *(one.partition("#")[0] for one in batch["archives"])}
    assert named <= set(container.blobs)


def test_both_doors_for_passwords_are_closed() -> None:
    cloud = Cloud([])
    rights.refuse_passwords(outputs(), cloud)
    assert [path.split("/")[-1].split("?")[0] for path in cloud.put_] == ["scm", "ftp"]
    assert all(body == {"properties": {"allow": False}} for body in cloud.put_.values())


def test_users_are_admitted_with_the_grants_of_their_roles_and_their_client_ids_as_sids() -> None:
    connection = Database()
    database.admit("c", USERS, lambda _: Session(connection, Driver))  # type: ignore[arg-type]
    (grants, _), (user, given), (same, of_jobs) = connection.executed
    assert grants == (SQL / "sqlserver" / "permissions.sql").read_text("utf-8")
    assert all(f"CREATE ROLE {one.role};" in grants for one in USERS)
    assert "CREATE USER" in user and same == user
    assert given == ["id-app", CLIENT.bytes_le, "hubledger_app"]
    assert of_jobs == ["w", JOBS.bytes_le, "hubledger_job"]
    assert connection.closed


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


def test_a_refused_user_is_told_in_the_servers_words() -> None:
    connection = Database(fault("42000", 33159, "Principal could not be created"))
    with pytest.raises(HookRefused, match=r"were not made: .*Principal could not be created"):
        database.admit("c", USERS, lambda _: Session(connection, Driver))  # type: ignore[arg-type]
    assert connection.closed


def test_a_database_out_of_reach_is_refused_in_one_line() -> None:
    def unreachable(connection: str) -> Session:
        raise StoreUnavailable("STORE_CONNECTION: the database cannot be reached: Client with IP address")

    with pytest.raises(HookRefused, match="cannot be reached"):
        database.refuse_other_schema("c", unreachable)


@pytest.mark.parametrize("gate", sorted(gates()))
def test_the_statement_for_the_user_is_t_sql(gate: str) -> None:
    text = database.USER.read_text("utf-8")
    assert list(gates()[gate]({"whole": text, "damaged": text.replace("BEGIN", "BEGINN")})) == ["damaged"]


def test_a_step_that_is_refused_ends_with_1_and_a_line_for_each_fault(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in NAMES.values():
        monkeypatch.delenv(name, raising=False)
    assert hooks.main(["provisioned"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(NAMES) - 2
    assert all(line.startswith("provisioned: ") for line in lines)


def test_every_step_of_the_scripts_is_one_of_the_program() -> None:
    for path in (ROOT / "infra" / "hooks").glob("p*.sh"):
        step = path.read_text("utf-8").split()[-1]
        twin = Path(path).with_suffix(".ps1").read_text("utf-8")
        assert step in hooks.STEPS
        assert f"-Step {step}" in twin
        assert f"'{step}'" in (path.parent / "run.ps1").read_text("utf-8")
