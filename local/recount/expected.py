"""The possible results of an event: its rows or its error, with each state that the transform may have looked up.

A partition is in order, so an event sees the states that earlier events of its partition wrote. But two partitions are
not in order, a letter is retried at an unknown time, and a key that `references()` does not name is seen by chance.
In these cases every state that the key ever had is possible.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from operator import itemgetter
from typing import NamedTuple, cast

from core.errors import MissingReference, PoisonEvent
from core.model.events import Event
from core.model.rows import ReferenceKey, References, Row, RowType, row_table
from core.model.transforms import Transform

Place = tuple[str, int]  # partition and sequence number
States = Callable[[ReferenceKey], Sequence[Row | None]]  # those that a key may have, None where it may be missing
ROUNDS = 5  # the longest chain of states that are made of states of other partitions
MANY = 100  # outcomes of one event: more are not tried


class PossibleOutcome(NamedTuple):
    """The rows of an event, or the class and the text of its error."""

    rows: tuple[Row, ...] = ()
    error_class: str | None = None
    error: str = ""


class _Lookup(References):
    """The references of one run: `choose` returns the state that this run sees under a key."""

    __slots__ = ("_choose",)

    def __init__(self, choose: Callable[[ReferenceKey], Row | None]) -> None:
        super().__init__({})
        self._choose = choose

    def find(self, row_class: type[RowType], *key: object) -> RowType | None:
        return cast("RowType | None", self._choose(ReferenceKey(row_class, key)))


def outcomes(transform: Transform, event: Event, states: States) -> Iterator[PossibleOutcome]:
    """Yield the outcome of an event for each choice of the states that it looks up."""
    waiting: list[dict[ReferenceKey, Row | None]] = [{}]
    while waiting:
        chosen = waiting.pop()

        def choose(key: ReferenceKey, chosen: dict[ReferenceKey, Row | None] = chosen) -> Row | None:
            if key not in chosen:
                first, *others = states(key)
                waiting.extend({**chosen, key: other} for other in reversed(others))
                chosen[key] = first
            return chosen[key]

        yield outcome_of(transform, event, _Lookup(choose))


def outcome_of(transform: Transform, event: Event, references: References) -> PossibleOutcome:
    """Return the outcome of an event that sees these references."""
    try:
        rows = tuple(transform.rows_of(event, references))
        for row in rows:
            if row_table(type(row)).key:
                hash(ReferenceKey.of(row))
    except (KeyboardInterrupt, MemoryError):
        raise
    except PoisonEvent as error:
        return PossibleOutcome((), "poison", str(error))
    except MissingReference as error:
        return PossibleOutcome((), "reference", str(error))
    except BaseException as error:  # noqa: BLE001 - any other error of a transform makes a letter too
        return PossibleOutcome((), "unknown", f"{type(error).__name__}: {error}")
    if len(rows) > transform.rows_limit:
        return PossibleOutcome((), "unknown", f"{len(rows)} rows")
    return PossibleOutcome(rows)


class Expectation:
    """The possible outcomes of all events of a hub. `lettered` are the places that had a letter."""

    def __init__(self, transform: Transform, events: Sequence[tuple[str, Event]], lettered: AbstractSet[Place]) -> None:
        self._transform = transform
        self._unsure = set(lettered)  # places whose rows were perhaps not there for the next event
        self._lettered = lettered
        self._written: dict[ReferenceKey, dict[str, list[tuple[int, Row]]]] = {}
        self._ever: dict[ReferenceKey, dict[Row, None]] = {}
        self._plain: dict[Place, PossibleOutcome] = {}  # of events that look up nothing
        self._learn(events)

    def of(self, partition_id: str, event: Event) -> Iterator[PossibleOutcome]:
        """Yield the possible outcomes of an event, the likeliest first."""
        place = (partition_id, int(event.sequence_number))
        if (plain := self._plain.get(place)) is not None:
            yield plain
            return
        declared = _declared(self._transform, event)
        yield from outcomes(self._transform, event, lambda key: self._states(key, place, key in declared))

    def _learn(self, events: Sequence[tuple[str, Event]]) -> None:
        """Take the states that the events write, again and again until no event can write another one."""
        looking = events
        for _ in range(ROUNDS):
            known, looking = self._count(), [each for each in looking if self._looks(*each)]
            if not looking or self._count() == known:
                return

    def _count(self) -> int:
        return sum(len(numbers) for written in self._written.values() for numbers in written.values())

    def _looks(self, partition_id: str, event: Event) -> bool:
        """Take the states that an event may write. Return True when it looks up others."""
        place, looked = (partition_id, int(event.sequence_number)), False
        declared = _declared(self._transform, event)

        def states(key: ReferenceKey) -> Sequence[Row | None]:
            nonlocal looked
            looked = True
            return self._states(key, place, key in declared)

        found: dict[PossibleOutcome, None] = {}
        for outcome in islice(outcomes(self._transform, event, states), MANY):
            found[outcome] = None
            for row in outcome.rows:
                if row_table(type(row)).key:
                    self._note(place, row)
        if len(found) > 1:
            self._unsure.add(place)
        if not looked:
            self._plain[place] = next(iter(found))
        return looked

    def _note(self, place: Place, row: Row) -> None:
        key, (partition_id, number) = ReferenceKey.of(row), place
        own = self._written.setdefault(key, {}).setdefault(partition_id, [])
        at = bisect_left(own, number, key=itemgetter(0))
        if (number, row) not in own[at : at + MANY]:
            own.insert(bisect_left(own, number + 1, key=itemgetter(0)), (number, row))
            self._ever.setdefault(key, {})[row] = None

    def _states(self, key: ReferenceKey, place: Place, is_declared: bool) -> list[Row | None]:
        partition_id, number = place
        written = self._written.get(key, {})
        own = written.get(partition_id, [])
        found: list[Row | None] = []
        is_sure = False
        earlier, rank_of = own[: bisect_left(own, number, key=itemgetter(0))], row_table(key.row_class).rank_of
        for at, row in sorted(earlier, key=lambda one: rank_of(one[1], one[0]), reverse=True):
            found.append(row)
            if is_sure := (partition_id, at) not in self._unsure:
                break
        if place in self._lettered or len(written) > bool(own):
            found += self._ever.get(key, ())
        if not is_sure or not is_declared:
            found.append(None)
        return list(dict.fromkeys(found))


def _declared(transform: Transform, event: Event) -> AbstractSet[ReferenceKey]:
    """Return the keys that a transform names for an event, or none when it fails."""
    if transform.references_of is None:
        return frozenset()
    try:
        return frozenset(transform.references_of(event))
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException:  # noqa: BLE001 - its rows fail too, or look up nothing
        return frozenset()
