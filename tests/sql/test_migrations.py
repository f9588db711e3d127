"""Migrations on which earlier code cannot run say so in their names, and that code refuses them.

On the server, the app goes on while a large table gets an index.

No batch binds what it makes. SQL Server compiles a batch as a whole before it runs any of it. A statement over a table
that does not exist yet waits (deferred name resolution), but a column that a table does not have yet is error 207, and
a type that does not exist is error 2715. Microsoft's rules for batches: "A table cannot be changed and then the new
columns referenced in the same batch", and the statement that creates a view, a function, a procedure, a trigger or a
schema begins its batch ("Batches", learn.microsoft.com, ms175502). The text of an EXEC is a separate batch, which is
compiled when its turn comes.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.store.migrations import BREAKING, Migration
from tests.fakes.rooms import all_migrations
from tests.offenders import holds_for
from tests.sql.collations import statements_of
from tests.sql.statements import every_batch

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
HOT = {"event_hub_checkpoint", "event_hub_dead_letter", "dead_letter_attempt", "batch_ledger"}


def planted(text: str) -> Migration:
    return Migration("hubledger", 1, "x", "", text)


def breaks(migration: Migration) -> bool:
    """Return True if the migration removes something that older code uses, or needs something that it does not do."""
    return TAKES_AWAY.search(re.sub(r"--.*", "", migration.text)) is not None


def blocking(migration: Migration) -> list[str]:
    """Return the steps of a server's migration that lock a table of an earlier one for as long as they take.

    A table that the migration itself makes is empty. A changed table is locked until the transaction ends, and then an
    index gains nothing from ONLINE.
    """
    made, changed = set[str](), set[str]()
    found = [f"{migration.title}: a rebuild ends with a lock" for _ in re.findall(r"\bREBUILD\b", migration.text)]
    for step in STEP.finditer(re.sub(r"--.*", "", migration.text)):
        made |= {step["made"]} - {None}
        changed |= {step["changed"]} - made - {None}
        if step["indexed"] and step["indexed"] not in made | changed and "WITH (ONLINE = ON" not in step["rest"]:
            found.append(f"{migration.title}: {step['index']} is not built online")
        if step["rows"] and changed:
            found.append(f"{migration.title}: {step['rows']} runs after {', '.join(changed)} was changed and locked")
    return found


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


@pytest.mark.parametrize("engine", ["sqlite", "sqlserver"])
def test_a_migration_that_older_code_cannot_run_on_says_so_in_its_name(engine: str) -> None:
    wrong = [one.name for one in all_migrations(engine) if breaks(one) and not one.name.startswith(BREAKING)]
    assert wrong == []


@pytest.mark.parametrize("fault", [blocking, held_too_long])
def test_no_migration_of_the_server_locks_a_grown_table_for_long(fault: Callable[[Migration], Any]) -> None:
    assert {one.title: found for one in all_migrations("sqlserver") if (found := fault(one))} == {}


ONLINE, COLUMN = "WITH (ONLINE = ON)", "ALTER TABLE hubledger.home ADD floors int;"
OF_LETTERS, OF_TASKS = (
    f"CREATE INDEX a ON hubledger.{name} (a) {ONLINE};" for name in ("event_hub_dead_letter", "task")
)
NOTED = "ALTER TABLE hubledger.batch_ledger ADD a int;"
PLANTED: dict[Callable[[Migration], Any], dict[str, bool]] = {
    breaks: {
        "ALTER TABLE hubledger.home ALTER COLUMN armed int;": True,
        "ALTER TABLE home ADD COLUMN armed INTEGER NOT NULL;": True,
        "ALTER TABLE home ADD COLUMN armed INTEGER NOT NULL DEFAULT 0;": False,
        "ALTER TABLE home ADD COLUMN armed INTEGER;  -- NOT NULL one day": False,
        "CREATE TABLE home (armed INTEGER NOT NULL); -- DROP TABLE": False,
    },
    held_too_long: {
        OF_LETTERS + OF_TASKS: True,
        f"{NOTED} EXEC(N'CREATE INDEX a ON hubledger.batch_ledger (a)');": True,
        OF_TASKS + OF_LETTERS: False,
        OF_LETTERS + "CREATE TABLE hubledger.parcel (a int); CREATE INDEX b ON hubledger.parcel (a);": False,
        OF_LETTERS + NOTED: False,
    },
    blocking: {
        f"CREATE INDEX a ON hubledger.home (armed); CREATE INDEX b ON hubledger.home (armed) {ONLINE};": True,
        "ALTER INDEX pk_home ON hubledger.home REBUILD WITH (ONLINE = ON);": True,
        "ALTER TABLE hubledger.home REBUILD WITH (DATA_COMPRESSION = PAGE);": True,
        f"{COLUMN} INSERT INTO hubledger.parcel (a) SELECT h.armed FROM hubledger.home AS h;": True,
        "CREATE TABLE hubledger.parcel (a int); CREATE INDEX a ON hubledger.parcel (a);": False,
        f"{COLUMN} EXEC(N'CREATE INDEX a ON hubledger.home (armed) WHERE floors IS NOT NULL;');": False,
        f"INSERT INTO hubledger.parcel (a) SELECT h.armed FROM hubledger.home AS h; {COLUMN}": False,
    },
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_migration_with_a_fault_is_seen_and_no_other(fault: Callable[[Migration], Any]) -> None:
    assert {text: bool(fault(planted(text))) for text in PLANTED[fault]} == PLANTED[fault]


ALONE = re.compile(r"\s*CREATE\s+(OR\s+ALTER\s+)?(VIEW|FUNCTION|PROC|PROCEDURE|TRIGGER|SCHEMA)\b", re.I)
ADDS = re.compile(r"\bALTER\s+TABLE\s+\S*?\[?(\w+)\]?\s+ADD\s+(.*)", re.I | re.S)
RENAMES = re.compile(r"\bsp_rename\s+N?'(?:\w+\.)*?(\w+)\.\w+',\s*N?'(\w+)'", re.I)
RUN = re.compile(r"\bEXEC(?:UTE)?\s*\(\s*N?'((?:[^']|'')*)'", re.I)


def made_by(statement: str) -> Iterator[tuple[str, str]]:
    """Yield the table and the name of each column, and the name of each type, that a statement or its EXEC makes."""
    for table, columns in ADDS.findall(re.sub(r"'[^']*'|\([^()]*\)", "", statement)):
        names = [one.split()[0].strip("[]").lower() for one in columns.split(",")]
        yield from ((table.lower(), name) for name in names if name != "constraint")
    yield from RENAMES.findall(statement)
    yield from (("", name.lower()) for name in re.findall(r"CREATE\s+TYPE\s+(?:\w+\.)?(\w+)", statement, re.I))
    for text in RUN.findall(statement):
        yield from made_by(text.replace("''", "'"))


def early(batch: str) -> list[str]:
    """Return the statements of a batch that SQL Server would bind too early, each with the name."""
    statements, found = statements_of(batch), []
    for one in statements:
        names = {word.lower() for word in re.findall(r"\w+", re.sub(r"'(?:[^']|'')*'", "", one))}
        makes = {made for other in statements if other is not one for made in made_by(other)}
        found += [f"{one}: {name}" for table, name in makes if name in names and (not table or table in names)]
        for text in RUN.findall(one):
            found += early(text.replace("''", "'"))
    return found + [f"{one}: begins no batch" for one in statements[1:] if ALONE.match(one)]


USER = Path(__file__).parents[2] / "infra" / "hooks" / "database_user.sql"
ADD = "ALTER TABLE hubledger.home ADD floors int;"
EARLY = {
    "the filter of an index": f"{ADD} CREATE INDEX ix ON hubledger.home (home_id) WHERE floors IS NOT NULL;",
    "a read for an insert": f"{ADD} INSERT INTO hubledger.parcel (a) SELECT h.floors FROM hubledger.home AS h;",
    "a name in brackets and capitals": f"{ADD} UPDATE [hubledger].[Home] SET [Floors] = 1;",
    "the second of two columns": "ALTER TABLE hubledger.home ADD a int, b int; UPDATE hubledger.home SET b = 1;",
    "a column that a text adds": f"EXEC(N'{ADD}'); UPDATE hubledger.home SET floors = 1;",
    "a text that does both": f"EXEC(N'{ADD} UPDATE hubledger.home SET floors = 1;');",
    "a new name": "EXEC sp_rename N'hubledger.home.a', N'b', N'COLUMN'; UPDATE hubledger.home SET b = 1;",
    "a type": "CREATE TYPE hubledger.ids AS TABLE (id int); DECLARE @ids hubledger.ids;",
    "a view after a different statement": "SET NOCOUNT ON; CREATE VIEW hubledger.v AS SELECT 1 AS a;",
}
IN_TIME = {
    "a table and all over it": (
        "CREATE TABLE hubledger.parcel (a int NOT NULL, b int); CREATE INDEX ix ON hubledger.parcel (a) WHERE b > 1;"
        " INSERT INTO hubledger.parcel (a, b) VALUES (1, 2);"
        " ALTER TABLE hubledger.parcel ADD CONSTRAINT ck CHECK (b > 1);"
    ),
    "a text of its own": f"{ADD} EXEC(N'CREATE INDEX ix ON hubledger.home (home_id) WHERE floors IS NOT NULL;');",
    "a text with quotes": f"{ADD} EXEC(N'CREATE INDEX ix ON hubledger.home (home_id) WHERE time_zone = N''floors'';');",
    "a word in quotes": f"{ADD} UPDATE hubledger.home SET time_zone = N'floors';",
    "a remark": f"{ADD} UPDATE hubledger.home SET armed = 1; -- floors of hubledger.home",
}


@holds_for([*EARLY, *IN_TIME])
def test_a_planted_statement_that_binds_too_early_is_seen_and_no_other(case: str) -> None:
    assert len(early(EARLY[case] if case in EARLY else IN_TIME[case])) == (case in EARLY)


def test_no_batch_binds_what_it_makes() -> None:
    batches = {**every_batch(), USER.name: USER.read_text(encoding="utf-8")}
    assert {name: found for name, text in batches.items() if (found := early(text))} == {}
