"""When to kill the host or a worker: at moments that a seed decides, spread over the run."""

from random import Random
from typing import NamedTuple

LONGEST_DELAY = 0.4  # seconds: about as long as a few batches take


class Kill(NamedTuple):
    """Due so many seconds after so many events are accounted for; the delay makes it hit a batch half-way."""

    accounted: int
    delay: float


def kill_plan(events: int, kills: int, seed: int) -> list[Kill]:
    """In order, each in its own part of the run, none in the last tenth of it."""
    chance = Random(seed)
    plan = []
    for part in range(kills):
        fraction = 0.9 * (part + 0.1 + 0.9 * chance.random()) / kills
        plan.append(Kill(int(events * fraction), LONGEST_DELAY * chance.random()))
    return plan
