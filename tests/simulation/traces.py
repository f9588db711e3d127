"""The trace of a world: each statement that reached its database, with its values, and all that was drawn and answered.

`python -m tests.simulation.traces FIRST LAST` prints the traces of the worlds of these seeds, one a line.
"""

import sys
from collections.abc import Callable, Iterator
from hashlib import sha256

from tests.fakes.memory_store import MemoryStore
from tests.simulation.order_world import OrderWorld
from tests.simulation.replay_world import ReplayWorld
from tests.simulation.test_incarnations import World as RecreatedWorld
from tests.simulation.watch import WatchedStore
from tests.simulation.world import World

AnyWorld = World | OrderWorld | ReplayWorld | RecreatedWorld


def _world(seed: int) -> tuple[MemoryStore, AnyWorld]:
    engine = WatchedStore()
    return engine, World(seed, engine, engine.open())


def _order_world(seed: int) -> tuple[MemoryStore, AnyWorld]:
    engine = WatchedStore()
    return engine, OrderWorld(seed, engine)


def _replay_world(seed: int) -> tuple[MemoryStore, AnyWorld]:
    engine = WatchedStore()
    return engine, ReplayWorld(seed, engine.open())


def _recreated_world(seed: int) -> tuple[MemoryStore, AnyWorld]:
    world = RecreatedWorld(seed)
    return world.base, world


WORLDS: dict[str, Callable[[int], tuple[MemoryStore, AnyWorld]]] = {
    "world": _world,
    "order": _order_world,
    "replay": _replay_world,
    "recreated": _recreated_world,
}


def trace(kind: str, seed: int) -> str:
    """Run a world; return the digest of its trace."""
    engine, world = WORLDS[kind](seed)
    digest = sha256()
    engine.note_statements(lambda statement: digest.update(statement.encode("utf-8", "surrogatepass")))
    world.run()
    counts = world.counts if isinstance(world, World) else None
    digest.update(repr((world.chance.getstate(), world.clock.seconds, world.hub.asked, counts)).encode())
    return digest.hexdigest()


def traces(first: int, last: int) -> Iterator[str]:
    """Yield a line for each world of each kind."""
    for kind in WORLDS:
        for seed in range(first, last + 1):
            yield f"{kind} {seed} {trace(kind, seed)}"


if __name__ == "__main__":
    print("\n".join(traces(int(sys.argv[1]), int(sys.argv[2]))))
