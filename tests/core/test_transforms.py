"""core/transforms: a module is loaded once, or it is said what it lacks."""

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import InvalidTransform
from core.ingest.batch_log import BatchLog
from core.ingest.ingest import Ingestion
from core.model.rows import References
from core.settle.settle import settle
from core.transforms.loading import load_transform
from core.worker.work import CLOCK, Receiver
from tests.fakes.builders import batch, event
from tests.fakes.memory_store import MemoryStore
from tests.fakes.written_modules import WrittenModules, written_modules


@pytest.fixture
def modules(tmp_path: Path) -> Iterator[WrittenModules]:
    """A folder from which modules can be imported."""
    with written_modules(tmp_path) as found:
        yield found


def test_the_business_of_the_product_loads() -> None:
    transform = load_transform("examples.home_security")
    assert transform.version == "home_security/1"
    assert callable(transform.rows_of)
    assert transform.references_of is not None


def test_a_module_without_references_loads(modules: WrittenModules) -> None:
    name = modules.write("VERSION = '1'\ndef transform(event, references): return ()\n")
    assert load_transform(name).references_of is None


INTERRUPTING = """
import signal
VERSION = "1"
def transform(event, references):
    if event.body == b"raise":
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)
    return ()
"""


def test_a_signal_ends_the_main_thread_and_an_interrupt_of_any_other_thread_is_a_letter(
    modules: WrittenModules,
) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a test of a worker's end may have left it ignored
    transform = load_transform(modules.write(INTERRUPTING))
    with pytest.raises(KeyboardInterrupt):
        settle([event(0, b"a person presses Ctrl-C")], References({}), transform)
    store = MemoryStore()
    asyncio.run(
        Receiver(Ingestion(store, transform, CLOCK), BatchLog(9, CLOCK.now)).take(
            batch([event(0, b"raise"), event(1, b"raise")])
        )
    )
    assert [(one.error_type, one.status) for one in store.letters()] == [("builtins.KeyboardInterrupt", "waiting")] * 2


def test_a_module_that_is_not_there_is_named() -> None:
    with pytest.raises(InvalidTransform, match=r"TRANSFORM=no\.such: No module named 'no'"):
        load_transform("no.such")


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
def test_a_module_that_cannot_be_imported_is_refused_with_the_line(
    modules: WrittenModules, text: str, fault: str
) -> None:
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


@pytest.mark.parametrize(
    "text",
    [
        "",
        "VERSION = '1'",
        "def transform(event, references): return ()",
        "VERSION = 1\ndef transform(event, references): return ()",
        "VERSION = '1'\ntransform = 'no function'",
    ],
)
def test_a_module_that_lacks_version_or_transform_is_refused(modules: WrittenModules, text: str) -> None:
    name = modules.write(text)
    with pytest.raises(InvalidTransform, match=rf"TRANSFORM={name}: {name}\.py:[12]: the module needs ") as refused:
        load_transform(name)
    assert ("VERSION" in str(refused.value)) is ("VERSION = '1'" not in text)
    assert ("a function transform" in str(refused.value)) is ("def transform" not in text)


@pytest.mark.parametrize("length", [101, 4_001])
def test_a_version_that_no_column_can_hold_is_refused_before_it_stops_every_partition(
    modules: WrittenModules, length: int
) -> None:
    text = "VERSION = '{}'\ndef transform(event, references): return ()\n"
    with pytest.raises(InvalidTransform, match=r"py:1: VERSION is longer than 100 characters"):
        load_transform(modules.write(text.format("1" * length)))
    assert load_transform(modules.write(text.format("1" * 100))).version == "1" * 100
