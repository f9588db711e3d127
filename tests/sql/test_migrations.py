"""Migrations: what the code before them cannot run on says so in its name, and is refused by that code; and on the
server, the app goes on while a grown table gets an index."""

import re

import pytest

from core.store.migrations import BREAKING, Migration
from tests.fakes.rooms import all_migrations
from tests.sql.test_lock_order import ORDER

TAKES_AWAY = re.compile(
    r"\bDROP\s+(TABLE|COLUMN)\b|\bALTER\s+COLUMN\b|\bRENAME\b|\bsp_rename\b"
    r"|\bALTER\s+TABLE\s+\S+\s+ADD\s+(?!CONSTRAINT)(?:COLUMN\s+)?(?![^;]*\bDEFAULT\b)[^;]*\bNOT\s+NULL\b",
    re.IGNORECASE,
)

STEP = re.compile(
    r"CREATE TABLE hubledger\.(?P<made>\w+)|ALTER TABLE hubledger\.(?P<changed>\w+)"
    r"|CREATE (?:UNIQUE )?(?:CLUSTERED )?INDEX (?P<index>\w+)\s+ON hubledger\.(?P<indexed>\w+)(?P<rest>.*?);"
    r"|(?P<rows>\b(?:INSERT INTO|UPDATE|DELETE FROM) hubledger\.\w+)",
    re.DOTALL,
)


def breaks(migration: Migration) -> bool:
    """Return True if the migration removes something that older code uses, or needs something that it does not do."""
    return TAKES_AWAY.search(re.sub(r"--.*", "", migration.text)) is not None


@pytest.mark.parametrize("engine", ["sqlite", "sqlserver"])
def test_a_migration_that_older_code_cannot_run_on_says_so_in_its_name(engine: str) -> None:
    wrong = [one.name for one in all_migrations(engine) if breaks(one) and not one.name.startswith(BREAKING)]
    assert wrong == []


def test_a_migration_that_breaks_older_code_is_seen_and_no_other() -> None:
    is_breaking = {
        "DROP TABLE home;": True,
        "ALTER TABLE hubledger.home ALTER COLUMN armed int;": True,
        "ALTER TABLE home ADD COLUMN armed INTEGER NOT NULL;": True,
        "ALTER TABLE hubledger.home ADD armed int NOT NULL;": True,
        "ALTER TABLE home ADD COLUMN armed INTEGER NOT NULL DEFAULT 0;": False,
        "ALTER TABLE home ADD COLUMN armed INTEGER;  -- NOT NULL one day": False,
        "CREATE TABLE home (armed INTEGER NOT NULL); -- DROP TABLE": False,
    }
    assert {text: breaks(Migration("hubledger", 1, "x", "", text)) for text in is_breaking} == is_breaking


def blocking(migration: Migration) -> list[str]:
    """Return the steps of a server's migration that lock a table of an earlier one for as long as they take.

    A table that the migration itself makes is empty. A changed table is locked until the transaction ends, and then an
    index gains nothing from ONLINE.
    """
    made, changed, found = set[str](), set[str](), list[str]()
    found += [f"{migration.title}: a rebuild of a table of any size" for _ in range(unbounded_rebuilds(migration.text))]
    for step in STEP.finditer(re.sub(r"--.*", "", migration.text)):
        made |= {step["made"]} - {None}
        changed |= {step["changed"]} - made - {None}
        if step["indexed"] and step["indexed"] not in made | changed and "WITH (ONLINE = ON" not in step["rest"]:
            found.append(f"{migration.title}: {step['index']} is not built online")
        if step["rows"] and changed:
            found.append(f"{migration.title}: {step['rows']} runs after {', '.join(changed)} was changed and locked")
    return found


def unbounded_rebuilds(text: str) -> int:
    """Count the rebuilds that are not for tables of up to a million rows; an online one too ends with a lock."""
    bounded = re.findall(
        r"OBJECT_ID\(N'hubledger\.(\w+)'\) AND p\.index_id = 1\) <= 1000000\s+ALTER TABLE hubledger\.\1 REBUILD\b", text
    )
    return len(re.findall(r"\bREBUILD\b", re.sub(r"--.*", "", text))) - len(bounded)


def rebuilt(text: str) -> list[str]:
    """Return the tables that a migration locks one after the other and keeps locked, as a commit does."""
    return re.findall(r"ALTER TABLE hubledger\.(\w+) REBUILD\b", re.sub(r"--.*", "", text))


def crosses(migration: Migration) -> bool:
    """Return True if a migration rebuilds tables in an order that no commit has."""
    tables = rebuilt(migration.text)
    return tables != sorted(tables, key=ORDER.index)


def test_tables_are_rebuilt_in_the_order_in_which_a_commit_locks_them() -> None:
    """In a different order, a commit that is under way and the migration wait for each other: one of them ends."""
    assert [one.title for one in all_migrations("sqlserver") if crosses(one)] == []


def test_a_migration_that_rebuilds_tables_in_a_different_order_is_seen_and_no_other() -> None:
    ledger, letters = (
        f"ALTER TABLE hubledger.{name} REBUILD WITH (DATA_COMPRESSION = PAGE);"
        for name in ("batch_ledger", "event_hub_dead_letter")
    )
    is_crossed = {letters + ledger: False, ledger + letters: True, ledger: False}
    assert {text: crosses(Migration("hubledger", 1, "x", "", text)) for text in is_crossed} == is_crossed


def held_too_long(migration: Migration) -> list[str]:
    """Return the indexes that are built while a table which each commit writes stays locked: an earlier step has built
    an index of it or changed it, and the lock ends with the transaction."""
    made, locked, found = set[str](), set[str](), list[str]()
    for step in STEP.finditer(re.sub(r"--.*", "", migration.text).replace("')", ";")):
        made |= {step["made"]} - {None}
        if step["indexed"] and step["indexed"] not in made and locked:
            found.append(f"{migration.title}: {step['index']} is built while {', '.join(locked)} is locked")
        locked |= {step["indexed"], step["changed"]} & HOT - made
    return found


HOT = {"event_hub_checkpoint", "event_hub_dead_letter", "dead_letter_attempt", "batch_ledger"}


def test_a_table_that_commits_write_is_not_locked_while_a_migration_builds_a_further_index() -> None:
    assert [fault for one in all_migrations("sqlserver") for fault in held_too_long(one)] == []


def test_a_migration_that_holds_a_table_while_it_builds_a_further_index_is_seen_and_no_other() -> None:
    letters, jobs = (
        f"CREATE INDEX a ON hubledger.{name} (a) WITH (ONLINE = ON);" for name in ("event_hub_dead_letter", "task")
    )
    is_held = {
        letters + jobs: True,
        "ALTER TABLE hubledger.batch_ledger ADD a int; EXEC(N'CREATE INDEX a ON hubledger.batch_ledger (a)');": True,
        jobs + letters: False,
        letters + "CREATE TABLE hubledger.parcel (a int); CREATE INDEX b ON hubledger.parcel (a);": False,
        letters + "ALTER TABLE hubledger.batch_ledger ADD a int;": False,
    }
    assert {text: bool(held_too_long(Migration("hubledger", 1, "x", "", text))) for text in is_held} == is_held


def test_no_migration_of_the_server_locks_a_grown_table_for_long() -> None:
    assert [fault for one in all_migrations("sqlserver") for fault in blocking(one)] == []


def test_a_migration_that_locks_a_grown_table_for_long_is_seen_and_no_other() -> None:
    online, column = "WITH (ONLINE = ON)", "ALTER TABLE hubledger.home ADD floors int;"
    small = "IF (SELECT 1 FROM t AS p WHERE p.object_id = OBJECT_ID(N'hubledger.{}') AND p.index_id = 1) <= 1000000"
    is_blocking = {
        "CREATE INDEX a ON hubledger.home (armed);": True,
        f"CREATE INDEX a ON hubledger.home (armed); CREATE INDEX b ON hubledger.home (armed) {online};": True,
        "ALTER INDEX pk_home ON hubledger.home REBUILD WITH (ONLINE = ON);": True,
        f"{small.format('parcel')} ALTER TABLE hubledger.home REBUILD WITH (DATA_COMPRESSION = PAGE);": True,
        f"{small.format('home')} ALTER TABLE hubledger.home REBUILD WITH (DATA_COMPRESSION = PAGE);": False,
        f"{column} INSERT INTO hubledger.parcel (a) SELECT h.armed FROM hubledger.home AS h;": True,
        f"CREATE INDEX a\n    ON hubledger.home (armed) {online};": False,
        "CREATE TABLE hubledger.parcel (a int); CREATE INDEX a ON hubledger.parcel (a);": False,
        f"{column} EXEC(N'CREATE INDEX a ON hubledger.home (armed) WHERE floors IS NOT NULL;');": False,
        f"INSERT INTO hubledger.parcel (a) SELECT h.armed FROM hubledger.home AS h; {column}": False,
    }
    assert {text: bool(blocking(Migration("hubledger", 1, "x", "", text))) for text in is_blocking} == is_blocking
