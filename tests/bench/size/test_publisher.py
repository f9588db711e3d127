"""bench/size/publisher.py: the gate lets no partition be further ahead than its window."""

from collections import Counter
from itertools import islice

from bench.size.publisher import Gate, Order
from local.feed.feeding import Gateways
from local.feed.homes import home_minutes

WINDOW = 150
ORDER = Order("", 20_000, 2_000, 1, 0.002, "", "", "")


class Reader:
    """A store whose reader accounts for events of the partition that is most behind, whenever the gate waits."""

    def __init__(self) -> None:
        self.sent, self.accounted, self.waits = Counter[str](), Counter[str](), 0

    def look(self) -> dict[str, int]:
        return dict(self.accounted)

    def wait(self, seconds: float) -> None:
        self.waits += 1
        for partition in self.sent:
            self.accounted[partition] = min(self.sent[partition], self.accounted[partition] + 40)


def test_no_partition_is_further_ahead_than_its_window() -> None:
    reader = Reader()
    gate = Gate(Gateways(map(str, range(4)), 3600.0), reader.look, WINDOW, reader.wait)
    furthest = 0
    for minute in islice(home_minutes(ORDER.script()), 3_000):
        for send in gate.add(minute):
            reader.sent[str(send.partition_id)] += send.events
        furthest = max(furthest, *(reader.sent[one] - reader.accounted[one] for one in map(str, range(4))))
    assert reader.waits > 0
    assert 0 < furthest <= WINDOW
