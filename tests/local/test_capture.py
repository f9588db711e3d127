from pathlib import Path

import pytest

from local.capture import main, record_of
from local.event_hubs.codec import Described, Raw, Timestamp, ULong, encode
from local.event_hubs.events import read_publication, stamp
from local.event_hubs.log import Disk
from local.event_hubs.sections import APPLICATION_PROPERTIES
from tests.local.event_hubs.messages import message

NINE = 1_760_000_709_123  # milliseconds since 1970


def test_a_record_has_number_offset_time_key_properties_of_the_types_of_the_schema_and_body() -> None:
    given = {
        "source": "panel",
        "try": 2,
        "raw": b"\x00\xff",
        "id": Raw(b"\x98" + bytes(16)),
        "number": Raw(b"\x74\x31\x80\x00\x6e"),
        "at": Timestamp(5),
    }
    properties = encode(Described(ULong(APPLICATION_PROPERTIES), given))
    (event,) = read_publication(message(b'{"a":1}', partition_key="home-1") + properties, 0).events
    assert record_of(stamp(event, 7, 448, NINE)) == {
        "SequenceNumber": 7,
        "Offset": "448",
        "EnqueuedTimeUtc": "10/09/2025 09:05:09 AM",
        "SystemProperties": {"x-opt-partition-key": "home-1"},
        "Properties": {**given, "id": "00000000-0000-0000-0000-000000000000", "number": 1.1, "at": 5},
        "Body": b'{"a":1}',
    }
    (event,) = read_publication(message(b""), 0).events
    assert record_of(stamp(event, 0, 0, NINE))["SystemProperties"] == {}


@pytest.mark.slow
def test_a_missing_database_or_one_that_an_emulator_holds_is_refused_and_none_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--database", str(tmp_path / "none.db"), "--out", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"capture: {tmp_path / 'none.db'}: there is no such file\n"
    assert not (tmp_path / "none.db").exists()
    held = Disk(tmp_path / "hubs.db")
    held.hub("telemetry", 1, 0)
    assert main(["--database", str(tmp_path / "hubs.db"), "--out", str(tmp_path)]) == 1
    assert "locked" in capsys.readouterr().err
    held.close()
