"""local/feed/options.py and domains.py: the options of a feed, and what every story keeps."""

from collections.abc import Iterator
from typing import Any

import pytest

from local.feed.businesses import FLIGHTS, HOMES, Domain
from local.feed.options import parse_options
from local.feed.planned_events import FIRST_INSTANT, Minute


def test_without_options_the_feed_is_endless_and_steady() -> None:
    options = parse_options([])
    assert (options.senders, options.events, options.rate, options.record) == (100_000, None, 1000.0, None)


def test_a_rate_an_end_a_start_and_a_business_can_be_requested() -> None:
    given = "--rate full --events 20000 --start 2026-01-01T01:00:00+01:00 --transform {}"
    for name in ("flight_info", "examples.flight_info"):
        options = parse_options(given.format(name).split())
        assert (options.rate, options.events, options.start) == (None, 20_000, 1_767_225_600_000_000)
        assert (options.transform, options.senders) == (FLIGHTS, FLIGHTS.usual_senders)


def test_an_unreadable_option_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for given, why in {
        "--rate=fast": "must be a number above 0, or full",
        "--rate=0": "must be a number above 0, or full",
        "--rate=nan": "must be a number above 0, or full",
        "--events=0": "must be a whole number from 1",
        "--transform=trains": "must be home_security or flight_info, or a room like apps.orders with its --events-from",
        "--key=order_id": "argument --key: it needs --events-from",
        "--append": "--append: it needs the --record",
        "--events-from=/missing.jsonl": "argument --events-from: /missing.jsonl cannot be read: No such file",
        "--homes=-3": "must be a whole number from 1",
        "--duplicates=1.5": "must be a number from 0 to 1",
        "--duplicates=some": "must be a number from 0 to 1",
        "--gather=-1": "must be a number of seconds from 0 to 10",
        "--start=today": "must be a time like",
        "--transform=flight_info --senders=10000": "there are no more than 9999 flight numbers",
        "--start=2026-01-01T00:00:00": "must name its time zone",
    }.items():
        with pytest.raises(SystemExit):
            parse_options(given.split())
        assert why in capsys.readouterr().err, given


BOTH = pytest.mark.parametrize("domain", [HOMES, FLIGHTS], ids=lambda domain: domain.transform)


def story(domain: Domain, *, senders: int = 40, events: int | None = 2_000, seed: int = 1) -> Iterator[Minute[Any]]:
    return domain.story(senders, events, seed, FIRST_INSTANT, None)


@BOTH
def test_equal_seeds_make_equal_stories_and_different_seeds_different_ones(domain: Domain) -> None:
    assert list(story(domain)) == list(story(domain)) != list(story(domain, seed=2))


@BOTH
def test_a_story_has_exactly_the_requested_number_of_events(domain: Domain) -> None:
    for senders in (1, 2, 7, 40):
        for events in range(1, 60):
            minutes = story(domain, senders=senders, events=events, seed=events)
            assert sum(len(minute.events) for minute in minutes) == events


def test_dangers_and_undeliverable_events_are_only_those_of_a_bounded_story_of_homes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for given in (["--dangers", "1"], ["--undeliverable", "5"], ["--registered"]):
        for other in (["--events", "endless"], ["--events", "9", "--transform", "flight_info"]):
            with pytest.raises(SystemExit):
                parse_options([*given, *other])
            why = f"argument {given[0]}: it needs a number of --events, of home_security"
            assert why in capsys.readouterr().err, (given, other)
