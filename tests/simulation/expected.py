"""The oracle's own model of the three deployments: what each event may become, as plain tuples. It imports no core."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as Subjects
from dataclasses import dataclass

Row = tuple[object, ...]  # table, ordinal, then the columns in the order of the table
FIRST, THIRD = "plain/1", "plain/3"


@dataclass(frozen=True)
class Effect:
    """One outcome of an event: its appended rows, the state that it sets, or the class of its letter."""

    rows: tuple[Row, ...] = ()
    state: tuple[str, int] | None = None
    letter: str | None = None

    @property
    def outcome(self) -> str:
        if self.letter:
            return "dead_lettered"
        return "written" if self.rows or self.state else "filtered"


def forgetting(effect: Effect, words: Iterable[str], subjects: Subjects[str], key: str | None) -> Effect:
    """Return an outcome after an erasure: nothing for a key of a subject, else no row and no letter of a subject."""
    if key in subjects:
        return Effect()
    if effect.letter:
        return Effect() if subjects & {*words, key} else effect
    rows = [row for row in effect.rows if row[2] not in subjects]
    state = None if effect.state and effect.state[0] in subjects else effect.state
    return Effect(tuple((row[0], place, *row[2:]) for place, row in enumerate(rows)), state)


def effects(body: str, number: int, at: str, version: str, armed: Iterable[int | None]) -> set[Effect]:
    """Return all outcomes that an event can have. `armed` are the states of its home that it can have seen."""
    verb, *words = body.split()
    if verb == "look":
        return {_look(words[0], number, at, version, one) for one in armed}
    if verb == "kill":
        survivor = Effect((_reading("survivor", "sensor", "kill", number, at),))
        return {survivor, Effect(letter="unknown"), Effect(letter="crash")}
    return {_steady(verb, words, number, at, version)}


def _steady(verb: str, words: list[str], number: int, at: str, version: str) -> Effect:
    is_later = version != FIRST
    if verb in ("home", "fixhome"):
        is_broken = verb == "fixhome" and not is_later
        return Effect(letter="unknown") if is_broken else Effect(state=(words[0], int(words[1])))
    if verb == "huge":
        return Effect(letter="refused")
    if verb == "poison" or (verb == "reading" and is_later and number % 5 == 3):
        return Effect(letter="poison")
    if verb == "reading" and version == THIRD and number % 7 == 1:
        return Effect(letter="refused")
    if verb == "bug" and not is_later:
        return Effect(letter="unknown")
    return Effect(tuple(_rows(verb, words, number, at, is_later)))


def _rows(verb: str, words: list[str], number: int, at: str, is_later: bool) -> Iterator[Row]:
    if verb == "bug":
        yield _reading("mended", "sensor", "bug", number, at)
    if verb in ("reading", "double"):
        yield _reading(words[0], "sensor", verb, number, at)
    if verb == "double" and not is_later:
        yield "home_alert", 1, words[0], "sensor", "double", number, at
    if verb == "quiet" and is_later and number % 2:
        yield _reading("loud", "sensor", "quiet", 1, at)


def _look(home: str, number: int, at: str, version: str, armed: int | None) -> Effect:
    if armed is None:
        return Effect(letter="reference")
    seen = _reading(home, "sensorTrue" if armed else "sensorFalse", "look", number, at)
    alert = ("home_alert", 1, "looked", "sensor", "look", 1, at)
    return Effect((seen,) if version == FIRST else (seen, alert))


def _reading(home: str, sensor: str, kind: str, ppm: int, at: str) -> Row:
    return "sensor_reading", 0, home, sensor, kind, None, ppm, at
