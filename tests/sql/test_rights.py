"""Each role may do all that its statements need, and nothing else, also on a server.

`python -m local.explain` shows the T-SQL that the store sends, whose transactions docs/sqlserver.md names.
"""

import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from core.aggregation.store import close_run_script, portion_script
from core.letters.store import claim_script, retry_script
from core.model.letters import LetterClaim
from core.model.release import DEFAULT_TRANSFORM
from core.model.rows import row_table
from core.replay.store import commit_script
from core.settle.partition_store import batch_script
from core.store.migrations import load_migrations
from core.store.queries import SQL, load_queries
from core.store.sqlserver.batch import run_batch, run_text
from core.store.sqlserver.connections import Session, connect
from core.store.sqlserver.schema import in_schema
from core.transforms.loading import load_aggregates, load_transform
from hubledger.cli.ddl.room import rights_text
from infra.hooks.database import USER
from local.explain import OF_THE_OWNER, TRANSACTIONS, Use, explained, lock_lines, main, rights_of_statements, uses_of
from tests.fakes.engines import CONNECTION, shared_schema
from tests.offenders import holds_for
from tests.sql import statements
from tests.sql.grants import grants_of
from tests.sql.statements import PORTION, RUN, STAGED, commit_of, every_run, every_script, replay_of, retry_of
from tests.sql.values import EPOCH, ROW_CLASSES

ROOT = Path(__file__).parents[2]
JOBS = "".join(
    (ROOT / "jobs" / name).read_text(encoding="utf-8")
    for name in ("tables.py", "jdbc_tables.py", "as_of.py", "ranges.py")
)
MADE = set(re.findall(r"CREATE TABLE hubledger\.(\w+)", " ".join(one.text for one in load_migrations("sqlserver"))))
NEEDED = rights_of_statements(ROW_CLASSES)
OF_OWNERS = re.compile(r"^(migration |permissions|create_schema|rows |query (?:(?:create_schema|record)_migration)$)")
SENT = {name: text for name, text in statements.every_batch().items() if not OF_OWNERS.match(name)}


PERMISSIONS = (SQL / "sqlserver" / "permissions.sql", *sorted(ROOT.glob("examples/*/permissions.sql")))


def all_grants() -> str:
    """Return our grants, and after them those of the rooms."""
    return "\n".join(path.read_text(encoding="utf-8") for path in PERMISSIONS)


def granted(role: str) -> set[Use]:
    return grants_of(all_grants(), role)


def needed_by_jobs() -> set[Use]:
    """Return the uses of the tables that the jobs name, and of those of row classes, which they compare."""
    named = {
        *re.findall(r"""["'](\w+)["']""", JOBS),
        *re.findall(r"\}(event_hub_dead_letter|retracted_row)", JOBS),
    } & MADE
    levels = [level for one in load_aggregates() for level in one.levels]
    staged = {one.staged for one in levels}
    read = named | {row_table(each).name for each in ROW_CLASSES} | {one.name for one in levels} | staged
    appended = {*re.findall(r'\.append\(.*"(\w+)"\)$', JOBS, re.M), *staged}
    return {Use(table, "SELECT") for table in read} | {Use(table, "INSERT") for table in appended}


def described(uses: set[Use], why: Mapping[Use, list[str]]) -> list[str]:
    return sorted(f"{use.verb} on {use.table}: {', '.join(why.get(use, ['no statement']))}" for use in uses)


def test_the_app_is_granted_what_its_statements_need_and_nothing_else() -> None:
    assert described(set(NEEDED) - granted("hubledger_app"), NEEDED) == []
    assert described(granted("hubledger_app") - set(NEEDED), NEEDED) == []


def test_the_jobs_are_granted_what_they_read_and_append_and_nothing_else() -> None:
    needed = needed_by_jobs()
    assert {Use("home_activity_staged", "INSERT"), Use("flight_change", "SELECT")} <= needed
    assert described(granted("hubledger_job") ^ needed, {}) == []


def test_the_list_names_every_statement_that_uses_a_table() -> None:
    listed = {name for names in NEEDED.values() for name in names}
    using = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE|TABLE) hubledger\.")
    queries = {name for name, query in load_queries("sqlserver").items() if using.search(query.text)}
    assert queries - listed == set(OF_THE_OWNER)


ROOMS = ("examples.flight_info", "examples.home_security")


@holds_for(ROOMS)
def test_the_rights_on_the_tables_of_a_room_are_made_from_its_classes_and_are_in_its_file_alone(name: str) -> None:
    row_classes = load_transform(name).row_classes
    text = rights_text(row_classes, load_aggregates(row_classes))
    assert (ROOT / name.replace(".", "/") / "permissions.sql").read_text(encoding="utf-8") == text
    ours = PERMISSIONS[0].read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if line.startswith("GRANT") and line in ours] == []


def test_a_transform_needs_no_right_on_the_tables_of_another_room() -> None:
    flights = {use.table for use in rights_of_statements(load_transform("examples.flight_info").row_classes)}
    assert {"flight_change", "flight_punctuality_staged", "batch_ledger"} <= flights
    assert not {"home", "home_alert", "sensor_reading", "home_activity"} & flights


@holds_for(SENT)
def test_a_batch_needs_no_right_that_the_list_lacks(name: str) -> None:
    assert set(uses_of(SENT[name])) - set(NEEDED) == set()


READS = ("home", "SELECT"), ("home_alert", "SELECT")
FORMS = {
    "SELECT a.x FROM hubledger.home AS a INNER JOIN hubledger.home_alert AS b ON b.x = a.x;": [*READS],
    "SELECT (SELECT COUNT(*) FROM hubledger.home AS d) - (SELECT COUNT(*) FROM hubledger.home_alert AS d);": [*READS],
    "INSERT INTO hubledger.home (a)\nSELECT t.a FROM hubledger.home_alert AS t;": [("home", "INSERT"), READS[1]],
    "INSERT INTO hubledger.home (a) SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM hubledger.home AS h);": [
        ("home", "INSERT"), READS[0],
    ],
    "UPDATE TOP (@most) d\n   SET a = 1 FROM hubledger.home AS d;": [("home", "UPDATE"), READS[0]],
    "UPDATE d SET a = n.b FROM hubledger.home_alert AS n INNER JOIN hubledger.home AS d ON d.a = n.a;": [
        ("home", "UPDATE"), READS[1], READS[0],
    ],
    "DELETE t FROM hubledger.home AS t;": [("home", "DELETE"), READS[0]],
    "SELECT 'INSERT INTO hubledger.home' AS a; -- DELETE FROM hubledger.home;": [],
}  # fmt: skip


@holds_for(FORMS)
def test_the_uses_of_a_form_are_found(text: str) -> None:
    assert [(use.table, use.verb) for use in uses_of(text)] == FORMS[text]


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


@pytest.mark.server
def test_a_member_of_a_role_may_do_what_its_statements_need_and_nothing_else(member: tuple[Session, str]) -> None:
    session, role = member
    schema = shared_schema()
    ask = "SELECT HAS_PERMS_BY_NAME(?, 'OBJECT', ?);"
    asked = {Use(table, verb) for table in {*MADE, "schema_migration"} for verb in RIGHTS}
    may = {use for use in asked if session.run(ask, [f"{schema}.{use.table}", use.verb]) == [[(1,)]]}
    assert may == granted(role)


@pytest.mark.server
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


HOMES = load_transform(DEFAULT_TRANSFORM).row_classes


def sent_by(verb: str) -> str:
    """Return the text that a verb of the store sends, with a row of each class and a letter."""
    partition = commit_of((), first=True, letters=False).partition
    claim = LetterClaim(partition.stream, "claim-1", EPOCH, EPOCH, EPOCH, 5)
    scripts = {
        "commit_batch": batch_script(commit_of(HOMES, first=False, letters=True)),
        "retry": retry_script(retry_of(HOMES)),
        "replay": commit_script(replace(replay_of(HOMES, letters=True), row_classes=HOMES)),
        "slices": portion_script(RUN, STAGED, PORTION),
        "run": close_run_script(RUN, STAGED, EPOCH),
        "claim": claim_script(claim, 1),
    }
    return run_batch(scripts[verb], rehearse=False)[0]


@holds_for(TRANSACTIONS)
def test_a_transaction_is_explained_by_the_text_that_the_store_sends(name: str) -> None:
    lines = explained(name, HOMES).splitlines()
    remarks = [line for line in lines if line.startswith("--")]
    assert len(remarks) > 1
    assert lines == [*remarks, *sent_by(name).splitlines()], name


@holds_for(every_script())
def test_every_read_that_locks_is_among_the_locks_of_a_script_whose_text_needs_no_value(name: str) -> None:
    script, text = every_script()[name], every_run()[name][0]
    hinted = re.findall(r"WITH \((?:[A-Z]+, )*?(REPEATABLEREAD|UPDLOCK)\b", text)
    assert sorted(re.findall(r"\b(REPEATABLEREAD|UPDLOCK)\b", "\n".join(lock_lines(script)))) == sorted(hinted)
    assert name.startswith("rehearsal ") or run_text(script) == text


def test_the_locks_of_a_commit_are_listed_with_their_steps() -> None:
    shown = [" ".join(line.split()) for line in lock_lines(TRANSACTIONS["commit_batch"](HOMES))]
    stream, checkpoint, *_ = shown
    assert stream == "event_stream REPEATABLEREAD advance_checkpoint"
    assert checkpoint == "event_hub_checkpoint UPDATE advance_checkpoint"
    assert "home UPDATE and INSERT set Home" in shown
    assert shown[-2:] == ["event_hub_dead_letter INSERT add_letter", "batch_ledger INSERT record_batch"]


def test_the_command_prints_what_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claim", "commit_batch"]) == 0
    shown = capsys.readouterr().out
    assert shown == f"{explained('claim', HOMES)}\n\n{explained('commit_batch', HOMES)}\n"
    assert main(["commit_batch", "--transform", "examples.flight_info"]) == 0
    assert "INSERT INTO hubledger.flight_change" in capsys.readouterr().out
    assert main(["claim", "--transform", "core.transforms.nobody"]) == 1
    assert re.fullmatch(r"explain: .*core\.transforms\.nobody.*\n", capsys.readouterr().err)
    assert main(["rights"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "event_hub_dead_letter INSERT add_replayed_letters, add_letter" in lines
    assert "sensor_reading DELETE delete SensorReading, delete_subject SensorReading" in lines
    assert not any("flight_change" in line for line in lines)
