"""infra/hooks/database.py: the users of the database, and the refusals of its server."""

import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from core.store.queries import SQL
from core.store.sqlserver.connections import Access, token_attribute
from core.transforms.loading import Room
from infra.hooks.database import USER, DatabaseUser, ServerDatabase
from infra.hooks.errors import HookRefused
from infra.hooks.patience import PAUSE
from tests.fakes.builders import FakeClock
from tests.fakes.odbc_driver import Error, FakeDriver, Server, fault
from tests.infra.doubles import Connection, Driver

CLIENT, JOBS = uuid.UUID(int=1), uuid.UUID(int=2)
USERS = [DatabaseUser("id-app", CLIENT, "hubledger_app"), DatabaseUser("w", JOBS, "hubledger_job")]
CONNECTION = "Driver={ODBC Driver 18 for SQL Server};Server=tcp:s,1433;Database=d"


def signing_in(number: int, text: str, state: str = "42000") -> Error:
    return fault(state, number, text, "SQLDriverConnect")


FIREWALL = signing_in(40615, "Cannot open server. Client with IP address '192.0.2.1' is not allowed")
PAUSED = signing_in(40613, "Database 'd' on server 's' is not currently available.", "HY000")
UNKNOWN = signing_in(
    18456, "Login failed for user 'x'. The server is not currently configured to accept this token.", "28000"
)
WRONG = signing_in(18456, "Login failed for user '<token-identified principal>'.", "28000")
CLOSED = signing_in(47073, "Connection was denied because Deny Public Network Access is set to Yes.", "08001")


def database(driver: object, clock: FakeClock) -> ServerDatabase:
    return ServerDatabase(CONNECTION, Access(lambda: driver, lambda: "token"), clock)  # type: ignore[arg-type, return-value]


def test_users_are_admitted_with_the_grants_of_their_roles_and_their_client_ids_as_sids() -> None:
    connection = Connection()
    driver = Driver(connection)
    database(driver, FakeClock()).admit(USERS)
    (grants, _), (user, given), (same, of_jobs) = connection.executed
    assert grants == (SQL / "sqlserver" / "permissions.sql").read_text("utf-8")
    assert all(f"CREATE ROLE {one.role};" in grants for one in USERS)
    assert "CREATE USER" in user and same == user
    assert given == ["id-app", CLIENT.bytes_le, "hubledger_app"]
    assert of_jobs == ["w", JOBS.bytes_le, "hubledger_job"]
    assert connection.closed
    assert driver.tokens == [token_attribute("token")]


def test_the_sid_of_an_identity_finds_its_user_before_one_is_made() -> None:
    """A second user with one SID is error 15063; tests/sql/test_on_server_rights.py runs the text."""
    text = USER.read_text(encoding="utf-8")
    steps = ["p.sid <> @sid", "DROP USER", "SELECT @name = p.name", "WHERE p.sid = @sid;", "CREATE USER", "ALTER ROLE"]
    assert sorted(steps, key=text.index) == steps


def rooms(folder: Path, *files: str) -> tuple[Room, ...]:
    """Write rooms, each with a file of rights or with none."""
    found = tuple(Room(f"apps.r{number}", folder / str(number)) for number, _ in enumerate(files))
    for one, text in zip(found, files, strict=True):
        one.folder.mkdir()
        if text:
            (one.folder / "permissions.sql").write_text(text)
    return found


def test_the_rights_of_rooms_follow_ours_and_come_before_the_users(tmp_path: Path) -> None:
    connection = Connection()
    own = rooms(tmp_path, "GRANT 1;\nGO\nGRANT 2;", "", "GRANT 3;")
    replace(database(Driver(connection), FakeClock()), rooms=own).admit(USERS[:1])
    ours, *others = [text for text, _ in connection.executed]
    assert "CREATE ROLE hubledger_app" in ours
    assert others[:3] == ["GRANT 1;", "GRANT 2;", "GRANT 3;"]
    assert len(others) == 4 and "CREATE USER" in others[3]


def test_a_refused_right_of_a_room_names_its_file(tmp_path: Path) -> None:
    driver = FakeDriver(Server(refused=("GRANT 1", fault("42S02", 15151, "Cannot find the object 'x'"))))
    with pytest.raises(HookRefused, match=r"the grants of apps\.r0/permissions\.sql were not made: .*Cannot find"):
        replace(database(driver, FakeClock()), rooms=rooms(tmp_path, "GRANT 1;")).admit(USERS)


def test_a_refused_user_is_told_in_the_servers_words() -> None:
    connection = Connection(fault("42000", 33159, "Principal could not be created"))
    with pytest.raises(HookRefused, match=r"were not made: .*Principal could not be created"):
        database(Driver(connection), FakeClock()).admit(USERS)
    assert connection.closed


def test_the_schema_is_migrated_after_the_firewall_admits_the_deployer(capsys: pytest.CaptureFixture[str]) -> None:
    driver, clock = FakeDriver(Server(version=0)), FakeClock()
    driver.refusals += [FIREWALL] * 20
    database(driver, clock).migrate()
    assert sum(clock.slept) == 300
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if "(40615)" in line and "trying again" in line]) == 20
    assert lines[-1] == "the schema of the database is up to date"
    assert driver.open == []


@pytest.mark.parametrize(
    ("refusal", "minutes", "remedy"),
    [
        (FIREWALL, 5, "azd env set DEPLOYER_ADDRESS ''"),
        (PAUSED, 5, "in the portal"),
        (UNKNOWN, 2, "sign in as the administrator of the server or a member of its group"),
    ],
)
def test_a_refusal_that_may_pass_ends_after_its_minutes(refusal: Error, minutes: int, remedy: str) -> None:
    clock = FakeClock()
    with pytest.raises(HookRefused, match=rf"did not pass in 0:0{minutes}:00: .*{remedy}") as said:
        database(Driver(Connection(), [refusal] * 99), clock).refuse_other_schema()
    assert sum(clock.slept) == minutes * 60
    assert len(str(said.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("refusal", "says"),
    [
        (WRONG, "sign in as the administrator of the server or a member of its group"),
        (CLOSED, "with VNET_ENABLED=true only machines in the virtual network reach the database"),
        (signing_in(40532, "Cannot open server requested by the login."), "refuses the login or the database"),
    ],
)
def test_any_other_refusal_ends_at_once(refusal: Error, says: str) -> None:
    clock = FakeClock()
    with pytest.raises(HookRefused, match=says) as said:
        database(Driver(Connection(), [refusal]), clock).admit(USERS)
    assert clock.slept == []
    assert len(str(said.value).splitlines()) == 1


def test_an_account_that_is_not_known_yet_enters_when_it_is() -> None:
    connection, clock = Connection(), FakeClock()
    database(Driver(connection, [UNKNOWN, UNKNOWN, FIREWALL, PAUSED]), clock).admit(USERS)
    assert clock.slept == [PAUSE] * 4
    assert len(connection.executed) == 3


def test_an_older_schema_is_refused_before_the_code_is_deployed() -> None:
    with pytest.raises(HookRefused, match="the database is at schema 0 of"):
        database(FakeDriver(Server(version=0)), FakeClock()).refuse_other_schema()


def test_a_migration_that_fails_is_refused_in_the_servers_words() -> None:
    driver = FakeDriver(
        Server(version=0, refused=("CREATE TABLE hubledger.batch_ledger ", fault("42000", 262, "denied")))
    )
    with pytest.raises(HookRefused, match=r"migration 0001 hubledger failed; .*denied"):
        database(driver, FakeClock()).migrate()
