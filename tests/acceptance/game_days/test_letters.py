from datetime import timedelta

import pytest

from tests.acceptance.game_days.day import MENDED, Day
from tests.acceptance.started import HUB

LATE = timedelta(hours=20)


def cause(error: str) -> dict[str, str]:
    """Return where the table of causes shows the cause of an error, and the letter that is its sample."""
    return {
        "CAUSE": rf"{error}.* ([0-9a-f]{{16}}) ",
        "PARTITION": rf"{error}.*? (\d+) / \d+",
        "NUMBER": rf"{error}.*? \d+ / (\d+)",
    }


def statuses(day: Day) -> list[str]:
    return [one.status for one in day.app.engine.letters()]


@pytest.mark.proof("letter")
def test_letters_of_a_bad_deployment_are_retried_by_cause_once_it_is_mended(day: Day) -> None:
    day.limits["open_letters"] = 10
    day.start(DEAD_LETTER_ATTEMPTS="3", DEAD_LETTER_BASE_SECONDS="600")  # they still wait when the operator comes
    day.publish("0", *[b"reading home", b"reading home", b"bug"] * 12)
    day.publish("1", b"poison")
    day.until_it_fires("letters-open")
    causes, letter, deployed, retried = day.follow("letters-open", **cause("KeyError"))
    assert (causes.code, letter.code, deployed.code, retried.code) == (0, 0, 0, 0), retried
    assert "bug" in letter.output
    day.until(lambda: statuses(day) == ["resolved"] * 12 + ["exhausted"], "the letters of the cause, and no other")
    day.lost = {"1": {0}}
    day.until_healthy()


@pytest.mark.soak
def test_letters_that_near_the_end_of_the_retention_are_discarded_or_retried_in_time(day: Day) -> None:
    day.start()
    oldest = {"PARTITION": r"oldest +(\d+) / \d+", "NUMBER": r"oldest +\d+ / (\d+)"}
    for at, move in enumerate(("discard", "retry")):
        day.publish("0", b"reading home", b"poison", b"reading home", ago=LATE)
        day.until_it_fires("letter-old")
        status, letter = *day.follow("First"), *day.follow("letter-old", "show", **oldest)
        assert (status.code, letter.code) == (0, 0), letter
        assert "poison" in letter.output
        if move == "retry":
            day.start(TRANSFORM=MENDED)
        assert day.follow("letter-old", move, **oldest)[0].code == 0
        day.lost = {"0": {1}}
        day.until_healthy()
        assert statuses(day) == ["discarded", "resolved"][: at + 1]


@pytest.mark.soak
def test_letters_without_bodies_are_retried_before_the_hub_forgets_their_events_and_discarded_after(day: Day) -> None:
    day.start(KEEP_BODIES="false", HUB_RETENTION_HOURS="24")
    day.publish("0", b"reading home", b"bug", b"reading home", ago=LATE)
    day.until_it_fires("events-expiring")
    day.start(TRANSFORM=MENDED)
    looked = day.follow("events-expiring", **cause("KeyError"))
    assert [ran.code for ran in looked] == [0] * 2, looked
    day.until_healthy()
    assert statuses(day) == ["resolved"]
    day.unset("TRANSFORM")
    day.publish("0", b"reading home", b"bug", b"reading home")
    day.until(lambda: statuses(day) == ["resolved", "exhausted"], "the letter")
    day.app.emulator.expire_before(HUB, "0", 6)
    day.until_it_fires("events-lost")
    lost = {"PARTITION": r"lost \(partition (\d+) before", "NUMBER": r" 0 +(\d+) +exhausted"}
    looked = [*day.follow("First"), *day.follow("events-lost", **lost)]
    assert [ran.code for ran in looked] == [0] * 3, looked
    day.lost = {"0": {4}}
    day.until_healthy()
    assert statuses(day) == ["resolved", "discarded"]
