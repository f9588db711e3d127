import gc
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.event_hubs import Emulator, HubSettings
from tests.acceptance.event_hubs.clients import join_consumers
from tests.acceptance.started import GROUP, HUB, READERS, MovableClock

# The SDK leaves a socket unclosed when its connection is cut, and each time it opens one that fails.
_SDK_LEAKS = (
    r"ignore:Exception ignored in. <(socket\.socket|function (_SelectorTransport|StreamWriter)\.__del__)"
    ":pytest.PytestUnraisableExceptionWarning"
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.filterwarnings(_SDK_LEAKS))


@pytest.fixture(autouse=True, scope="module")
def _sdk_keeps_to_itself() -> Iterator[None]:
    """Keep the SDK's log quiet, and let its consumers end and its leaks appear in the module that made them."""
    logging.getLogger("azure").setLevel(logging.CRITICAL)
    yield
    join_consumers()
    gc.collect()


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def emulator(clock: MovableClock) -> Iterator[Emulator]:
    with Emulator([HubSettings(HUB, 4, (GROUP, READERS))], clock=clock).running() as running:
        yield running
