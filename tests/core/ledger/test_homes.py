from datetime import timedelta

import pytest

from examples.home_security import homes
from examples.home_security.activity import Alert, HomeReading, RegisteredHome
from examples.home_security.transform import Home, HomeAlert, SensorReading
from tests.core.conftest import Office
from tests.fakes.builders import EPOCH, partition, settled

LATER = EPOCH + timedelta(days=8)


def alert(home_id: str = "home-1", minute: int = 0, sensor_id: str = "co-1", ppm: int | None = 90) -> HomeAlert:
    kind = "motion" if ppm is None else "carbon_monoxide"
    return HomeAlert(home_id, sensor_id, kind, ppm, EPOCH + timedelta(minutes=minute, microseconds=7))


def ring(office: Office, *alerts: HomeAlert, of: str = "0", first: int = 0) -> None:
    office.commit(first, first, settled({first: list(alerts)}), partition(of))


def test_a_home_is_as_its_latest_registration_says_and_found_by_how_its_id_begins(office: Office) -> None:
    names = ("home-1", "home-10", "home-2", "Home-3", "zome", "h%")
    office.commit(0, 0, settled({0: [Home(name, "Europe/Paris", True) for name in names]}))
    office.commit(1, 1, settled({1: [Home("home-1", "Asia/Kolkata", False)]}))
    stands = RegisteredHome("home-1", "Asia/Kolkata", False)
    assert office.homes.find_home("home-1") == stands
    assert [office.homes.find_home(name) for name in ("home", "HOME-1", " home-1", "", "%")] == [None] * 5
    assert office.homes.find_home("home-1  ") == (stands if office.engine.dialect.pads_texts else None)
    assert office.homes.find_homes("home-1", "", 10) == ("home-1", "home-10")
    assert office.homes.find_homes("h", "home-1", 2) == ("home-10", "home-2")
    assert office.homes.find_homes("%", "", 10) == ()
    assert office.homes.find_homes("", "", 2) == ("Home-3", "h%")


def test_alerts_of_a_home_and_a_span_are_read_from_the_newest_over_all_partitions(office: Office) -> None:
    assert office.homes.read_last_window("home-1", LATER) is None
    assert office.homes.read_alerts("home-1", EPOCH, LATER, 10) == ()
    ring(office, alert(minute=1), alert("home-10", 2), of="0")
    ring(office, alert(minute=3, ppm=None, sensor_id="motion-1"), alert(minute=0), of="7")
    found = office.homes.read_alerts("home-1", EPOCH, LATER, 10)
    assert [one.observed_at.minute for one in found] == [3, 1, 0]
    assert found[0] == Alert("motion-1", "motion", None, EPOCH + timedelta(minutes=3, microseconds=7))
    assert (found[1].ppm, found[1].observed_at.microsecond) == (90, 7)
    assert office.homes.read_alerts("home-1", EPOCH, LATER, 2) == found[:2]
    since, until = alert(minute=1).observed_at, alert(minute=3).observed_at
    assert office.homes.read_alerts("home-1", since, until, 10) == found[1:2], "a span holds not its end"


def test_alerts_at_one_time_come_in_one_order_always(office: Office) -> None:
    ring(office, *(alert(sensor_id=f"co-{at}") for at in range(4)), of="0")
    ring(office, *(alert(sensor_id=f"co-{at}") for at in range(4, 8)), of="1")
    everything = office.homes.read_alerts("home-1", EPOCH, LATER, 8)
    assert [one.sensor_id for one in everything] == [f"co-{at}" for at in (7, 6, 5, 4, 3, 2, 1, 0)]
    assert office.homes.read_alerts("home-1", EPOCH, LATER, 3) == everything[:3]


def switch(minute: int, home_id: str = "home-1") -> SensorReading:
    return SensorReading(home_id, "motion-1", "motion", "idle", None, EPOCH + timedelta(minutes=minute))


def test_the_newest_readings_of_a_home_are_read_from_the_last_to_arrive_of_few_rows(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    meter, home = SensorReading("home-1", "co-1", "carbon_monoxide", None, 7, EPOCH), Home("home-1", "UTC", True)
    office.commit(0, 3, settled({0: [home], 1: [switch(9)], 2: [switch(5, "home-10"), switch(3)], 3: [meter]}))
    office.commit(0, 0, settled({0: [switch(4)]}), partition("7"))
    found = office.homes.read_newest_readings("home-1", 10)
    assert found[0] == HomeReading("co-1", "carbon_monoxide", None, 7, EPOCH)
    assert [one.observed_at.minute for one in found] == [0, 3, 9]  # of the partition of its registration only
    assert office.homes.read_newest_readings("home-1", 2) == found[:2]
    assert office.homes.read_newest_readings("home-2", 10) == ()
    monkeypatch.setattr(homes, "MOST_ROWS", 3)
    assert office.homes.read_newest_readings("home-1", 10) == found[:2]
