import json
import sys
from collections.abc import Callable, Iterator
from importlib import invalidate_caches
from pathlib import Path
from typing import Any

import fastavro
import pytest

import apps
from hubledger.cli import try_events
from hubledger.cli.main import main
from hubledger.cli.output import UsageFault
from hubledger.cli.trial import EventFile
from local.capture import SCHEMA
from tests.fakes.written_modules import written_modules

HOME = {"kind": "registration", "home_id": "h-1", "time_zone": "UTC", "armed": False}
DOOR = {"kind": "door", "home_id": "h-1", "sensor_id": "s", "state": "active", "observed_at": "2026-01-01T00:00:00Z"}
BEAT = {"kind": "heartbeat", "home_id": "h-1", "sensor_id": "s", "observed_at": "2026-01-01T00:00:00Z"}
NAME = "examples.home_security"
HASHING = """from examples.home_security.transform import VERSION, Home
def transform(event, references): return (Home("h-1", str(hash(event.body)), False),)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def write(file: Path, *lines: dict[str, Any] | bytes) -> str:
    file.write_bytes(
        b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)
    )
    return str(file)


def tried(capsys: pytest.CaptureFixture[str], *arguments: str, transform: str = NAME) -> Any:
    assert main(["try", *arguments, "--transform", transform, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


COUNTS = ("events", "written", "filtered", "dead_lettered")


def counts(found: Any) -> list[int]:
    return [found[name] for name in COUNTS]


def test_each_line_is_a_row_a_letter_or_filtered(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home, door = b"\xef\xbb\xbf" + json.dumps(HOME).encode(), json.dumps(DOOR).encode() + b"\r"
    lines = (
        home,
        b"",
        door,
        b"\r",
        BEAT,
        b"[]",
        b"{",
        b"\xff",
        {**DOOR, "home_id": "h-2"},
        {**HOME, "armed": True},
        b"",
    )
    found = tried(capsys, write(file, *lines), "--against", NAME)
    assert counts(found) == [8, 3, 1, 4]
    letters = [(each["line"], each["class"]) for each in found["letters"]]
    assert letters == [(6, "poison"), (7, "poison"), (8, "poison"), (9, "reference")]
    assert found["filtered_lines"] == [5]
    assert found["tables"]["sensor_reading"]["rows"][0]["line"] == 3
    newest = {"home_id": "h-1", "time_zone": "UTC", "armed": True}
    assert found["tables"]["home"]["rows"] == [{"line": 10, "row": newest}]
    assert found["new_events_of_a_second_delivery"] == 0
    assert (found["differences"]["events"], found["differences"]["counts"]["events"]) == ([], 8)
    assert counts(tried(capsys, write(file), "--against", NAME)) == [0, 0, 0, 0]


def test_a_file_of_capture_is_tried_with_keys_and_properties(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture = file.with_suffix(".avro")
    same = {"Offset": "1", "EnqueuedTimeUtc": "1/2/2026 3:04:05 PM", "SystemProperties": {"x-opt-partition-key": "h-1"}}
    bodies = [None if each is None else json.dumps(each).encode() for each in (HOME, DOOR, None, BEAT)]
    records = [
        {**same, "SequenceNumber": 90 + n, "Properties": {"n": n}, "Body": each} for n, each in enumerate(bodies)
    ]
    with capture.open("wb") as written:
        fastavro.writer(written, SCHEMA, records)
    found = tried(capsys, str(capture))
    assert (counts(found), found["letters"][0]["line"], found["filtered_lines"]) == ([4, 2, 1, 1], 3, [4])
    events = [(each.sequence_number, each.partition_key, each.properties) for each in EventFile(capture)]
    assert events == [(n, "h-1", {"n": n}) for n in range(4)]


def test_the_limit_cuts_the_lists_and_no_count(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines: list[dict[str, Any] | bytes] = [HOME, *[DOOR] * 250, *[BEAT] * 120, *[b"{"] * 130]
    found = tried(capsys, write(file, *lines), "--limit", "2")
    assert counts(found) == [501, 251, 120, 130]
    readings = found["tables"]["sensor_reading"]
    assert (readings["count"], [each["line"] for each in readings["rows"]]) == (250, [2, 3])
    assert [each["line"] for each in found["letters"]] == [372, 373]
    assert found["filtered_lines"] == [252, 253]


def test_references_are_there_before_the_first_event(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = file.with_name("known.jsonl")
    row = {"home_id": "h-1", "time_zone": "UTC", "armed": True}
    write(known, {"table": "home", "row": row})
    found = tried(capsys, write(file, DOOR), "--references", str(known))
    assert found["tables"]["home_alert"]["count"] == 1
    assert found["tables"]["home"]["rows"] == [{"line": 0, "row": row}]


@pytest.mark.parametrize("line", [b"{", b"[]", b'{"table": "nope", "row": {}}', b'{"table": "home", "row": {}}'])
def test_a_reference_that_is_no_state_is_refused(line: bytes, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = file.with_name("known.jsonl")
    assert main(["try", write(file, DOOR), "--transform", NAME, "--references", write(known, line)]) == 1
    assert "line 1" in capsys.readouterr().err


def test_the_tables_show_rows_letters_and_filtered_lines(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["try", write(file, HOME, DOOR, BEAT, b"{"), "--transform", NAME]) == 0
    out = capsys.readouterr().out
    for part in ("sensor_reading: rows 1", "filtered: 1, line 3", "events 4, with rows 2"):
        assert part in out
    assert out.endswith(f"\n  make demo TRANSFORM={NAME} EVENTS_FROM={file} EVENTS=4\n")
    assert main(["try", write(file, b"{", b"["), "--transform", NAME]) == 1
    assert "letters 2" in capsys.readouterr().out
    assert main(["try", str(file), "--transform", "core.errors"]) == 1
    assert "core/errors.py" in capsys.readouterr().err


def test_an_event_with_two_outcomes_is_named(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with written_modules(tmp_path) as modules:
        hashing = modules.write(HASHING)
        assert main(["try", write(file, HOME, {**HOME, "armed": True}), "--transform", hashing]) == 1
    said = capsys.readouterr().out
    assert "not pure: " in said and "has two outcomes" in said and "in a process with PYTHONHASHSEED=" in said


@pytest.fixture
def rooms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    monkeypatch.setattr(try_events, "ROOT", tmp_path)
    monkeypatch.setattr(apps, "__path__", [str(tmp_path / "apps")])
    monkeypatch.delenv("TRANSFORM", raising=False)

    def make(*names: str) -> None:
        for name in names:
            (tmp_path / "apps" / name).mkdir(parents=True)
            (tmp_path / "apps" / name / "transform.py").touch()
        invalidate_caches()  # Python reads a folder again when its time changes, and one tick may see two rooms

    yield make
    for name in [one for one in sys.modules if one.startswith("apps.")]:
        del sys.modules[name]


def test_the_only_room_is_tried(rooms: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    assert try_events.chosen_transform(None) == NAME
    rooms("orders")
    assert try_events.chosen_transform(None) == "apps.orders"
    rooms("shops")
    with pytest.raises(UsageFault, match=r"--transform: apps\.orders, apps\.shops"):
        try_events.chosen_transform(None)
    assert try_events.chosen_transform("shops") == "apps.shops"
    assert try_events.chosen_transform(NAME) == NAME
    for command in (["migrate-diff", "--transform", "shopp"], ["try", "--transform", NAME, "--against", "shopp"]):
        assert main(command) == 1
        assert "no transform shopp; the rooms are apps.orders, apps.shops" in capsys.readouterr().err


def test_a_room_of_an_iot_hub_reads_device_time_and_type_from_envelopes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "fixtures" / "rooms")
    found = tried(capsys, transform="devices")
    assert counts(found) == [6, 3, 1, 2]
    rows = {name: [one["row"] for one in table["rows"]] for name, table in found["tables"].items()}
    assert rows["device"] == [{"device_id": "dev-1", "is_connected": True}]
    reading = {"device_id": "dev-1", "sent_at": "2026-01-02T03:04:05.123000Z", "celsius": 21.5, "unit": "C"}
    assert rows["device_reading"][0] == reading
    assert [one["error"] for one in found["letters"]] == ["no device has sent the event", "the IoT Hub gave no time"]
