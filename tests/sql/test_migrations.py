"""Migrations: what the code before them cannot run on says so in its name, and is refused by that code."""

import re

import pytest

from core.errors import SchemaMismatch
from core.store.queries import BREAKING, Migration, load_migrations, refuse_breaking

TAKES_AWAY = re.compile(
    r"\bDROP\s+(TABLE|COLUMN)\b|\bALTER\s+COLUMN\b|\bRENAME\b|\bsp_rename\b"
    r"|\bALTER\s+TABLE\s+\S+\s+ADD\s+(?!CONSTRAINT)(?:COLUMN\s+)?(?![^;]*\bDEFAULT\b)[^;]*\bNOT\s+NULL\b",
    re.IGNORECASE,
)


def breaks(migration: Migration) -> bool:
    """Whether it takes something away from the code before it, or asks something of it."""
    return TAKES_AWAY.search(re.sub(r"--.*", "", migration.text)) is not None


@pytest.mark.parametrize("engine", ["sqlite", "sqlserver"])
def test_a_migration_that_older_code_cannot_run_on_says_so_in_its_name(engine: str) -> None:
    wrong = [one.name for one in load_migrations(engine) if breaks(one) and not one.name.startswith(BREAKING)]
    assert wrong == []


def test_a_migration_that_breaks_older_code_is_seen_and_no_other() -> None:
    is_breaking = {
        "DROP TABLE home;": True,
        "ALTER TABLE hubledger.home DROP COLUMN armed;": True,
        "ALTER TABLE home RENAME COLUMN armed TO is_armed;": True,
        "ALTER TABLE hubledger.home ALTER COLUMN armed int;": True,
        "ALTER TABLE home ADD COLUMN armed INTEGER NOT NULL;": True,
        "ALTER TABLE hubledger.home ADD armed int NOT NULL;": True,
        "ALTER TABLE home ADD COLUMN armed INTEGER NOT NULL DEFAULT 0;": False,
        "ALTER TABLE home ADD COLUMN armed INTEGER;  -- NOT NULL one day": False,
        "CREATE TABLE home (armed INTEGER NOT NULL); -- DROP TABLE": False,
    }
    assert {text: breaks(Migration(1, "x", text)) for text in is_breaking} == is_breaking


def test_the_first_breaking_migration_beyond_ours_is_named() -> None:
    refuse_breaking("the database", [(10, "more"), (11, "unbreaking_x")], 9)
    with pytest.raises(
        SchemaMismatch, match="migration 0011 breaking_x, but this code knows only migrations up to 0009"
    ):
        refuse_breaking("the database", [(10, "more"), (11, "breaking_x"), (12, "breaking_y")], 9)
