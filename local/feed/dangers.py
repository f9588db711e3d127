"""Dangers in a story: events that kill the process, whose rows the database refuses, or that no trigger delivers."""

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice
from random import Random

from local.dangerous import KILLING, REFUSED
from local.feed.home_rule import Expected
from local.feed.homes import Script
from local.feed.planned import CRASH, REFUSAL, WRITTEN, Minute, PlannedEvent
from local.feed.undeliverable import KINDS

REFUSED_EVENTS = 5  # of a story

Danger = Callable[[PlannedEvent[Expected], str], PlannedEvent[Expected]]
"""Make a dangerous event of a reading; the text occurs once in a story."""


def killing(reading: PlannedEvent[Expected], mark: str) -> PlannedEvent[Expected]:
    """Return an event that ends the process."""
    return PlannedEvent(KILLING + f" {mark}".encode(), Expected(CRASH))


def refused(reading: PlannedEvent[Expected], mark: str) -> PlannedEvent[Expected]:
    """Return an event whose row no database takes."""
    return PlannedEvent(REFUSED + f" {mark}".encode(), Expected(REFUSAL))


def dangers_of(killers: int | None, undeliverable: int) -> list[Danger]:
    """Return so many dangers of each kind; with a number of killers, some refused events too."""
    own = [] if killers is None else [killing] * killers + [refused] * REFUSED_EVENTS
    return [*own, *islice(cycle(KINDS), undeliverable)]


def with_dangers(
    minutes: Iterator[Minute[Expected]], script: Script, dangers: Sequence[Danger]
) -> Iterator[Minute[Expected]]:
    """Replace some readings of a bounded story, each in a separate part, by the dangers in any order."""
    chance, waiting = Random(f"dangers {script.seed}"), list(dangers)
    chance.shuffle(waiting)
    part = (script.events or 0) / max(1, len(waiting))
    due = [int(part * (place + 0.1 + 0.6 * chance.random())) for place in range(len(waiting))]
    published = 0
    for minute in minutes:
        published += len(minute.events)
        if due and published > due[0] and _is_reading(minute):
            due.pop(0)
            minute.events[-1] = waiting.pop(0)(minute.events[-1], f"{minute.partition_key} {published}")
        yield minute


def _is_reading(minute: Minute[Expected]) -> bool:
    expected = minute.events[-1].expected
    return expected.outcome == WRITTEN and expected.kind != "registration"
