import asyncio
import signal

import pytest

from core.errors import InvalidTransform
from core.ingest.batch_log import BatchLog
from core.ingest.ingest import Ingestion
from core.model.rows import References
from core.settle.settle import settle
from core.transforms.loading import find_aggregate, load_aggregates, load_transform, module_of, room_of, rooms_of
from core.worker.work import CLOCK, Receiver
from examples.flight_info.transform import FlightChange
from examples.home_security.transform import Home, SensorReading
from tests.fakes.builders import batch, event
from tests.fakes.store import MemoryStore
from tests.fakes.written_modules import ROOM, WrittenModules, broken_room

PLAIN = "VERSION = '{}'\ndef transform(event, references): return ()\n"
INTERRUPTING = """
import signal
VERSION = "1"
def transform(event, references):
    if event.body == b"raise":
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)
    return ()
"""


def test_a_signal_ends_the_main_thread_and_an_interrupt_of_any_other_is_a_letter(modules: WrittenModules) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a test of a worker's end may have left it ignored
    transform = load_transform(modules.write(INTERRUPTING))
    with pytest.raises(KeyboardInterrupt):
        settle([event(0, b"a person presses Ctrl-C")], References({}), transform)
    store = MemoryStore()
    receiver = Receiver(Ingestion(store, transform, CLOCK), BatchLog(9, CLOCK.now))
    asyncio.run(receiver.take(batch([event(0, b"raise"), event(1, b"raise")])))
    assert [(one.error_type, one.status) for one in store.letters()] == [("builtins.KeyboardInterrupt", "waiting")] * 2


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("import no_such_library", "2: No module named 'no_such_library'"),
        ("from core.errors import Nobody", "2: cannot import name 'Nobody' from 'core.errors'"),
        ("def f(): 1 / 0\nf()", "3: ZeroDivisionError: division by zero"),
        ("Nobody", "2: NameError: name 'Nobody' is not defined"),
        ("def f(:", "2: invalid syntax"),
        ("raise SystemExit(3)", "2: SystemExit: 3"),
    ],
)
def test_a_module_that_is_not_imported_is_refused_with_the_line(modules: WrittenModules, text: str, fault: str) -> None:
    name = modules.write(f"VERSION = '1'\n{text}\n")
    with pytest.raises(InvalidTransform, match=rf"TRANSFORM={name}: .*{name}\.py:{fault}"):
        load_transform(name)


def test_a_different_package_that_cannot_be_imported_is_refused_with_the_line_that_imports_it(
    modules: WrittenModules,
) -> None:
    modules.write("\n\n\nimport no_such_library\n", "their_library.deeper")
    name = modules.write("VERSION = '1'\nimport their_library.deeper\n", "own_app.importing")
    with pytest.raises(InvalidTransform, match=r": own_app/importing\.py:2: No module named 'no_such_library'$"):
        load_transform(name)


@pytest.mark.parametrize("length", [101, 4_001])
def test_a_version_that_no_column_can_hold_is_refused_before_it_stops_all(modules: WrittenModules, length: int) -> None:
    with pytest.raises(InvalidTransform, match=r"py:1: VERSION is longer than 100 characters"):
        load_transform(modules.write(PLAIN.format("1" * length)))
    loaded = load_transform(modules.write(PLAIN.format("1" * 100)))
    assert (loaded.version, loaded.references_of) == ("1" * 100, None)


def test_a_room_is_named_by_its_package_and_a_single_module_by_itself() -> None:
    for name in ("examples.home_security", "examples.home_security.transform"):
        assert module_of(name) == "examples.home_security.transform"
    assert module_of("tests.fakes.plain_transform") == "tests.fakes.plain_transform"
    for name in (".", "apps.", "no.such", "examples", "examples.home_security.transform.Home"):
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


def test_a_transform_has_the_aggregates_of_the_rooms_of_all_its_rows(modules: WrittenModules) -> None:
    alone = load_transform(modules.write(ROOM.format(table="placed_alone")))
    assert (rooms_of(alone.row_classes), load_aggregates(alone.row_classes)) == ((), ())
    text = "from examples.home_security.transform import SensorReading\n" + ROOM.format(table="placed_beside")
    beside = load_transform(modules.write(text))
    assert [one.name for one in load_aggregates(beside.row_classes)] == ["home_activity"]
    assert find_aggregate("flight_punctuality").source is FlightChange
    with pytest.raises(InvalidTransform, match="no aggregate is named orders_by_hour: declare it in a module of the"):
        find_aggregate("orders_by_hour")


@pytest.mark.parametrize("broken", ["hours", "__init__"])
def test_a_room_whose_aggregates_cannot_be_imported_is_refused(modules: WrittenModules, broken: str) -> None:
    """Ingest needs the keys of the aggregates: it would find the fault in the middle of its first commit."""
    place = rf"broken_room/aggregates/{broken}\.py:1: NameError: name 'Nobody' is not defined"
    with pytest.raises(InvalidTransform, match=f"^TRANSFORM=broken_room: {place}$"):
        load_transform(broken_room(modules, broken))


def test_the_aggregates_of_a_room_are_imported_once(modules: WrittenModules) -> None:
    modules.write(ROOM.format(table="placed_and_counted"), "counted_room.transform")
    modules.write("import counted_room.transform as room\nroom.VERSION += '+'\n", "counted_room.aggregates.hours")
    assert [load_transform("counted_room").version for _ in range(2)] == ["1+", "1+"]
