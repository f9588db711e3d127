from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from examples.home_security.transform import Home, HomeAlert, SensorReading
from tests.acceptance.api.served import HUB, Contents, Served, segment
from tests.browser.homes import aggregate
from tests.fakes.builders import commit, partition, settled

NEWEST = datetime(2026, 3, 14, 17, 40, tzinfo=UTC)
ODD = ('"><script>', "50%", "a+b", "h?x=1", "h#1", "..h", "{home}", "%2e", "'--", "a\\b")
SECRET = "a secret of at least thirty-two octets"
IDS = ("H1", "H10", "H2", "QUIET", "AHEAD", "x/y", ".", *ODD)


def fill(served: Served) -> None:
    """Homes in one partition. H1 has readings and alerts of eight days, AHEAD one that is dated in the future."""
    state = served.store.read_partition(partition("0", hub=HUB))
    rows: list[Any] = [Home(one, "Europe/Paris", one == "H1") for one in IDS]
    for hours in range(8 * 24):
        at = NEWEST - timedelta(hours=hours)
        rows.append(SensorReading("H1", "m", "motion", "active" if hours % 2 else "idle", None, at))
        rows.append(SensorReading("H1", "c", "carbon_monoxide", None, hours, at))
        if hours >= 70:
            rows.append(HomeAlert("H1", "c", "carbon_monoxide", hours, at))
    ahead = datetime.now(UTC) + timedelta(days=30)
    rows += [SensorReading("AHEAD", "m", "motion", "idle", None, at) for at in (NEWEST, ahead)]
    placed = {number: [row] for number, row in enumerate(rows)}
    served.store.commit_batch(commit(state, 0, len(rows) - 1, settled(placed)))


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Contents]]:
    made = Served(tmp_path_factory.mktemp("homes"), RESIDENT_LINK_SECRET=SECRET, RESIDENT_LINK_SECONDS="600")
    fill(made)
    filled = made.contents()
    aggregate(made.path, datetime.now(UTC))
    yield made, filled
    made.close()


@pytest.fixture(scope="module")
def served(host: tuple[Served, Contents]) -> Served:
    return host[0]


def kind(period: Any, name: str) -> Any:
    return next(one for one in period["kinds"] if one["kind"] == name)


def test_homes_are_found_by_prefix_and_page_and_an_odd_id_is_addressed_by_escaping_it(served: Served) -> None:
    first = served.get("homes", prefix="H", limit=2).json
    second = served.get("homes", prefix="H", limit=2, cursor=first["next"]).json
    assert [one["home_id"] for one in first["homes"] + second["homes"]] == ["H1", "H10", "H2"]
    assert second["next"] is None
    assert served.get("homes", prefix="nobody").json == {"homes": [], "next": None}
    everyone = served.get("homes", limit=100).json["homes"]
    assert [one["home_id"] for one in everyone] == sorted(IDS)
    assert {one["home_id"] for one in everyone if not one["has_page"]} == {"x/y", "."}
    assert [served.get(f"homes/{segment(one)}/activity").json["home_id"] for one in ODD] == list(ODD)


def test_the_last_day_and_week_end_with_the_newest_event_of_the_home_and_alerts_begin_with_it(served: Served) -> None:
    found = served.get("homes/H1/activity").json
    assert (found["time_zone"], found["armed"], found["newest_at"]) == ("Europe/Paris", True, "2026-03-14T17:40:00Z")
    day, week = found["day"], found["week"]
    assert (day["since"], day["until"], day["step_minutes"]) == ("2026-03-13T17:45:00Z", "2026-03-14T17:45:00Z", 30)
    assert (week["since"], week["until"], week["step_minutes"]) == ("2026-03-07T17:45:00Z", day["until"], 240)
    motion, gas = kind(day, "motion"), kind(day, "carbon_monoxide")
    assert (motion["readings"], motion["active"], motion["ppm"]) == (24, 12, None)
    assert gas["ppm"] == {"mean": 11.5, "least": 0.0, "most": 23.0}
    assert kind(week, "motion")["readings"] == 168
    assert [len(kind(period, "motion")["steps"]) for period in (day, week)] == [24, 42]
    none = {"mean": 0.0, "least": 0.0, "most": 0.0}
    assert gas["steps"][-1] == {"at": "2026-03-14T17:15:00Z", "readings": 1, "active": 0, "ppm": none}
    assert ([one["ppm"] for one in found["alerts"]], found["more_alerts"]) == (list(range(70, 120)), True)
    earlier = served.get("homes/H1/activity", until="2026-03-08T19:00:00+02:00").json
    assert ([one["ppm"] for one in earlier["alerts"]], earlier["more_alerts"]) == (list(range(145, 192)), False)
    assert earlier["day"]["until"] == "2026-03-08T17:15:00Z"
    ahead = served.get("homes/AHEAD/activity").json  # what is dated past now hides no day that was
    assert ahead["day"]["until"] == "2026-03-14T17:45:00Z"
    assert kind(ahead["day"], "motion")["readings"] == 1
    quiet = served.get("homes/QUIET/activity").json
    assert (quiet["newest_at"], quiet["alerts"], quiet["day"]["kinds"], quiet["week"]["kinds"]) == (None, [], [], [])
    until = datetime.fromisoformat(quiet["day"]["until"])
    assert timedelta() < until - datetime.fromisoformat(quiet["at"]) <= timedelta(minutes=15)


def test_the_cut_is_shown_and_if_anything_was_committed_since(host: tuple[Served, Contents]) -> None:
    own, filled = host
    aggregated = own.contents()
    own.restore(filled)
    before = own.get("homes/H1/activity").json
    assert before["as_of"] == {"cut": {}, "is_current": False, "committed_at": None}
    assert before["day"]["kinds"] == []
    assert before["alerts"] != []  # they wait for no run
    at = datetime.now(UTC)
    aggregate(own.path, at)
    after = own.get("homes/H1/activity").json["as_of"]
    assert (after["is_current"], datetime.fromisoformat(after["committed_at"])) == (True, at)
    state = own.store.read_partition(partition("0", hub=HUB))
    last = 1 + state.checkpoint.sequence_number if state.checkpoint else 0
    own.store.commit_batch(commit(state, last, last, settled({last: [Home("H3", "UTC", True)]})))
    later = own.get("homes/H1/activity").json["as_of"]
    assert later == {**after, "is_current": False}
    own.restore(aggregated)


def test_what_is_no_home_no_id_or_no_time_is_refused_by_its_name(served: Served) -> None:
    for status, ids in ((400, ("x" * 33, "a b", "é", "\x00")), (404, ("H", "h1", "%", "1'OR'1'='1"))):
        for home_id in ids:
            refused = served.get(f"homes/{segment(home_id)}/activity")
            assert (refused.status, refused.fields) == (status, ["home_id"]), home_id
    for until in ("2026-03-14T17:40:00", "1999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"):
        assert served.get("homes/H1/activity", until=until).fields == ["until"], until
