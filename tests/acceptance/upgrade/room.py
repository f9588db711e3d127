"""The app of a user: in a room, or in our folders as before there were rooms."""

from tests.acceptance.upgrade.git import Repository

TRANSFORM = '''"""Orders of a shop."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from core.model.events import Event
from core.model.rows import References, Row, appended_to

VERSION = "orders/1"


@appended_to("shop_order")
@dataclass(frozen=True, slots=True)
class ShopOrder:
    """An order."""

    number: int


def transform(event: Event, references: References) -> Iterable[Row]:
    """Return the order."""
    return (ShopOrder(json.loads(event.body)["number"]),)
'''
SQLITE = """-- The orders of a shop.

CREATE TABLE shop_order (
    stream_id INTEGER NOT NULL, partition_id TEXT NOT NULL, sequence_number INTEGER NOT NULL, ordinal INTEGER NOT NULL,
    commit_number INTEGER NOT NULL, number INTEGER NOT NULL,
    PRIMARY KEY (stream_id, partition_id, sequence_number, ordinal)
) STRICT, WITHOUT ROWID;
"""
SQL_SERVER = """-- The orders of a shop.

CREATE TABLE hubledger.shop_order (
    stream_id int NOT NULL, partition_id varchar(40) NOT NULL, sequence_number bigint NOT NULL, ordinal int NOT NULL,
    commit_number bigint NOT NULL, number bigint NOT NULL,
    CONSTRAINT pk_shop_order PRIMARY KEY (stream_id, partition_id, sequence_number, ordinal)
);
"""


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


def write_old_form(theirs: Repository, number: int) -> None:
    """Write the same in our folders, as users did before there were rooms."""
    theirs.write("core/transforms/orders.py", TRANSFORM)
    for engine, text in (("sqlite", SQLITE), ("sqlserver", SQL_SERVER)):
        theirs.write(f"sql/{engine}/migrations/{number:04}_orders.sql", text)
