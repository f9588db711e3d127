"""The app of a user, in a room."""

from tests.acceptance.upgrade.git import Repository


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
