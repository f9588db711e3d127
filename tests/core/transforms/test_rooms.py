"""core/transforms/loading.py: a setting names a room, and the row classes lead to the rooms that own their tables."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import InvalidTransform
from core.transforms.loading import find_aggregate, load_aggregates, load_transform, module_of, room_of, rooms_of
from examples.flight_info.transform import FlightChange
from examples.home_security.transform import Home, SensorReading
from tests.fakes.written_modules import ROOM, WrittenModules, broken_room, written_modules


@pytest.fixture
def modules(tmp_path: Path) -> Iterator[WrittenModules]:
    """A folder from which rooms can be imported."""
    with written_modules(tmp_path) as found:
        yield found


def test_a_room_is_named_by_its_package_and_a_single_module_by_itself() -> None:
    assert module_of("examples.home_security") == "examples.home_security.transform"
    assert module_of("examples.home_security.transform") == "examples.home_security.transform"
    assert module_of("tests.fakes.plain_transform") == "tests.fakes.plain_transform"


@pytest.mark.parametrize("name", [".", "apps.", "no.such", "examples", "examples.home_security.transform.Home"])
def test_a_name_without_a_room_is_refused_by_its_import(name: str) -> None:
    with pytest.raises(InvalidTransform, match=rf"TRANSFORM={name}"):
        load_transform(name)


def test_row_classes_lead_to_their_rooms_each_once_in_their_order() -> None:
    rooms = rooms_of((FlightChange, Home, SensorReading))
    assert [room.name for room in rooms] == ["examples.flight_info", "examples.home_security"]
    assert [(room.folder / "transform.py").is_file() for room in rooms] == [True, True]


def test_a_module_below_a_room_belongs_to_it(modules: WrittenModules) -> None:
    modules.write("", "shop_apps.orders.rows.placed")
    (modules.folder / "shop_apps/orders/migrations").mkdir()
    room = room_of("shop_apps.orders.rows.placed")
    assert room is not None
    assert (room.name, room.folder) == ("shop_apps.orders", modules.folder / "shop_apps/orders")
    assert room.aggregate_modules == ()


def test_a_transform_without_a_room_has_no_aggregates(modules: WrittenModules) -> None:
    transform = load_transform(modules.write(ROOM.format(table="placed_alone")))
    assert rooms_of(transform.row_classes) == ()
    assert load_aggregates(transform.row_classes) == ()


def test_a_transform_with_rows_of_a_different_room_has_its_aggregates_too(modules: WrittenModules) -> None:
    text = "from examples.home_security.transform import SensorReading\n" + ROOM.format(table="placed_beside")
    transform = load_transform(modules.write(text))
    assert [one.name for one in load_aggregates(transform.row_classes)] == ["home_activity"]


def test_an_aggregate_is_found_only_in_the_rooms_of_declared_rows() -> None:
    assert find_aggregate("flight_punctuality").source is FlightChange
    with pytest.raises(InvalidTransform, match="no aggregate is named orders_by_hour: declare it in a module of the"):
        find_aggregate("orders_by_hour")


@pytest.mark.parametrize("broken", ["hours", "__init__"])
def test_a_room_whose_aggregates_cannot_be_imported_is_refused_when_its_transform_is_loaded(
    modules: WrittenModules, broken: str
) -> None:
    """Ingest needs the keys of the aggregates: it would find the fault in the middle of its first commit."""
    place = rf"broken_room/aggregates/{broken}\.py:1: NameError: name 'Nobody' is not defined"
    with pytest.raises(InvalidTransform, match=f"^TRANSFORM=broken_room: {place}$"):
        load_transform(broken_room(modules, broken))


def test_the_aggregates_of_a_room_are_imported_once(modules: WrittenModules) -> None:
    modules.write(ROOM.format(table="placed_and_counted"), "counted_room.transform")
    modules.write("import counted_room.transform as room\nroom.VERSION += '+'\n", "counted_room.aggregates.hours")
    assert [load_transform("counted_room").version for _ in range(2)] == ["1+", "1+"]
