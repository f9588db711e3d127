"""jobs/capture.py: the times of Capture's files are read to the microsecond, and never rounded."""

import io
from datetime import UTC, datetime

import fastavro
import pytest

from jobs.capture import read_events
from local.capture import SCHEMA

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
