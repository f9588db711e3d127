"""Dangers in a story: events that kill the process, and events whose rows the database refuses."""

from collections.abc import Iterator
from random import Random

from local.dangerous import KILLING, REFUSED
from local.feed.home_rule import Expected
from local.feed.homes import Script
from local.feed.planned import CRASH, REFUSAL, WRITTEN, Minute, PlannedEvent

REFUSED_EVENTS = 5  # of a story


def with_dangers(minutes: Iterator[Minute[Expected]], script: Script, killing: int) -> Iterator[Minute[Expected]]:
    """Replace some readings of a bounded story, each in a separate part, by dangerous events.

    So many are `killing`, and some make rows that the database refuses.
    """
    chance = Random(f"dangers {script.seed}")
    kinds = [(KILLING, CRASH)] * killing + [(REFUSED, REFUSAL)] * REFUSED_EVENTS
    chance.shuffle(kinds)
    part = (script.events or 0) / len(kinds)
    due = [int(part * (place + 0.1 + 0.6 * chance.random())) for place in range(len(kinds))]
    published = 0
    for minute in minutes:
        published += len(minute.events)
        if due and published > due[0] and _is_reading(minute):
            word, outcome = kinds.pop(0)
            due.pop(0)
            body = word + f" {minute.partition_key} {published}".encode()
            minute.events[-1] = PlannedEvent(body, Expected(outcome))
        yield minute


def _is_reading(minute: Minute[Expected]) -> bool:
    expected = minute.events[-1].expected
    return expected.outcome == WRITTEN and expected.kind != "registration"
