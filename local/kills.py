"""When to kill the host or a worker: at moments that a seed decides, spread over the run."""

from random import Random
from typing import NamedTuple

LONGEST_DELAY = 0.4  # seconds: about as long as a few batches take


class Kill(NamedTuple):
    """Due so many seconds after so many events are accounted for; the delay makes it hit a batch half-way."""

    accounted: int
    delay: float


def kill_plan(events: int, kills: int, seed: int) -> list[Kill]:
    """In order, each in its own part of the run; of several, the last when only letters are left to be settled."""
    chance = Random(seed)
    running = kills if kills < 2 else kills - 1
    plan = []
    for part in range(running):
        fraction = 0.9 * (part + 0.1 + 0.9 * chance.random()) / running
        plan.append(Kill(int(events * fraction), LONGEST_DELAY * chance.random()))
    if running < kills:
        plan.append(Kill(events, LONGEST_DELAY * chance.random()))
    return plan
