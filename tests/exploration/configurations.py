"""The configurations that are explored: what was prepared, who works at once, and how many faults may come."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from core.errors import InfrastructureFault, RequestRefused, TaskOverlap, TooManyTasks
from core.incarnations.next_incarnation import HubFits, StateDiffers
from core.model.events import Event
from core.store.database import StreamClosed
from tests.exploration.explorer import Actor, Outside, Process
from tests.exploration.world import DAY, FEW_TRIES, LEASE, LOG, NEXT_LOG, Hands, OneEndWorld, PurgedWorld, World
from tests.fakes.builders import event

OTHER = "other"  # a second consumer group of the hub
FORGOTTEN = "one-1"  # the home that is erased
OF_STATES = tuple(
    event(number, body, key="one-1")
    for number, body in enumerate(("home one-1 1", "bug one-1", *("look one-1", "home one-1 0", "look one-1") * 2))
)
OF_ORDER = tuple(  # the deployed version writes no row of event 3, so a replay opens its letter
    event(number, body, key=body.split()[-1])
    for number, body in enumerate(("home one-1 1", "bug one-1", "quiet", "reading one-3", "double one-3", "look one-1"))
)
KNOWN = (HubFits, RequestRefused, StateDiffers, StreamClosed, TaskOverlap, TooManyTasks)  # told to the person who asked


class Configuration(NamedTuple):
    """`prepare` makes the world. `acts` are the processes, by name. At most so many `faults` come in one schedule, in
    `make test` at most `quick` (None: it is left to `make explore`)."""

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
    """An owner of the partition that has these numbers in hand. The host hands a batch over again that failed."""

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
    """An owner that remembers a state, which the second batch changes, and the third one needs."""
    for first, last in ((2, 2), (3, 3), (4, 5)):
        owner(first, last, log=OF_STATES)(hands)


def next_owner(hands: Hands) -> None:
    """An owner that has the first events of the hub's next life in hand."""
    hands.deliver(NEXT_LOG[:2])


def keeper(hands: Hands) -> None:
    hands.retry()


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


def auditor(hands: Hands) -> None:
    """Ask for an audit of all, and drive it."""
    hands.ask_audit()
    hands.work(hands.audits)


def recreation(hands: Hands) -> None:
    """The hub is recreated: its events are gone, and it has a few new ones."""
    hands.process.change_outside("the hub is recreated", Outside(2 * LEASE, life=1))


def healer(hands: Hands) -> None:
    hands.heal()


def successor(hands: Hands) -> None:
    hands.succeed()


def time(hands: Hands) -> None:
    """Time that passes: every lease that began before has ended."""
    hands.process.change_outside("every lease ends", Outside(hands.process.clock.seconds + LEASE))


def world_of(
    committed: int = 2, *, replay: bool = False, lives: int = 1, by_key: bool = False, erases: bool = False
) -> World:
    """Return a world with so many committed events of six. After a lease their letters are due: event 1 is a bug that
    the deployed version mends. With the open replay of them all, or with further lives of the hub."""
    policy = replace(FEW_TRIES, order="hold_key") if by_key else FEW_TRIES
    world = World(LOG[:6], *[NEXT_LOG] * (lives - 1), policy=policy, subjects=(FORGOTTEN,) if erases else ())
    if committed:
        world.hands.deliver(LOG[:committed])
    world.alone.advance(LEASE)
    if replay:
        world.hands.ask_replay()
    return world


def of_order() -> World:
    """Return a world in the order of keys, with an open replay of four events. The fifth has the key of the fourth."""
    world = World(OF_ORDER, policy=replace(FEW_TRIES, order="hold_key"))
    world.hands.deliver(OF_ORDER[:4])
    world.alone.advance(LEASE)
    world.hands.ask_replay()
    return world


def of_states() -> World:
    """Return a world whose events change a state that others need. The first two are committed."""
    world = World(OF_STATES[:6])
    world.hands.deliver(OF_STATES[:2])
    world.alone.advance(LEASE)
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


def of_one_end(ask: Callable[[Hands], object]) -> World:
    """Return a world with batches, a replay that took rows away, a dry run, and one more task that is open."""
    world = OneEndWorld(LOG)
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
        of_states, {"owner 1": owner_of_states, "owner 2": owner(3, 4, log=OF_STATES)}, 1, quick=0
    ),
    "two owners of a new partition": Configuration(
        partial(world_of, 0), {"owner 1": owner(0, 2), "owner 2": owner(1, 3)}, 0, quick=0
    ),
    "batch beside retry": Configuration(partial(world_of, 4), {"owner": owner(3, 5), "keeper": keeper}, 2, quick=1),
    "batch beside retry, in the order of keys": Configuration(
        partial(world_of, 4, by_key=True), {"owner": owner(3, 5), "keeper": keeper}, 2, quick=0
    ),
    "two keepers, and a lease that ends": Configuration(
        partial(world_of, 4), {"keeper 1": keeper, "keeper 2": keeper, "time": time}, 1, quick=0
    ),
    "retry beside discard, and a lease that ends": Configuration(
        partial(world_of, 4), {"keeper": keeper, "operator": discarder, "time": time}, 1, quick=0
    ),
    "batch beside replay and retry": Configuration(
        partial(world_of, 4, replay=True), {"owner": owner(3, 5), "driver": driver, "keeper": keeper}, 1, quick=0
    ),
    "two drivers of a replay of one piece": Configuration(
        partial(world_of, 2, replay=True), {"driver 1": driver, "driver 2": driver}, 1, quick=0
    ),
    "two drivers of a replay of two pieces": Configuration(
        partial(world_of, 4, replay=True), {"driver 1": driver, "driver 2": driver}, 0
    ),
    "batch beside replay, in the order of keys": Configuration(
        of_order, {"owner": owner(3, 5, log=OF_ORDER), "driver": driver}, 0, quick=0
    ),
    "healing beside a batch": Configuration(world_of, {"timer": healer, "owner": owner(4, 5)}, 2, quick=1),
    "erasure beside batch and retry": Configuration(
        partial(world_of, 4, erases=True), {"officer": eraser, "owner": owner(3, 5, tries=1), "keeper": keeper}, 1
    ),
    "erasure beside replay": Configuration(
        partial(world_of, 4, erases=True), {"officer": eraser, "operator": replayer}, 1, quick=0
    ),
    "erasure beside batch and replay": Configuration(
        partial(world_of, 2, erases=True), {"officer": eraser, "owner": owner(2, 2, tries=1), "operator": replayer}, 0
    ),
    "erasure beside retry and replay": Configuration(
        partial(world_of, 2, erases=True), {"officer": eraser, "keeper": keeper, "operator": replayer}, 0
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
    "purge beside audit": Configuration(of_old, {"purge": purger, "auditor": auditor}, 0),
    "next incarnation beside batch and retry": Configuration(
        partial(world_of, 4, lives=2),
        {"hub": recreation, "operator": successor, "owner": owner(3, 5, tries=1), "keeper": keeper},
        0,
    ),
    "next incarnation beside replay": Configuration(
        partial(world_of, 4, lives=2, replay=True), {"hub": recreation, "operator": successor, "driver": driver}, 1
    ),
    "next incarnation beside erasure": Configuration(
        partial(world_of, 4, lives=2, erases=True), {"hub": recreation, "operator": successor, "officer": eraser}, 0
    ),
    "next incarnation beside the batches of both hubs": Configuration(
        partial(world_of, 4, lives=2),
        {"hub": recreation, "operator": successor, "owner": owner(4, 5, tries=1), "next owner": next_owner},
        0,
    ),
}
