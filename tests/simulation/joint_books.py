"""What holds at every moment of a joint world: the ledger, the letters and the rows, held against the log itself."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from core.model.events import Event
from core.model.rows import ReferenceKey, References, Row, row_table
from core.settle.settle import settle
from core.transforms.home_security import Home, HomeAlert, SensorReading
from tests.fakes.builders import partition
from tests.fakes.kept import KeptGap, KeptLetter, KeptRange, KeptRow
from tests.simulation.replay_world import TRANSFORMS, is_refused

APPENDED = (SensorReading, HomeAlert)
Logs = Mapping[str, list[Event]]
Place = tuple[str, int]


class Held(Protocol):
    """Whatever shows what was written, and its own books."""

    def rows(self, row_class: type) -> list[KeptRow]: ...

    def letters(self) -> list[KeptLetter]: ...

    def ledger(self) -> list[KeptRange]: ...

    def gaps(self) -> list[KeptGap]: ...


class JointBooks:
    """The plain recount: of each event it knows every outcome that some transform may make of it."""

    def __init__(self, logs: Logs, lost: Mapping[str, set[int]]) -> None:
        self._logs = logs
        self._lost = lost
        self._held: Held | None = None
        self._rows: dict[Place, set[str]] = {}
        self._classes: dict[Place, set[str]] = {}
        for id, log in logs.items():
            for event in log:
                self._note(id, event)

    def watch(self, held: Held) -> None:
        """Look at this from now on; without it nothing is checked."""
        self._held = held

    def check(self, store: Any) -> None:
        """AssertionError when something does not hold at this moment."""
        held = self._held
        if held is None:
            return
        absent = {id: self._absent(held, id) for id in self._logs}
        ends = {id: self._tiles(held, id, absent[id], store) for id in self._logs}
        assert all(one.balanced for one in store.read_ledgers()), store.read_ledgers()
        self._outcomes(held, absent, ends)
        self._states(held, absent, ends)

    def _note(self, id: str, event: Event) -> None:
        place = (id, int(event.sequence_number))
        self._rows[place], self._classes[place] = set(), set()
        for transform in TRANSFORMS:
            for references in _references(event):
                done = settle([event], References(references), transform)
                if transform is TRANSFORMS[2] and is_refused(event):
                    self._classes[place].add("refused")
                elif done.letters:
                    self._classes[place].add(done.letters[0].error_class)
                else:
                    self._rows[place].add(_text(_placed(done.rows)))

    def _absent(self, held: Held, id: str) -> set[int]:
        """What the gaps name as absent; only what the hub lost before it was committed may be."""
        gaps = [gap for gap in held.gaps() if gap.partition_id == id and gap.status == "absent"]
        numbers = [number for gap in gaps for number in range(gap.first, gap.last + 1)]
        assert len(numbers) == len(set(numbers)), "absent twice"
        assert set(numbers) <= self._lost[id], (id, set(numbers) - self._lost[id])
        return set(numbers)

    def _tiles(self, held: Held, id: str, absent: set[int], store: Any) -> int:
        """The ranges tile [anchor, checkpoint], and each splits up into its outcomes; the first number behind them."""
        state, following = store.read_partition(partition(id)), int(self._logs[id][0].sequence_number)
        for kept in sorted((one for one in held.ledger() if one.partition_id == id), key=lambda one: one.first):
            assert kept.first == following, (kept, following)
            length = kept.last - kept.first + 1
            assert kept.written + kept.filtered + kept.dead_lettered + kept.absent == length, kept
            assert kept.absent == sum(number in absent for number in range(kept.first, kept.last + 1)), kept
            following = kept.last + 1
        if state.checkpoint is not None:
            assert state.checkpoint.sequence_number == following - 1, (id, state.checkpoint, following)
        return following

    def _outcomes(self, held: Held, absent: Mapping[str, set[int]], ends: Mapping[str, int]) -> None:
        """Every committed event has the rows of an outcome it can have, or a letter; nobody else has anything."""
        rows: dict[Place, list[KeptRow]] = {}
        for kept in (one for row_class in APPENDED for one in held.rows(row_class)):
            rows.setdefault((kept.partition_id, kept.sequence_number), []).append(kept)
        letters = {(one.partition_id, one.sequence_number): one for one in held.letters()}
        for id, log in self._logs.items():
            for event in log:
                place = (id, int(event.sequence_number))
                found, letter = rows.pop(place, []), letters.pop(place, None)
                if place[1] >= ends[id] or place[1] in absent[id]:
                    assert not found and letter is None, (place, found, letter)
                elif letter is not None and letter.status != "resolved":
                    assert not found, (place, found, letter)
                    assert letter.error_class in self._classes[place], (place, letter)
                else:
                    text = _text((one.ordinal, one.row) for one in found)
                    assert text in self._rows[place], (place, event.body, text)
        assert not rows and not letters, (rows, letters)

    def _states(self, held: Held, absent: Mapping[str, set[int]], ends: Mapping[str, int]) -> None:
        """The newest committed registration of each home stands."""
        newest: dict[str, Place] = {}
        for id, log in self._logs.items():
            for event in log:
                verb, *words = event.body.decode().split()
                if verb == "home" and event.sequence_number < ends[id] and event.sequence_number not in absent[id]:
                    newest[words[0]] = (id, event.sequence_number)
        standing = {one.row.home_id: (one.partition_id, one.sequence_number) for one in held.rows(Home)}  # type: ignore[attr-defined]
        assert standing == newest


def _references(event: Event) -> list[dict[ReferenceKey, Row]]:
    """What an event may see of the home that it refers to: nothing, armed or not."""
    verb, *words = event.body.decode().split()
    if verb != "look":
        return [{}]
    seen: list[dict[ReferenceKey, Row]] = [{}]
    for armed in (True, False):
        home = Home(words[0], "Europe/Berlin", armed)
        seen.append({ReferenceKey.of(home): home})
    return seen


def _placed(rows: Mapping[type, Any]) -> list[tuple[int, Row]]:
    return [
        (ordinal, row) for row_class, block in rows.items() if not row_table(row_class).key for _, ordinal, row in block
    ]


def _text(placed: Iterable[tuple[int | None, Row]]) -> str:
    return repr(sorted(placed, key=lambda one: one[0] or 0))
