"""infra/hooks/database.py and room.py: the users of the database, the refusals of its server, and the rooms' rights.

A room has the event that proves an app of theirs, too.
"""

import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from core.store.queries import SQL
from core.store.sqlserver.connections import Access, token_attribute
from core.transforms.loading import Room
from infra.hooks.database import DatabaseUser, ServerDatabase
from infra.hooks.errors import HookRefused
from infra.hooks.patience import PAUSE
from infra.hooks.room import PERMISSIONS, rights_of, rooms_in, sample_of, transform_in
from infra.hooks.smoke.event import event_to_send
from local.feed.event_file import FileEvent
from tests.fakes.builders import FakeClock
from tests.fakes.odbc_driver import Error, FakeDriver, Server, fault
from tests.fakes.orders_room import ORDERS, write_room
from tests.fakes.written_modules import written_modules

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


def refusing(*refusals: Error) -> FakeDriver:
    driver = FakeDriver()
    driver.refusals += refusals
    return driver


def database(driver: object, clock: FakeClock) -> ServerDatabase:
    return ServerDatabase(CONNECTION, Access(lambda: driver, lambda: "token"), clock)  # type: ignore[arg-type, return-value]


def test_users_are_admitted_with_the_grants_of_their_roles_and_their_client_ids_as_sids() -> None:
    driver = FakeDriver()
    database(driver, FakeClock()).admit(USERS)
    (grants, _), (user, given), (same, of_jobs) = driver.server.executed
    assert grants == (SQL / "sqlserver" / "permissions.sql").read_text("utf-8")
    assert all(f"CREATE ROLE {one.role};" in grants for one in USERS)
    assert "CREATE USER" in user and same == user
    assert given == ["id-app", CLIENT.bytes_le, "hubledger_app"]
    assert of_jobs == ["w", JOBS.bytes_le, "hubledger_job"]
    assert driver.open == []
    assert [*driver.options[0]["attrs_before"].values()] == [token_attribute("token")]


def rooms(folder: Path, *files: str) -> tuple[Room, ...]:
    found = tuple(Room(f"apps.r{number}", folder / str(number)) for number, _ in enumerate(files))
    for one, text in zip(found, files, strict=True):
        one.folder.mkdir()
        if text:
            (one.folder / PERMISSIONS).write_text(text)
    return found


def test_the_rights_of_rooms_follow_ours_and_come_before_the_users(tmp_path: Path) -> None:
    driver = FakeDriver()
    own = rooms(tmp_path, "GRANT 1;\nGO\nGRANT 2;", "", "GRANT 3;")
    replace(database(driver, FakeClock()), rooms=own).admit(USERS[:1])
    ours, *others = [text for text, _ in driver.server.executed]
    assert "CREATE ROLE hubledger_app" in ours
    assert others[:3] == ["GRANT 1;", "GRANT 2;", "GRANT 3;"]
    assert len(others) == 4 and "CREATE USER" in others[3]


def test_a_refused_user_and_a_refused_right_of_a_room_are_told_in_the_servers_words(tmp_path: Path) -> None:
    own, of_room = rooms(tmp_path, "GRANT 1;"), r"the grants of apps\.r0/permissions\.sql were not made: .*Cannot find"
    for part, words, says in (
        ("CREATE USER", "Principal cannot be created", "the database user id-app was not made: .*Principal"),
        ("GRANT 1", "Cannot find the object 'x'", of_room),
    ):
        driver = FakeDriver(Server(refused=(part, fault("42000", 15151, words))))
        with pytest.raises(HookRefused, match=says):
            replace(database(driver, FakeClock()), rooms=own).admit(USERS)
        assert driver.open == []


def test_the_schema_is_migrated_after_the_firewall_admits_the_deployer(capsys: pytest.CaptureFixture[str]) -> None:
    driver, clock = FakeDriver(Server(version=0)), FakeClock()
    driver.refusals += [FIREWALL] * 20
    database(driver, clock).migrate()
    assert sum(clock.slept) == 300
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if "(40615)" in line and "trying again" in line]) == 20
    assert lines[-1] == "the schema of the database is up to date"
    assert driver.open == []


AS_ADMINISTRATOR = "sign in as the administrator of the server or a member of its group"
NO_DATABASE = signing_in(40532, "Cannot open server requested by the login.")


@pytest.mark.parametrize(
    ("refusal", "minutes", "says"),
    [
        (FIREWALL, 5, "did not pass in 0:05:00: .*azd env set DEPLOYER_ADDRESS ''"),
        (PAUSED, 5, "did not pass in 0:05:00: .*in the portal"),
        (UNKNOWN, 2, f"did not pass in 0:02:00: .*{AS_ADMINISTRATOR}"),
        (WRONG, 0, AS_ADMINISTRATOR),
        (CLOSED, 0, "with VNET_ENABLED=true only machines in the virtual network reach the database"),
        (NO_DATABASE, 0, "refuses the login or the database"),
    ],
)
def test_a_refusal_that_may_pass_ends_after_its_minutes(refusal: Error, minutes: int, says: str) -> None:
    clock = FakeClock()
    with pytest.raises(HookRefused, match=says) as said:
        database(refusing(*[refusal] * 99), clock).admit(USERS)
    assert sum(clock.slept) == minutes * 60
    assert len(str(said.value).splitlines()) == 1


def test_an_account_that_is_not_known_yet_enters_when_it_is() -> None:
    driver, clock = refusing(UNKNOWN, UNKNOWN, FIREWALL, PAUSED), FakeClock()
    database(driver, clock).admit(USERS)
    assert clock.slept == [PAUSE] * 4
    assert len(driver.server.executed) == 3


def test_an_older_schema_is_refused_before_the_code_is_deployed_and_a_migration_in_the_servers_words() -> None:
    with pytest.raises(HookRefused, match="the database is at schema 0 of"):
        database(FakeDriver(Server(version=0)), FakeClock()).refuse_other_schema()
    refused = ("CREATE TABLE hubledger.batch_ledger ", fault("42000", 262, "denied"))
    with pytest.raises(HookRefused, match=r"migration 0001 hubledger failed; .*denied"):
        database(FakeDriver(Server(version=0, refused=refused)), FakeClock()).migrate()


APP = {"TRANSFORM": ORDERS}


@pytest.fixture
def orders(tmp_path: Path) -> Iterator[Path]:
    """Write a user's room, and make it importable beside the empty folder of ours."""
    import apps

    folder = write_room(tmp_path)
    apps.__path__.append(str(folder.parent))
    with written_modules(tmp_path):
        yield folder
    apps.__path__.remove(str(folder.parent))
    assert sys.modules["apps"] is apps, "the tests that follow would import another package"


def test_the_rooms_of_an_environment_are_those_of_its_transform_by_default_an_example(orders: Path) -> None:
    assert [one.name for one in rooms_in({})] == ["examples.home_security"]
    assert rooms_in(APP) == (Room(ORDERS, orders),)


def test_every_fault_of_a_transform_is_a_line_that_names_it(orders: Path) -> None:
    transform = orders / "transform.py"
    transform.write_text(transform.read_text().replace("cents: int", "cents: bytes").replace('"orders/1"', "7"))
    with pytest.raises(HookRefused) as refusal:
        transform_in(APP)
    assert len(refusal.value.faults) >= 2
    assert all(one.startswith(f"TRANSFORM={ORDERS}: ") for one in refusal.value.faults)


def test_a_missing_package_is_named_with_the_file_that_must_have_it(orders: Path) -> None:
    (orders / "amounts.py").write_text("import no_such_package\n")
    with pytest.raises(HookRefused, match=r"No module named 'no_such_package'\n.*requirements\.txt"):
        transform_in(APP)


def test_rights_are_parted_at_each_go_that_stands_alone(tmp_path: Path) -> None:
    room = Room("apps.x", tmp_path)
    assert rights_of(room) == ()
    for text, batches in (
        ("GRANT SELECT ON a TO b;\n", ("GRANT SELECT ON a TO b;",)),
        ("GRANT 1;\nGO\nGRANT 2;\n  go 1 ; -- twice\n\nGO\n", ("GRANT 1;", "GRANT 2;")),
        ("\ufeffGRANT 1; -- GO\r\nGO\r\nGRANT GOAL;\r\n", ("GRANT 1; -- GO", "GRANT GOAL;")),
        ("GO", ()),
    ):
        (tmp_path / PERMISSIONS).write_bytes(text.encode())
        assert rights_of(room) == batches


def test_the_event_of_the_proof_is_the_first_sample_that_becomes_a_row_alone(
    orders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = FileEvent(3, b'"customer c-1 Ada"')
    assert sample_of(transform_in(APP)) == (first, f"line 3 of {ORDERS}/events.jsonl")
    assert event_to_send(orders, APP) == first
    assert "line 3 of apps.orders/events.jsonl; SMOKE_EVENT names" in capsys.readouterr().out
    line = FileEvent(1, first.body, "k", {"a": 1}, {"content-type": "t"}).envelope
    (orders / "events.jsonl").write_bytes(line)
    whole = event_to_send(orders, APP)
    assert whole is not None and whole.envelope == line
    for samples in (b"", b'\n"line c-1 2"\nnonsense\n\xff\n'):
        (orders / "events.jsonl").write_bytes(samples)
        assert event_to_send(orders, APP) is None
    (orders / "events.jsonl").unlink()
    assert event_to_send(orders, APP) is None
