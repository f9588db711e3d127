"""Game days of the alarms about letters."""

from datetime import timedelta

import pytest

from tests.acceptance.game_days.day import MENDED, Day

pytestmark = pytest.mark.slow


def test_letters_of_a_bad_deployment_are_retried_by_cause_once_it_is_mended(day: Day) -> None:
    day.limits["open_letters"] = 10
    day.start()
    day.publish("0", *[b"reading home", b"reading home", b"bug"] * 12)
    day.publish("1", b"poison")
    day.until_it_fires("letters-open")


def test_an_event_that_kills_the_app_is_isolated_and_retried_once_the_transform_is_mended(day: Day) -> None:
    day.keeps_alive = True
    day.start(TRANSFORM="tests.fakes.killing_transform", TRANSFORM_DEADLINE_SECONDS="5")
    day.publish("0", b"fine", b"exit", b"fine")
    day.publish("1", b"fine")
    day.until_it_fires("letters-open")


def test_a_letter_that_nears_the_end_of_the_retention_is_given_up_or_retried_in_time(day: Day) -> None:
    day.start()
    day.clock.behind = timedelta(hours=20)
    day.publish("0", b"reading home", b"poison", b"reading home")
    day.clock.behind = timedelta(0)
    day.until_it_fires("letter-old")
