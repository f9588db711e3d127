"""`python -m bench.size.worker SHARE`: the worker, to which the hub delivers a share of the events again.

A reader that starts at an older position gets events again, before the next ones. Here the last events of a partition
come again before its next batch, as often as the share needs. Everything else is `core.worker`.
"""

import asyncio
import logging
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from core.app import Sources, prepare_interpreter
from core.measured import Report, record_with
from core.model.events import Event, EventBatch, Partition
from core.remote.hub.reader import SdkHubReader
from core.settings import read_settings
from core.settle.watchdog import Watchdog
from core.store.connect import open_database
from core.transforms.loading import load_transform
from core.worker.__main__ import JsonLines, until_signal
from core.worker.work import Terms, check_and_work
from local.stack.stack import BALANCE_EVERY

AGAIN = 5  # events that come again at once
GRACE, LOST_AFTER = timedelta(seconds=10), timedelta(seconds=60)  # a loaded machine must not move partitions


@dataclass(slots=True)
class Redelivering:
    """Runs the use cases, and delivers a share of the events of batches again. A partition has one batch at a time."""

    share: float
    _due: Counter[Partition] = field(default_factory=Counter)
    _last: dict[Partition, tuple[Event, ...]] = field(default_factory=dict)

    def run(
        self, name: str, use_case: Callable[..., Report], args: tuple[Any, ...], named: Mapping[str, Any]
    ) -> Report:
        """Run a use case. A batch may have the end of the previous one before it."""
        given = [self.again(one) if isinstance(one, EventBatch) else one for one in args]
        return use_case(*given, **named)

    def again(self, batch: EventBatch) -> EventBatch:
        """Return the batch, with earlier events before it when so many are due."""
        partition, earlier = batch.partition, self._last.get(batch.partition, ())
        self._last[partition] = batch.events[-AGAIN:]
        self._due[partition] += len(batch.events)
        if not earlier or self._due[partition] * self.share < len(earlier):
            return batch
        self._due[partition] -= round(len(earlier) / self.share)
        return replace(batch, events=(*earlier, *batch.events))


async def work(share: float) -> None:
    """Work as `core.worker` does, until cancelled."""
    settings = read_settings(os.environ)
    watchdog = Watchdog(settings.transform_deadline)
    transform = load_transform(settings.transform, settings.rows_per_event, watchdog.over)
    database = open_database(settings.store_connection, transform.row_classes)
    if share:
        record_with(Redelivering(share))
    terms = Terms(timedelta(seconds=BALANCE_EVERY), LOST_AFTER, None)
    with closing(watchdog), closing(database), closing(SdkHubReader(settings)) as hub:
        await check_and_work(Sources(settings, database, hub, transform), terms)


def main() -> None:
    """Log as the worker does, and work until a signal."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("hubledger").setLevel(logging.INFO)
    prepare_interpreter()
    asyncio.run(until_signal(work(float(sys.argv[1])), GRACE, lambda: os._exit(1)))


if __name__ == "__main__":
    main()
