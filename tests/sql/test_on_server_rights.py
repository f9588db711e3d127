"""The roles on a T-SQL server: a member may do what its statements need, and nothing else."""

import secrets
from collections.abc import Iterator

import pytest

from core.store.sqlserver.connections import Session, connect
from core.store.sqlserver.schema import in_schema
from infra.hooks.database import USER
from local.explain import Use
from tests.fakes.server_engine import CONNECTION, shared_schema
from tests.sql.test_rights import MADE, all_grants, granted

pytestmark = pytest.mark.server

RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE", "ALTER", "REFERENCES")


@pytest.fixture(params=["hubledger_app", "hubledger_job"])
def member(request: pytest.FixtureRequest) -> Iterator[tuple[Session, str]]:
    """A session that works as a user who has only this role, and the role."""
    session, user = connect(CONNECTION), f"hubledger_test_{secrets.token_hex(4)}"
    session.run(f"SET NOCOUNT ON;\n{in_schema(all_grants(), shared_schema())}")
    session.run(f"CREATE USER {user} WITHOUT LOGIN; ALTER ROLE {request.param} ADD MEMBER {user};")
    session.run(f"EXECUTE AS USER = N'{user}';")
    yield session, request.param
    session.run(f"REVERT; DROP USER {user};")
    session.close()


def test_a_member_of_a_role_may_do_what_its_statements_need_and_nothing_else(member: tuple[Session, str]) -> None:
    session, role = member
    schema = shared_schema()
    ask = "SELECT HAS_PERMS_BY_NAME(?, 'OBJECT', ?);"
    asked = {Use(table, verb) for table in {*MADE, "schema_migration"} for verb in RIGHTS}
    may = {use for use in asked if session.run(ask, [f"{schema}.{use.table}", use.verb]) == [[(1,)]]}
    assert may == granted(role)


def test_an_identity_that_is_a_user_under_a_different_name_gets_the_role_there() -> None:
    """A second user with one SID is error 15063. A plain server has no Entra users, so this one has no login."""
    session, user, other = connect(CONNECTION), *(f"hubledger_test_{secrets.token_hex(4)}" for _ in range(2))
    session.run(f"SET NOCOUNT ON;\n{in_schema(all_grants(), shared_schema())}")
    session.run(f"CREATE USER {user} WITHOUT LOGIN;")
    try:
        ((sid,),) = session.run("SELECT p.sid FROM sys.database_principals AS p WHERE p.name = ?;", [user])[0]
        for _ in range(2):
            session.run(USER.read_text(encoding="utf-8"), [other, sid, "hubledger_job"])
        asked = "SELECT IS_ROLEMEMBER(N'hubledger_job', ?) AS member, DATABASE_PRINCIPAL_ID(?) AS second_user;"
        assert session.run(asked, [user, other]) == [[(1, None)]]
    finally:
        session.run(f"DROP USER {user};")
        session.close()
