"""hubledger/cli/output.py: times as a person writes them."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from hubledger.cli.output import UsageFault, joined, moment

NOW = datetime(2026, 3, 1, 1, 30, 5, tzinfo=UTC)


@pytest.fixture(params=["UTC", "Asia/Kolkata"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The zone of the machine."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def test_words_and_distances_become_instants_in_utc(zone: str, capsys: pytest.CaptureFixture[str]) -> None:
    midnight = {"UTC": "2026-03-01T00:00:00Z", "Asia/Kolkata": "2026-02-28T18:30:00Z"}[zone]
    before = {"UTC": "2026-02-28T00:00:00Z", "Asia/Kolkata": "2026-02-27T18:30:00Z"}[zone]
    told = {
        "now": "2026-03-01T01:30:05Z",
        "-2h": "2026-02-28T23:30:05Z",
        "-30m": "2026-03-01T01:00:05Z",
        "-3d": "2026-02-26T01:30:05Z",
        "today": midnight,
        "yesterday": before,
        "2026-03-01T05:30:00+05:30": "2026-03-01T00:00:00Z",
    }
    assert {text: moment(text, NOW) for text in told} == told
    assert moment(None) is None
    said = capsys.readouterr()
    relative = [f"{text} is {instant}" for text, instant in told.items() if not text.startswith("2026")]
    assert (said.out, said.err.splitlines()) == ("", relative), "stdout is for the answer"


@pytest.mark.parametrize("text", ["", "tomorrow", "2h", "-2", "-2y", "-h", "2026-03-01", "-999999w", "-2h "])
def test_anything_else_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(UsageFault, match="write 2026-11-23T03:00:00Z, now, today, yesterday, -30m, -2h or -3d"):
        moment(text, NOW)


def test_a_distance_after_an_option_is_its_value() -> None:
    assert joined(["replay", "--from", "-2h", "--to=-1h", "-y"]) == ["replay", "--from=-2h", "--to=-1h", "-y"]
    assert joined(["-2h", "x", "-3d", "--a=b", "-1d"]) == ["-2h", "x", "-3d", "--a=b", "-1d"]
