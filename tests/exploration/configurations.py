"""The configurations that are explored: a prepared world, the processes in it, and the number of faults."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from core.errors import InfrastructureFault, RequestRefused, TaskOverlap, TooManyTasks
from core.incarnations.next_incarnation import HubFits, StateDiffers
from core.model.events import Event
from core.store.database import StreamClosed
from core.tasks.statuses import TaskMove
from tests.exploration.explorer import Actor, Outside, Process
from tests.exploration.world import (
    DAY,
    FEW_TRIES,
    LEASE,
    LOG,
    NEXT_LOG,
    AggregatedWorld,
    Hands,
    OneEndWorld,
    PurgedWorld,
    World,
)
from tests.fakes.erasing import events_of

OTHER = "other"  # a second consumer group of the hub
FORGOTTEN = "one-1"  # the home that is erased
OF_STATES = tuple(events_of("home one-1 1", "bug one-1", *("look one-1", "home one-1 0") * 2))
# The deployed version writes no row of event 3, so a replay opens its letter.
OF_ORDER = tuple(events_of("home one-1 1", "bug one-1", "quiet", "reading one-3", "double one-3", "look one-1"))
KNOWN = (HubFits, RequestRefused, StateDiffers, StreamClosed, TaskOverlap, TooManyTasks)  # told to the person who asked


class Configuration(NamedTuple):
    """`prepare` makes the world. `acts` are the processes, by name. A schedule has at most so many `faults`. `make
    test` searches with `quick` faults, and leaves the configuration out where `quick` is None."""

    prepare: Callable[[], World]
    acts: Mapping[str, Callable[[Hands], object]]
    faults: int
    quick: int | None = None

    def actors(self, world: World) -> dict[str, Actor]:
        return {name: _actor(world, name, act) for name, act in self.acts.items()}


def _actor(world: World, name: str, act: Callable[[Hands], object]) -> Actor:
    def work(process: Process) -> str:
        try:
            act(Hands(world, process, name))
        except KNOWN as refused:
            return f"refused: {type(refused).__name__}"
        return ""

    return work


def owner(first: int, last: int, tries: int = 2, log: Sequence[Event] = LOG) -> Callable[[Hands], object]:
    """An owner of the partition with a batch of these numbers. The host delivers a failed batch again."""

    def act(hands: Hands) -> None:
        for retries in range(tries):
            try:
                hands.deliver(log[first : last + 1], retries)
                break
            except InfrastructureFault:
                if retries == tries - 1:
                    raise

    return act


def remembering_owner(hands: Hands) -> None:
    """An owner that gets one batch after the other: it remembers the partition from the first."""
    owner(2, 3)(hands)
    owner(4, 5)(hands)


def owner_of_states(hands: Hands) -> None:
    """An owner with three batches: it remembers a state from the first, the second sets it, the third reads it."""
    for first, last in ((2, 2), (3, 3), (4, 5)):
        owner(first, last, log=OF_STATES)(hands)


def next_owner(hands: Hands) -> None:
    """An owner that has the first events of the hub's next life in hand."""
    hands.deliver(NEXT_LOG[:2])


def discarder(hands: Hands) -> None:
    """A person discards the letters of events 1 and 3."""
    hands.discard(1, 3)


def owner_of_other(hands: Hands) -> None:
    """An owner of the same partition in a different stream: that of a second consumer group."""
    hands.deliver(LOG[:3], group=OTHER)


def driver(hands: Hands) -> None:
    hands.work(hands.replays)


def replayer(hands: Hands) -> None:
    """Ask for a replay of all that is committed, and drive it."""
    hands.ask_replay()
    hands.work(hands.replays)


def eraser(hands: Hands) -> None:
    """Ask for the erasure of a home, and drive it."""
    hands.ask_erasure(FORGOTTEN)
    hands.work(hands.erasures)


def purger(hands: Hands) -> None:
    hands.work(hands.purges)


def canceller(hands: Hands) -> None:
    """Cancel the open purge."""
    ((task_id, _, _),) = hands.purges.tasks.read_open(hands.stream_id) or ((None, "", ""),)
    if task_id is not None:
        hands.purges.tasks.move(TaskMove(task_id, "cancel", "ann", "stop", hands.clock.now()))


def auditor(hands: Hands) -> None:
    """Ask for an audit of all, and drive it."""
    hands.ask_audit()
    hands.work(hands.audits)


def ticker(hands: Hands) -> None:
    """The timer, which comes again after a fault: a run is planned and submitted, and its result is committed."""
    for _ in range(4):
        with suppress(InfrastructureFault):
            hands.tick()


def recreation(hands: Hands) -> None:
    """The hub is recreated: its events are gone, and it has a few new ones."""
    hands.process.change_outside("the hub is recreated", Outside(2 * LEASE, life=1))


def time(hands: Hands) -> None:
    """Let so much time pass that every lease has ended."""
    hands.process.change_outside("every lease ends", Outside(hands.process.clock.seconds + LEASE))


def world_of(
    committed: int = 2,
    log: Sequence[Event] = LOG[:6],
    *,
    replay: bool = False,
    lives: int = 1,
    by_key: bool = False,
    erases: bool = False,
) -> World:
    """Return a world in which the first `committed` events of a log are committed, and a hub with so many `lives`. The
    letters are due. Event 1 meets a bug that the next version mends. `replay`: a replay of all of them is open."""
    policy = replace(FEW_TRIES, order="hold_key") if by_key else FEW_TRIES
    world = World(log, *[NEXT_LOG] * (lives - 1), policy=policy, subjects=(FORGOTTEN,) if erases else ())
    if committed:
        world.hands.deliver(log[:committed])
    world.alone.advance(LEASE)
    if replay:
        world.hands.ask_replay()
    return world


def of_two_streams() -> World:
    """Return a world in which the events of two consumer groups are committed."""
    world = world_of(4, erases=True)
    world.groups = (*world.groups, OTHER)
    return world


def of_old(world_class: type[World] = PurgedWorld) -> World:
    """Return a world whose ledger and settled letters are old enough for a purge, which is open."""
    world = world_class(LOG[:6])
    for last in (2, 3, 4):
        world.hands.deliver(LOG[:last])
    world.hands.discard(1, 3)
    world.alone.advance(3 * DAY)
    world.hands.ask_purge()
    return world


def of_one_end(ask: Callable[[Hands], object], world_class: type[World] = OneEndWorld) -> World:
    """Return a world with batches, a replay that took rows away, a dry run, and one more task that is open."""
    world = world_class(LOG)
    world.hands.deliver(LOG)
    for dry_run in (False, True):
        world.hands.ask_replay(dry_run)
        world.hands.work(world.hands.replays)
    ask(world.hands)
    return world


CONFIGURATIONS = {
    "two owners with an overlap": Configuration(world_of, {"owner 1": owner(2, 4), "owner 2": owner(3, 5)}, 2, quick=1),
    "an owner that remembers, and a second one": Configuration(
        world_of, {"owner 1": remembering_owner, "owner 2": owner(2, 4)}, 2, quick=1
    ),
    "an owner that remembers states, and a second one": Configuration(
        partial(world_of, 2, OF_STATES), {"owner 1": owner_of_states, "owner 2": owner(3, 4, log=OF_STATES)}, 1, quick=0
    ),
    "two owners of a new partition": Configuration(
        partial(world_of, 0), {"owner 1": owner(0, 2), "owner 2": owner(1, 3)}, 0, quick=0
    ),
    "batch beside retry": Configuration(
        partial(world_of, 4), {"owner": owner(3, 5), "keeper": Hands.retry}, 2, quick=1
    ),
    "batch beside retry, in the order of keys": Configuration(
        partial(world_of, 4, by_key=True), {"owner": owner(3, 5), "keeper": Hands.retry}, 2, quick=0
    ),
    "two keepers, and a lease that ends": Configuration(
        partial(world_of, 4), {"keeper 1": Hands.retry, "keeper 2": Hands.retry, "time": time}, 1, quick=0
    ),
    "retry beside discard, and a lease that ends": Configuration(
        partial(world_of, 4), {"keeper": Hands.retry, "operator": discarder, "time": time}, 1, quick=0
    ),
    "batch beside replay and retry": Configuration(
        partial(world_of, 4, replay=True), {"owner": owner(3, 5), "driver": driver, "keeper": Hands.retry}, 1, quick=0
    ),
    "two drivers of a replay of one piece": Configuration(
        partial(world_of, 2, replay=True), {"driver 1": driver, "driver 2": driver}, 1, quick=0
    ),
    "two drivers of a replay of two pieces": Configuration(
        partial(world_of, 4, replay=True), {"driver 1": driver, "driver 2": driver}, 0
    ),
    "batch beside replay, in the order of keys": Configuration(
        partial(world_of, 4, OF_ORDER, replay=True, by_key=True),
        {"owner": owner(3, 5, log=OF_ORDER), "driver": driver},
        0,
        quick=0,
    ),
    "healing beside a batch": Configuration(world_of, {"timer": Hands.heal, "owner": owner(4, 5)}, 2, quick=1),
    "erasure beside batch and retry": Configuration(
        partial(world_of, 4, erases=True), {"officer": eraser, "owner": owner(3, 5, tries=1), "keeper": Hands.retry}, 1
    ),
    "erasure beside replay": Configuration(
        partial(world_of, 4, erases=True), {"officer": eraser, "operator": replayer}, 1, quick=0
    ),
    "erasure beside batch and replay": Configuration(
        partial(world_of, 2, erases=True), {"officer": eraser, "owner": owner(2, 2, tries=1), "operator": replayer}, 0
    ),
    "erasure beside retry and replay": Configuration(
        partial(world_of, 2, erases=True), {"officer": eraser, "keeper": Hands.retry, "operator": replayer}, 0
    ),
    "erasure beside batch, retry and replay": Configuration(
        partial(world_of, 2, erases=True),
        {"officer": eraser, "owner": owner(2, 2, tries=1), "keeper": Hands.retry, "operator": replayer},
        0,
    ),
    "erasure beside the batch of another stream": Configuration(
        of_two_streams, {"officer": eraser, "owner": owner_of_other}, 1, quick=0
    ),
    "a purge alone": Configuration(partial(of_old, OneEndWorld), {"purge": purger}, 2, quick=1),
    "an erasure alone": Configuration(
        partial(of_one_end, lambda hands: hands.ask_erasure(FORGOTTEN)),
        {"officer": lambda hands: hands.work(hands.erasures)},
        2,
        quick=1,
    ),
    "an audit alone": Configuration(
        partial(of_one_end, Hands.ask_audit), {"auditor": lambda hands: hands.work(hands.audits)}, 2, quick=1
    ),
    "an aggregation alone": Configuration(
        partial(of_one_end, lambda hands: None, AggregatedWorld), {"timer": ticker}, 2, quick=1
    ),
    "purge beside audit": Configuration(of_old, {"purge": purger, "auditor": auditor}, 0),
    "purge beside batch and retry": Configuration(
        of_old, {"purge": purger, "owner": owner(4, 5), "keeper": Hands.retry}, 1, quick=0
    ),
    "purge beside replay": Configuration(of_old, {"purge": purger, "operator": replayer}, 0),
    "purge beside a cancel": Configuration(of_old, {"purge": purger, "operator": canceller}, 1, quick=0),
    "next incarnation beside batch and retry": Configuration(
        partial(world_of, 4, lives=2),
        {"hub": recreation, "operator": Hands.succeed, "owner": owner(3, 5, tries=1), "keeper": Hands.retry},
        0,
    ),
    "next incarnation beside replay": Configuration(
        partial(world_of, 4, lives=2, replay=True), {"hub": recreation, "operator": Hands.succeed, "driver": driver}, 1
    ),
    "next incarnation beside erasure": Configuration(
        partial(world_of, 4, lives=2, erases=True), {"hub": recreation, "operator": Hands.succeed, "officer": eraser}, 0
    ),
    "next incarnation beside the batches of both hubs": Configuration(
        partial(world_of, 4, lives=2),
        {"hub": recreation, "operator": Hands.succeed, "owner": owner(4, 5, tries=1), "next owner": next_owner},
        0,
    ),
}
