"""A user takes two releases: their room, its rows and its migrations stand beside ours, at the same numbers too."""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.upgrade.git import GIT, PAGE, Repository, first_release, init_by_azd, join, release, upgrade


def write_room(theirs: Repository, up_to: int = 1) -> None:
    """Write the room `apps.orders` by the command line, and migrations up to a number."""
    theirs.python("-m", "hubledger", "new", "orders", "--field", "number:integer", "--table", "shop_order")
    for number in range(2, up_to + 1):
        add_note(theirs, number)


def add_note(theirs: Repository, number: int) -> None:
    """Write one more migration of the room: a table of its own."""
    for engine, schema in (("sqlite", ""), ("sqlserver", "hubledger.")):
        text = f"-- Note {number} of the shop.\nCREATE TABLE {schema}shop_note_{number} (number bigint NOT NULL);\n"
        theirs.write(f"apps/orders/migrations/{engine}/{number:04}_note_{number}.sql", text)


def add_column(theirs: Repository, number: int) -> None:
    """Give the row class one more field, and have its migration made; the command finds the next number itself."""
    path = theirs.folder / "apps/orders/transform.py"
    text = path.read_text(encoding="utf-8").replace(
        "    number: int\n", "    number: int\n    cents: int | None = None\n", 1
    )
    theirs.write("apps/orders/transform.py", text)
    theirs.python("-m", "hubledger", "migrate-diff", "--transform", "apps.orders", "--name", f"note_{number}")


pytestmark = pytest.mark.skipif(GIT is None, reason="git is missing: apt-get install git")

ROOM, EVENTS = "apps.orders", 5
WITHOUT = ("bench/", "docs/images/", "tests/core/", "tests/local/", "tests/browser/", "tests/spark/")  # for speed


class Shop:
    """The app of a user: a repository and a store."""

    def __init__(self, code: Repository) -> None:
        self.code = code
        self.path = code.folder / ".local-run" / "hubledger.db"
        self.transform, self.ingested = ROOM, 0

    def migrate(self) -> list[str]:
        """Migrate the store and return what the command prints."""
        place = ("--store", f"sqlite:{self.path}", "--transform", self.transform)
        return self.code.python("-m", "core.store.migrate", *place).splitlines()

    def ingest(self) -> str:
        """Ingest some events more, audit the ledger, and return the outcome of the audit."""
        bodies = [json.dumps({"number": self.ingested + at}) for at in range(EVENTS)]
        place = (f"sqlite:{self.path}", self.transform, str(self.ingested))
        self.ingested += EVENTS
        return self.code.python("-m", "tests.acceptance.upgrade.ingesting", *place, *bodies).strip()

    def rows(self) -> list[int]:
        """Return the orders of the store, in the order of their events."""
        return [number for (number,) in self._ask("SELECT number FROM shop_order ORDER BY sequence_number")]

    def recorded(self, number: int) -> list[tuple[str, str]]:
        """Return the apps and names of the migrations with a number."""
        return [*self._ask(f"SELECT app, name FROM schema_migration WHERE version = {number} ORDER BY app")]

    def _ask(self, statement: str) -> Iterator[Any]:
        with closing(sqlite3.connect(self.path)) as connection:
            yield from connection.execute(statement).fetchall()


@pytest.fixture
def ours(tmp_path: Path) -> Repository:
    """Our repository, in which the present checkout is the first release."""
    return first_release(tmp_path / "hubledger", WITHOUT)


def latest(ours: Repository) -> int:
    """Return the number of our newest migration."""
    return max(int(path.name[:4]) for path in (ours.folder / "sql/migrations").glob("*.sql"))


@pytest.mark.soak
def test_two_releases_with_migrations_of_both_sides_at_the_same_numbers(ours: Repository, tmp_path: Path) -> None:
    shop = Shop(init_by_azd(ours, tmp_path / "shop"))
    write_room(shop.code, up_to=latest(ours))
    shop.code.commit("Add our room")
    shop.migrate()
    assert shop.ingest() == "balanced"
    join(shop.code, ours)
    for version, name, extend in (("v0.3.0", "of_v0_3_0", add_note), ("v0.4.0", "of_v0_4_0", add_column)):
        number = release(ours, version)
        extend(shop.code, number)
        shop.code.commit(f"Add a migration of ours at {number}")
        upgrade(shop.code, ours, version)
        assert shop.migrate() == [
            f"applied {number:04} {name}",
            f"applied {ROOM} {number:04} note_{number}",
            "the store is up to date",
        ]
        assert shop.recorded(number) == [(ROOM, f"note_{number}"), ("hubledger", name)]
        assert shop.ingest() == "balanced"
        assert shop.rows() == list(range(shop.ingested))
        assert shop.migrate() == ["the store is up to date"]


@pytest.mark.proof("upgrade")
def test_old_code_runs_on_the_new_schema_and_new_code_refuses_the_old_one(ours: Repository, tmp_path: Path) -> None:
    shop = Shop(init_by_azd(ours, tmp_path / "shop"))
    write_room(shop.code)
    shop.code.commit("Add our room")
    shop.migrate()
    join(shop.code, ours)
    number = release(ours, "v0.3.0")
    upgrade(shop.code, ours, "v0.3.0")
    early = shop.code.try_python("-m", "tests.acceptance.upgrade.ingesting", f"sqlite:{shop.path}", ROOM, "0", "{}")
    assert f"is at schema {number - 1} of {number}" in early.stderr
    shop.migrate()
    shop.code.git("revert --no-edit --mainline 1 HEAD")
    assert shop.ingest() == "balanced"


@pytest.mark.soak
def test_a_room_that_is_renamed_keeps_its_tables_with_the_statement_of_the_page(
    ours: Repository, tmp_path: Path
) -> None:
    shop = Shop(init_by_azd(ours, tmp_path / "shop"))
    write_room(shop.code)
    shop.migrate()
    shop.ingest()
    shop.code.git("add apps")
    shop.code.git("mv apps/orders apps/shop")
    shop.transform = "apps.shop"
    refused = shop.code.try_python(
        "-m", "core.store.migrate", "--store", f"sqlite:{shop.path}", "--transform", "apps.shop"
    )
    assert "shop_order" in refused.stderr
    with closing(sqlite3.connect(shop.path)) as connection, connection:
        (statement,) = re.findall(r"`(UPDATE [^`]+)`", PAGE)
        connection.execute(statement)
    assert shop.migrate() == ["the store is up to date"]
    assert shop.ingest() == "balanced"
