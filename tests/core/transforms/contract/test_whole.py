"""core/transforms/loading.py: form and aggregates are checked together."""

import pytest

from core.errors import InvalidTransform
from core.model import aggregates as declarations
from core.model.aggregates import ADDED
from core.transforms.contract import LONGEST_COLUMN
from core.transforms.loading import check_transform
from examples.home_security import aggregates
from tests.fakes.written_modules import WrittenModules, broken_room

AGGREGATE = """from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated
from core.model.aggregates import Count, Key, Most, Sum, aggregate_of
from examples.home_security.transform import HomeAlert
@aggregate_of(HomeAlert, "NAME", at="observed_at", window=timedelta(days=1))
@dataclass(frozen=True, slots=True)
class Planted:
"""

ROOM = """from collections.abc import Iterable
from dataclasses import dataclass
from core.model.events import Event
from core.model.rows import References, Row, appended_to
VERSION = "tasks/1"
@appended_to("Task")
@dataclass(frozen=True, slots=True)
class Task:
    number: int
def transform(event: Event, references: References) -> Iterable[Row]:
    return ()
"""


def test_our_own_transforms_have_no_fault() -> None:
    assert check_transform("examples.home_security") == (3, 1)
    assert check_transform("examples.flight_info") == (2, 1)


@pytest.fixture
def planted(modules: WrittenModules, monkeypatch: pytest.MonkeyPatch) -> WrittenModules:
    """The folder of a second package of aggregates, whose declarations are forgotten afterwards."""
    folder = modules.folder / "planted_aggregates"
    folder.mkdir()
    monkeypatch.setattr(aggregates, "__path__", [*aggregates.__path__, str(folder)])
    for table in ("_AGGREGATES", "_ROLLUPS"):
        monkeypatch.setattr(declarations, table, dict(getattr(declarations, table)))
    return WrittenModules(folder)


def test_every_fault_of_an_aggregate_is_reported_with_the_line_of_its_declaration(planted: WrittenModules) -> None:
    fields = (
        "    window_start: datetime\n    most: Annotated[str, Most('ppm')]\n    sum: Annotated[int, Sum('nothing')]\n"
    )
    planted.write(AGGREGATE.replace("NAME", "planted") + fields, "planted")
    with pytest.raises(InvalidTransform) as refused:
        check_transform("examples.home_security")
    assert [fault.rpartition("/")[2] for fault in refused.value.faults] == [
        "planted.py:6: Planted.most: write int | None as its type, because that is the type of ppm",
        "planted.py:6: Planted.sum: the source has no column nothing",
    ]


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("home_alert", "Planted and HomeAlert have one table, home_alert: name the aggregate differently"),
        ("Home_Activity", "HomeActivity and Planted have one table, home_activity: name the aggregate differently"),
        ("task", "Planted and Hubledger have one table, task: name the aggregate differently"),
        ("a b", "Planted: the table name 'a b' has other characters"),
        ("order", "Planted: the table name order is a word of SQL: use a different one"),
        ("user", "Planted: the table name user is a word of SQL: use a different one"),
        ("a" * 113, f"Planted: the table name {'a' * 113}_staged is longer than 119 characters"),
    ],
)
def test_the_table_of_an_aggregate_has_a_name_of_its_own_that_sql_can_hold(
    planted: WrittenModules, name: str, fault: str
) -> None:
    fields = "    home_id: Annotated[str, Key(32)]\n    window_start: datetime\n    alerts: Annotated[int, Count()]\n"
    planted.write(AGGREGATE.replace("NAME", name) + fields, "planted")
    with pytest.raises(InvalidTransform) as refused:
        check_transform("examples.home_security")
    assert fault in refused.value.faults[0]


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        *((name, "the store and the lake add a column of this name to planted") for name in (*ADDED, "Run_Number")),
        ("ALERTS", "a second field differs only in case, and SQL has one column for both"),
        ("Home_id", "a second field differs only in case, and SQL has one column for both"),
        ("a" * (LONGEST_COLUMN + 1), f"the name is longer than {LONGEST_COLUMN} characters"),
        ("hubledger_level", "the names of columns of Hubledger begin with hubledger_"),
    ],
)
def test_a_column_of_an_aggregate_has_a_name_of_its_own_that_sql_can_hold(
    planted: WrittenModules, name: str, fault: str
) -> None:
    fields = "    home_id: Annotated[str, Key(32)]\n    window_start: datetime\n    alerts: Annotated[int, Count()]\n"
    planted.write(
        AGGREGATE.replace("NAME", "planted") + f"{fields}    {name}: Annotated[datetime, Most('observed_at')]\n",
        "planted",
    )
    with pytest.raises(InvalidTransform) as refused:
        check_transform("examples.home_security")
    assert f"Planted.{name}: {fault}" in "\n".join(refused.value.faults)
    assert "planted.py:12: " in "\n".join(refused.value.faults)


def test_a_table_of_hubledger_is_no_table_of_a_room(modules: WrittenModules) -> None:
    modules.write(ROOM, "room_of_tasks")
    with pytest.raises(InvalidTransform) as refused:
        check_transform("room_of_tasks")
    fault = "room_of_tasks.py:8: Task: the table Task belongs to Hubledger: use a different one"
    assert refused.value.faults == (fault,)


def test_a_package_of_aggregates_that_cannot_be_imported_is_reported_with_its_line(
    modules: WrittenModules,
) -> None:
    with pytest.raises(InvalidTransform) as refused:
        check_transform(broken_room(modules, "__init__"))
    assert refused.value.faults == ("broken_room/aggregates/__init__.py:1: NameError: name 'Nobody' is not defined",)
