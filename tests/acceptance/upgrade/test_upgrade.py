import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.upgrade.git import GIT, PAGE, Repository, first_release, init_by_azd, join, release, upgrade

pytestmark = pytest.mark.skipif(GIT is None, reason="git is missing: apt-get install git")

EVENTS = 5
WITHOUT = ("bench/", "docs/images/", "tests/core/", "tests/local/", "tests/browser/", "tests/spark/")  # for speed
INGESTING = "tests.acceptance.upgrade.ingesting"


class Shop:
    """The app of a user with the room `apps.orders`: a repository and a store."""

    def __init__(self, code: Repository) -> None:
        self.code, self.path = code, code.folder / ".local-run" / "hubledger.db"
        self.transform, self.ingested = "apps.orders", 0
        code.python("-m", "hubledger", "new", "orders", "--field", "number:integer", "--table", "shop_order")

    @property
    def place(self) -> tuple[str, ...]:
        return ("--store", f"sqlite:{self.path}", "--transform", self.transform)

    def migrate(self) -> list[str]:
        return self.code.python("-m", "core.store.migrate", *self.place).splitlines()

    def ingest(self) -> None:
        bodies = [json.dumps({"number": self.ingested + at}) for at in range(EVENTS)]
        place = (f"sqlite:{self.path}", self.transform, str(self.ingested))
        self.ingested += EVENTS
        assert self.code.python("-m", INGESTING, *place, *bodies).strip() == "balanced"
        rows = self.ask("SELECT number FROM shop_order ORDER BY sequence_number")
        assert rows == [(number,) for number in range(self.ingested)]

    def ask(self, statement: str) -> list[Any]:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            return connection.execute(statement).fetchall()

    def add_note(self, number: int) -> None:
        for engine, schema in (("sqlite", ""), ("sqlserver", "hubledger.")):
            text = f"-- Note {number} of the shop.\nCREATE TABLE {schema}shop_note_{number} (number bigint NOT NULL);\n"
            self.code.write(f"apps/orders/migrations/{engine}/{number:04}_note_{number}.sql", text)

    def add_column(self, number: int) -> None:
        """Give the row class one more field, and have its migration made: the command finds the next number itself."""
        text = (self.code.folder / "apps/orders/transform.py").read_text(encoding="utf-8")
        added = text.replace("    number: int\n", "    number: int\n    cents: int | None = None\n", 1)
        self.code.write("apps/orders/transform.py", added)
        self.code.python("-m", "hubledger", "migrate-diff", "--transform", "apps.orders", "--name", f"note_{number}")


@pytest.fixture
def ours(tmp_path: Path) -> Repository:
    return first_release(tmp_path / "hubledger", WITHOUT)


@pytest.mark.soak
def test_two_releases_with_migrations_of_both_sides_at_the_same_numbers_and_then_a_room_that_is_renamed(
    ours: Repository, tmp_path: Path
) -> None:
    shop = Shop(init_by_azd(ours, tmp_path / "shop"))
    latest = max(int(path.name[:4]) for path in (ours.folder / "sql/migrations").glob("*.sql"))
    for number in range(2, latest + 1):
        shop.add_note(number)
    shop.code.commit("Add our room")
    shop.migrate()
    shop.ingest()
    join(shop.code, ours)
    for version, name, extend in (("v0.3.0", "of_v0_3_0", shop.add_note), ("v0.4.0", "of_v0_4_0", shop.add_column)):
        number = release(ours, version)
        extend(number)
        shop.code.commit(f"Add a migration of ours at {number}")
        upgrade(shop.code, ours, version)
        applied = [f"applied {number:04} {name}", f"applied apps.orders {number:04} note_{number}"]
        assert shop.migrate() == [*applied, "the store is up to date"]
        recorded = shop.ask(f"SELECT app, name FROM schema_migration WHERE version = {number} ORDER BY app")
        assert recorded == [("apps.orders", f"note_{number}"), ("hubledger", name)]
        shop.ingest()
        assert shop.migrate() == ["the store is up to date"]
    shop.code.git("mv apps/orders apps/shop")
    shop.transform = "apps.shop"
    assert "shop_order" in shop.code.try_python("-m", "core.store.migrate", *shop.place).stderr
    (statement,) = re.findall(r"`(UPDATE [^`]+)`", PAGE)
    shop.ask(statement)
    assert shop.migrate() == ["the store is up to date"]
    shop.ingest()


@pytest.mark.proof("upgrade")
def test_old_code_runs_on_the_new_schema_and_new_code_refuses_the_old_one(ours: Repository, tmp_path: Path) -> None:
    shop = Shop(init_by_azd(ours, tmp_path / "shop"))
    shop.code.commit("Add our room")
    shop.migrate()
    join(shop.code, ours)
    number = release(ours, "v0.3.0")
    upgrade(shop.code, ours, "v0.3.0")
    early = shop.code.try_python("-m", INGESTING, f"sqlite:{shop.path}", shop.transform, "0", "{}")
    assert f"is at schema {number - 1} of {number}" in early.stderr
    shop.migrate()
    shop.code.git("revert --no-edit --mainline 1 HEAD")
    shop.ingest()
