"""Every store keeps the minutes of a stream: one row a minute, for a day, whoever writes it and however often."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta

from core.ledger.store import Ledger
from core.ledger.totals import KEPT, Minute
from core.store.database import OneStream, PatientDatabase
from tests.core.conftest import Office
from tests.fakes.builders import EPOCH, STREAM, partition

DAY_LATER = EPOCH + KEPT


def minute(at: datetime, lag: int = 7) -> Minute:
    return Minute(at, lag, 2**53 + lag)


def patient(office: Office) -> Ledger:
    """Return a ledger that sends the row of a minute again after a race, as the app's does."""
    return Ledger(OneStream(PatientDatabase(office.store.database, timedelta(seconds=30)), STREAM))


def stored(office: Office, since: datetime = EPOCH - timedelta(days=9)) -> list[Minute]:
    return [*office.desk.ledger.read_minutes(since)]


def test_a_stream_that_is_not_in_the_database_has_no_minutes_and_gets_none(office: Office) -> None:
    office.desk.ledger.store_minute(minute(EPOCH))
    assert stored(office) == []


def test_minutes_come_in_order_since_a_time_with_the_times_at_which_they_were_read(office: Office) -> None:
    office.commit(0, 0)
    seconds = timedelta(seconds=15, microseconds=300)
    written = [minute(EPOCH + seconds + timedelta(minutes=at), at) for at in range(5)]
    for one in (written[3], written[0], *written):
        office.desk.ledger.store_minute(one)
    assert stored(office) == written
    assert stored(office, EPOCH + timedelta(minutes=3)) == written[3:]


def test_the_first_of_two_watches_in_one_minute_is_stored_and_the_second_changes_nothing(office: Office) -> None:
    office.commit(0, 0)
    for second, lag in ((15, 1), (0, 2), (59.9, 3)):
        office.desk.ledger.store_minute(minute(EPOCH + timedelta(seconds=second), lag))
    assert stored(office) == [minute(EPOCH + timedelta(seconds=15), 1)]


def test_watches_that_store_one_minute_at_one_moment_leave_one_row(make_office: Callable[[], Office]) -> None:
    here, there = make_office(), make_office()
    here.commit(0, 0)
    ledgers = [patient(here), patient(there)] * 3
    for at in range(10):
        now = minute(EPOCH + timedelta(minutes=at))
        with ThreadPoolExecutor(len(ledgers)) as pool:
            list(pool.map(lambda ledger, now=now: ledger.store_minute(now), ledgers))
    assert len(stored(here)) == 10


def test_a_minute_is_removed_when_one_of_a_day_later_is_stored(office: Office) -> None:
    office.commit(0, 0)
    for at in (EPOCH, EPOCH + timedelta(minutes=1), EPOCH + timedelta(hours=12)):
        office.desk.ledger.store_minute(minute(at))
    office.desk.ledger.store_minute(minute(DAY_LATER))
    assert stored(office)[0].at == EPOCH
    office.desk.ledger.store_minute(minute(DAY_LATER + timedelta(minutes=1)))
    assert stored(office)[0].at == EPOCH + timedelta(minutes=1)


def test_each_stream_has_its_own_minutes_and_the_watch_of_any_removes_the_old_ones_of_all(office: Office) -> None:
    office.commit(0, 0)
    office.commit(0, 0, of=partition(group="other"))
    other = Ledger(OneStream(office.store.database, replace(STREAM, consumer_group="other")))
    office.desk.ledger.store_minute(minute(EPOCH, 1))
    other.store_minute(minute(EPOCH, 2))
    assert stored(office) == [minute(EPOCH, 1)]
    assert other.read_minutes(EPOCH) == (minute(EPOCH, 2),)
    later = minute(DAY_LATER + timedelta(minutes=1), 3)
    other.store_minute(later)
    assert stored(office) == []
    assert other.read_minutes(EPOCH) == (later,)


def test_a_day_of_watches_leaves_a_day_of_rows(office: Office) -> None:
    office.commit(0, 0)
    for at in range(0, 3 * 24 * 60, 10):
        office.desk.ledger.store_minute(minute(EPOCH + timedelta(minutes=at)))
    assert len(stored(office)) == 24 * 6 + 1
