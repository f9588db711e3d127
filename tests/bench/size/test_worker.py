"""bench/size/worker.py: a share of the events comes again, in order, before the next ones of its partition."""

from dataclasses import replace

import pytest

from bench.samples import batch
from bench.size.batches import partition
from bench.size.worker import Redelivering


@pytest.mark.parametrize("share", [0.001, 0.01])
def test_the_share_of_the_events_comes_again_before_those_that_follow(share: float) -> None:
    redelivering, again, batches = Redelivering(share), 0, 200
    for number in range(batches):
        given = replace(batch(number), partition=partition(0))
        taken = redelivering.again(given)
        again += len(taken.events) - len(given.events)
        numbers = [event.sequence_number for event in taken.events]
        assert numbers == list(range(numbers[0], given.events[-1].sequence_number + 1))
    assert again / (batches * len(given.events)) == pytest.approx(share, rel=0.1)


def test_a_partition_gets_its_own_events_again() -> None:
    redelivering = Redelivering(1.0)
    for number in range(4):
        given = replace(batch(number // 2), partition=partition(number % 2))
        taken = redelivering.again(given)
        assert (taken.events[0].sequence_number < given.events[0].sequence_number) is (number >= 2)
        assert taken.partition == partition(number % 2)
