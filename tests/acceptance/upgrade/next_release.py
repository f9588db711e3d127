"""The next release: the present checkout with one migration more, on which the code of today still runs."""

from pathlib import Path

from tests.checkout import copy_checkout

TEXT = """-- The change of release {version}.
CREATE TABLE hubledger.{name} (number bigint NOT NULL);
ALTER TABLE hubledger.batch_ledger ADD {name} bigint;
CREATE INDEX ix_batch_ledger_{name} ON hubledger.batch_ledger (stream_id, committed_at) WITH (ONLINE = ON);
"""  # a table, and a column and an index of a table that each commit writes


def add_migration(folder: Path, version: str) -> int:
    """Write the migration of a release into a checkout, and return its number."""
    migrations = folder / "sql/migrations"
    number = 1 + max(int(path.name[:4]) for path in migrations.glob("*.sql"))
    name = f"of_{version.replace('.', '_')}"
    path = migrations / f"{number:04}_{name}.sql"
    path.write_text(TEXT.format(version=version, name=name), encoding="utf-8", newline="\n")
    return number


def next_release(folder: Path) -> Path:
    """Write the code of the next release into a folder, and return the folder."""
    add_migration(copy_checkout(folder, ("docs/", "tests/")), "v0.3.0")
    return folder
