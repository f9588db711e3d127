"""core/store/sqlserver/schema.py: migrations in one locked transaction, and another schema's name in every text."""

import pytest

from core.errors import SchemaMismatch, StoreMisconfigured, StoreUnavailable
from core.store.queries import load_migrations
from core.store.sqlserver.odbc import Access
from core.store.sqlserver.schema import in_schema, migrate_server
from tests.fakes.odbc_driver import FakeDriver, Server, fault

CONNECTION = "SERVER=host;UID=app;PWD=secret"
ALL = list(load_migrations("sqlserver"))


def texts(driver: FakeDriver) -> list[str]:
    return [text for text, _ in driver.server.executed]


@pytest.mark.parametrize("version", range(len(ALL) + 1))
def test_what_is_missing_is_applied_between_the_lock_and_the_commit(version: int) -> None:
    driver = FakeDriver(Server(version=version))
    assert migrate_server(CONNECTION, access=Access(lambda: driver)) == ALL[version:]
    first, *_, last = texts(driver)
    assert first.index("BEGIN TRANSACTION;") < first.index("sp_getapplock")
    assert "COMMIT TRANSACTION;" in last
    recorded = [given[:2] for text, given in driver.server.executed if "INSERT INTO hubledger.schema_migration" in text]
    assert recorded == [[one.version, one.name] for one in ALL[version:]]
    assert driver.open == []


def test_a_migration_that_fails_commits_nothing_and_lets_go_of_the_connection() -> None:
    driver = FakeDriver(Server(version=0, refused=("CREATE TABLE hubledger.home", fault("42000", 262))))
    with pytest.raises(StoreUnavailable, match=r"^the database cannot be migrated: .*\(262\)"):
        migrate_server(CONNECTION, access=Access(lambda: driver))
    assert [text for text in texts(driver) if "COMMIT TRANSACTION" in text] == []
    assert driver.open == []


def test_older_code_leaves_a_newer_schema_alone_and_refuses_one_that_breaks_it() -> None:
    driver = FakeDriver(Server(version=99, answers={"m.version, m.name": [(99, "parcels")]}))
    assert migrate_server(CONNECTION, access=Access(lambda: driver)) == []
    driver = FakeDriver(Server(version=99, answers={"m.version, m.name": [(99, "breaking_x")]}))
    with pytest.raises(SchemaMismatch, match="0099 breaking_x"):
        migrate_server(CONNECTION, access=Access(lambda: driver))
    assert driver.open == []


def test_a_login_refused_names_the_setting() -> None:
    driver = FakeDriver()
    driver.refusals.append(fault("28000", 18456))
    with pytest.raises(StoreMisconfigured, match=r"^STORE_CONNECTION: "):
        migrate_server(CONNECTION, access=Access(lambda: driver))


def test_everything_of_a_migration_goes_to_the_named_schema() -> None:
    driver = FakeDriver(Server(schema="trial_7", version=0))
    migrate_server(CONNECTION, "trial_7", Access(lambda: driver))
    left = [text for text in texts(driver) if "hubledger" in text.replace("hubledger_migration", "")]
    assert left == []
    assert "CREATE SCHEMA trial_7" in "".join(texts(driver))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("FROM hubledger.home AS t", "FROM x.home AS t"),
        ("OBJECT_ID(N'hubledger.home', N'U')", "OBJECT_ID(N'x.home', N'U')"),
        ("SCHEMA_ID(N'hubledger')", "SCHEMA_ID(N'x')"),
        ("N'hubledger_migration'", "N'hubledger_migration'"),
        ("other_hubledger.home", "other_hubledger.home"),
    ],
)
def test_only_the_name_of_the_schema_is_replaced(text: str, named: str) -> None:
    assert in_schema(text, "x") == named
    assert in_schema(text, "hubledger") == text
