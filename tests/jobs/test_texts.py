import io
from datetime import UTC, datetime

import fastavro
import pytest

from core.model.ports import parse_instant
from core.model.rows import Row
from examples.home_security.transform import Home, SensorReading
from jobs.capture import read_events
from jobs.row_texts import row_of, texts_of
from local.capture import SCHEMA
from tests.fakes.builders import reading
from tests.offenders import holds_for
from tests.sql.values import ROW_CLASSES
from tests.sql.values import row_of as sample


@holds_for(ROW_CLASSES)
def test_a_row_is_the_same_after_a_way_through_texts(row_class: type) -> None:
    row: Row = sample(row_class)
    assert row_of(row_class, texts_of(row)) == row
    assert all(text is None or isinstance(text, str) for text in texts_of(row))


def test_a_time_of_the_first_and_the_last_year_and_one_that_sql_refuses_has_a_text() -> None:
    for text in ("0001-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z"):
        row = reading(at=parse_instant(text))
        assert texts_of(row)[-1] == text
        assert row_of(SensorReading, texts_of(row)) == row
    for text in ("9999-12-31T23:00:00-05:00", "2026-01-01T00:00:00"):
        assert texts_of(reading(at=datetime.fromisoformat(text)))[-1] == text


def test_a_row_that_sql_refuses_has_texts_that_spark_can_hold() -> None:
    texts = texts_of(Home(home_id="\ud83d 👩", time_zone="UTC", armed=True))
    assert texts == ["\\ud83d 👩", "UTC", "1"]
    assert all(text is not None and text.encode() for text in texts)


TIMES = {
    "3/1/2026 11:59:59 PM": datetime(2026, 3, 1, 23, 59, 59, tzinfo=UTC),
    "2026-02-28T23:59:59.9999999Z": datetime(2026, 2, 28, 23, 59, 59, 999_999, UTC),
    "2026-02-28T23:59:59.9Z": datetime(2026, 2, 28, 23, 59, 59, 900_000, UTC),
    "2026-02-28T23:59:59+00:00": datetime(2026, 2, 28, 23, 59, 59, tzinfo=UTC),
    "2026-03-01T01:59:59.999999999+02:00": datetime(2026, 2, 28, 23, 59, 59, 999_999, UTC),
}


def file_of(text: str) -> bytes:
    names = {"SequenceNumber": 1, "Offset": "8", "EnqueuedTimeUtc": text, "Body": b"{}"}
    file = io.BytesIO()
    fastavro.writer(file, SCHEMA, [{**names, "SystemProperties": {}, "Properties": {}}])
    return file.getvalue()


@pytest.mark.parametrize("text", TIMES)
def test_a_time_of_a_file_is_cut_to_microseconds(text: str) -> None:
    (found,) = read_events(file_of(text))
    assert (found.enqueued_at, found.enqueued_at.tzinfo) == (TIMES[text], UTC)


@pytest.mark.parametrize("text", ["", "yesterday", "2026-02-28T23:59:59"])
def test_any_other_text_is_refused_by_its_words(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time of Event Hubs Capture"):
        list(read_events(file_of(text)))
