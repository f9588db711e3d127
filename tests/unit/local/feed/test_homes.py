"""local/feed/homes.py"""

from collections import Counter
from datetime import UTC, datetime
from itertools import islice

import pytest

from core.model.events import Event
from core.model.rows import References
from core.model.spans import SequenceNumber
from core.settle.settle import settle
from core.transforms import load_transform
from local.feed.homes import Script, Shares, home_minutes
from local.feed.planned import FILTERED, POISON, REFERENCE, WRITTEN, Minute
from tests.unit.local.feed.builders import FAULTY, story

SPOTLESS = Shares(malformed=0, unknown_kind=0, duplicate=0, late=0, rearmed=0)


def bodies(minutes: list[Minute]) -> list[bytes]:
    return [event.body for minute in minutes for event in minute.events]


def of_home(minutes: list[Minute]) -> dict[str, list[Minute]]:
    found: dict[str, list[Minute]] = {}
    for minute in minutes:
        found.setdefault(minute.partition_key or "", []).append(minute)
    return found


def registrations(minute: Minute) -> list[int]:
    """Return the positions of registrations in a minute."""
    return [at for at, event in enumerate(minute.events) if event.expected.kind == "registration"]


def test_equal_seeds_make_equal_stories_and_different_seeds_different_ones() -> None:
    assert list(home_minutes(Script(40, 2_000, 5, shares=FAULTY))) == story(seed=5)
    assert bodies(story(seed=5)) != bodies(story(seed=6))


def test_a_story_without_end_begins_like_one_with_an_end() -> None:
    endless = islice(home_minutes(Script(homes=40, seed=1, shares=FAULTY)), 100)
    assert list(endless) == story(homes=40)[:100]


def test_a_story_has_exactly_the_requested_number_of_events() -> None:
    for homes in (1, 2, 7, 40):
        for events in range(1, 60):
            assert len(bodies(story(homes, events, seed=events))) == events


def test_a_round_visits_every_home_once() -> None:
    minutes = list(islice(home_minutes(Script(homes=97, shares=SPOTLESS)), 2 * 97))
    assert (
        len({minute.partition_key for minute in minutes[:97]})
        == len({minute.partition_key for minute in minutes[97:]})
        == 97
    )


@pytest.mark.slow
def test_a_home_publishes_about_four_events_in_a_minute() -> None:
    minutes = story(homes=500, events=21_000, shares=SPOTLESS)
    assert len(minutes) == pytest.approx(5_000, rel=0.02)


@pytest.mark.slow
def test_the_faults_have_their_shares() -> None:
    shares = Shares(malformed=0.04, unknown_kind=0.02, duplicate=0.03, late=0.1, rearmed=0.05)
    minutes = story(homes=500, events=30_000, shares=shares)
    events = [event for minute in minutes for event in minute.events]
    outcomes = Counter(event.expected.outcome for event in events)
    twice = sum(a is b for minute in minutes for a, b in zip(minute.events, minute.events[1:], strict=False))
    late = [own for own in of_home(minutes).values() if registrations(own[0]) == []]
    visits = [minute for own in of_home(minutes).values() if registrations(own[0]) for minute in own[1:]]
    rearmed = sum(registrations(minute) != [] for minute in visits)
    assert outcomes[POISON] / (len(events) - outcomes[FILTERED]) == pytest.approx(0.06, rel=0.15)
    assert outcomes[FILTERED] / len(events) == pytest.approx(0.2, rel=0.1)
    assert twice / len(events) == pytest.approx(0.03, rel=0.15)
    assert len(late) == pytest.approx(50, rel=0.3)
    assert rearmed / len(visits) == pytest.approx(0.05, rel=0.15)


def test_a_registration_opens_its_minute_so_that_publishing_it_again_changes_nothing() -> None:
    for minute in story():
        at = registrations(minute)
        assert at == list(range(len(at)))


@pytest.mark.slow
def test_every_home_that_speaks_registers_before_the_end_and_later_than_its_first_readings_when_it_is_late() -> None:
    for events in range(300, 2_000, 100):
        for own in of_home(story(homes=60, events=events, seed=events)).values():
            first = next(number for number, minute in enumerate(own) if registrations(minute))
            assert all(event.expected.outcome != WRITTEN for minute in own[:first] for event in minute.events)


def test_readings_of_a_late_home_are_letters_until_it_registers_and_it_registers_once() -> None:
    late = [own for own in of_home(story()).values() if not registrations(own[0])]
    assert late
    for own in late:
        assert {event.expected.outcome for event in own[0].events} <= {REFERENCE, POISON, FILTERED}
        assert len({minute.events[at].body for minute in own for at in registrations(minute)}) == 1


def test_a_duplicate_follows_the_event_that_it_repeats() -> None:
    minutes = story(shares=Shares(malformed=0, unknown_kind=0, duplicate=1, late=0, rearmed=0))
    assert all(minute.events[::2] == minute.events[1::2] for minute in minutes[:-1])


def test_carbon_monoxide_is_seen_on_both_sides_of_the_threshold() -> None:
    seen = {event.expected.ppm: event.expected.alerts for minute in story(events=10_000) for event in minute.events}
    assert (seen[69], seen[70]) == (0, 1)


def test_the_feed_expects_the_outcomes_of_the_app() -> None:
    """The two rules were written apart; where they differ, one is wrong. A letter settles when all homes are known."""
    transform, references, now = load_transform("examples.home_security"), References({}), datetime.now(UTC)
    planned_events = [(minute.partition_key, event) for minute in story() for event in minute.events]
    events = [Event(SequenceNumber(n), str(n), now, key, {}, one.body) for n, (key, one) in enumerate(planned_events)]
    first = [settle([event], references, transform) for event in events]
    for event, settled, (_, planned) in zip(events, first, planned_events, strict=True):
        letters = [letter.error_class for letter in settled.letters]
        found = letters[0] if letters else FILTERED if settled.filtered else WRITTEN
        assert found == planned.expected.outcome, event.body
        final = settle([event], references, transform) if found == REFERENCE else settled
        alerts = sum(len(rows) for kind, rows in final.rows.items() if kind.__name__ == "HomeAlert")
        assert (len(final.letters) == 1, alerts) == (found == POISON, planned.expected.alerts), event.body
