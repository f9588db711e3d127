"""A user's room with everything that a room may have: `apps/orders` in a folder of the tests."""

from pathlib import Path

ORDERS = "apps.orders"
OURS = Path(__file__).parents[2]
TRANSFORM = '''"""Orders."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from apps.orders.amounts import cents_of
from hubledger import Event, PoisonEvent, ReferenceKey, References, Row, appended_to, state_of

VERSION = "orders/1"


@state_of("customer", key=("customer_id",))
@dataclass(frozen=True, slots=True)
class Customer:
    """A customer."""

    customer_id: str
    name: str


@appended_to("order_line")
@dataclass(frozen=True, slots=True)
class OrderLine:
    """A line of an order."""

    customer_id: str
    cents: int
    at: datetime


def references(event: Event) -> Iterable[ReferenceKey]:
    """Return the customer that the event names."""
    words = event.body.decode().strip('"').split()
    return [ReferenceKey(Customer, (words[1],))] if words[0] == "line" else []


def transform(event: Event, references: References) -> Iterable[Row]:
    """Read `"customer ID NAME"`, or `"line ID AMOUNT"` of a known customer."""
    verb, *words = event.body.decode().strip('"').split()
    if verb == "customer":
        return [Customer(words[0], words[1])]
    if verb == "line":
        return [OrderLine(references.get(Customer, words[0]).customer_id, cents_of(words[1]), event.enqueued_at)]
    if verb == "quiet":
        return []
    raise PoisonEvent("no such verb")
'''
AGGREGATE = '''"""The turnover of each customer by day."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from apps.orders.transform import OrderLine
from hubledger import Count, Key, Sum, aggregate_of


@aggregate_of(OrderLine, "turnover", at="at", window=timedelta(days=1))
@dataclass(frozen=True, slots=True)
class Turnover:
    """The lines of a customer on a day."""

    customer_id: Annotated[str, Key(32)]
    window_start: datetime
    lines: Annotated[int, Count()]
    cents: Annotated[int, Sum("cents")]
'''
SQLITE = """CREATE TABLE customer (
    customer_id TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL,
    stream_id INTEGER NOT NULL, partition_id TEXT NOT NULL, sequence_number INTEGER NOT NULL,
    commit_number INTEGER NOT NULL
);
CREATE TABLE order_line (
    stream_id INTEGER NOT NULL, partition_id TEXT NOT NULL, commit_number INTEGER NOT NULL,
    sequence_number INTEGER NOT NULL, ordinal INTEGER NOT NULL,
    customer_id TEXT NOT NULL, cents INTEGER NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (stream_id, partition_id, sequence_number, ordinal)
);
"""
FILES = {
    "__init__.py": '"""Orders."""\n',
    "transform.py": TRANSFORM,
    "amounts.py": '"""Amounts of money."""\n\n\ndef cents_of(text: str) -> int:\n    """Return cents."""\n'
    "    return round(float(text) * 100)\n",
    "stores.py": '"""The room\'s way to SQL."""\n\nfrom core.store.database import Database\n',
    "shown.py": '"""What pages show."""\n\nfrom apps.orders import stores\n',
    "rates.json": '{"EUR": 1}\n',
    "aggregates/__init__.py": '"""Aggregates."""\n',
    "aggregates/turnover.py": AGGREGATE,
    "migrations/sqlite/0001_orders.sql": SQLITE,
    "migrations/sqlserver/0001_orders.sql": "CREATE TABLE hubledger.customer (customer_id nvarchar(32) NOT NULL);\n",
    "permissions.sql": "GRANT SELECT, INSERT, UPDATE ON hubledger.customer TO hubledger_app;\n",
    "events.jsonl": '"line c-1 2.50"\n"quiet"\n"customer c-1 Ada"\n',
    "tests/__init__.py": "",
    "tests/test_transform.py": "import pytest\n",
}


def write_room(root: Path, name: str = "orders") -> Path:
    room = root / "apps" / name
    for file, text in FILES.items():
        (room / file).parent.mkdir(parents=True, exist_ok=True)
        (room / file).write_text(text.replace(ORDERS, f"apps.{name}"), encoding="utf-8")
    return room
