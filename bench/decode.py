"""The worker's decode of a batch: by azure.functions as shipped, and with our fast reading of times."""

from collections.abc import Iterator
from typing import Any

from azure.functions import meta
from azure.functions.eventhub import EventHubTriggerConverter

from bench.figures import Figure, paired
from bench.samples import SIZE, host_batch
from handlers.timestamps import read_times_fast

ROUNDS = 20


def measure() -> Iterator[Figure]:
    """Measure the microseconds per event both ways, and their ratio."""
    converter: Any = meta._BaseConverter
    read_times_fast()
    fast = converter.__dict__["_parse_datetime"]
    shipped = fast.original
    bodies, metadata = host_batch(1)

    def decode(parser: Any) -> object:
        converter._parse_datetime = parser
        return EventHubTriggerConverter.decode(bodies, trigger_metadata=metadata)

    try:
        slow_time, fast_time = paired(lambda _: decode(shipped), lambda _: decode(fast), ROUNDS)
    finally:
        converter._parse_datetime = fast
    slow_each, fast_each = slow_time / SIZE * 1e6, fast_time / SIZE * 1e6
    yield Figure("decode per event as azure.functions ships it", slow_each, "us", "", None)
    yield Figure("decode per event with times read fast", fast_each, "us", "<= 10", fast_each <= 10)
    yield Figure("decode, times faster", slow_each / fast_each, "x", "", None)
