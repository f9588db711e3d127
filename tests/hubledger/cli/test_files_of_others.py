"""`new` and `try` on files as others publish them: no guess of `new` refuses what a later event brings."""

import json
from typing import Any

import pytest

from hubledger.cli.scaffold.sample import read_sample
from tests.hubledger.cli.project import Project, refusal

pytestmark = pytest.mark.slow
AT = '"at": "2026-03-01T10:00:0'
INTEGERS = (f'{{"id": "S-1", "temperature": 21, {AT}0Z"}}', f'{{"id": "S-2", "temperature": 22, {AT}1Z"}}')
LATER = (
    f'{{"id": "S-1", "temperature": 21.5, {AT}2Z"}}', f'{{"id": "S-2", "temperature": 22.0, {AT}3Z"}}',
    f'{{"id": "S-2", "temperature": null, {AT}4Z"}}', f'{{"id": "S 3", "temperature": 20, {AT}5Z"}}',
)  # fmt: skip
EPOCH = tuple(f'{{"id": "A-{n}", "kind": "x y", "ts": 158567398{n}, "value": 2{n}}}' for n in range(2))
CENTRAL = {
    "applicationId": "a", "deviceId": "dev-1", "enqueuedTime": "2026-03-01T10:00:00.000Z",
    "telemetry": {"temperature": 21.5, "geo": {"lat": 47.1}}, "messageProperties": {}, "enrichments": {},
}  # fmt: skip
CLOUD_EVENT = {
    "specversion": "1.0", "id": "A234-1", "source": "/sensors/tn-1", "type": "com.example.reading",
    "time": "2026-04-05T17:31:05.1234567Z", "datacontenttype": "application/json", "data": {"value": 22},
}  # fmt: skip


def made(project: Project, room: str, *lines: str, options: tuple[str, ...] = ()) -> str:
    """Make a room of lines, and return what `new` says."""
    project.write(f"{room}.jsonl", *lines)
    return project.done("hubledger", "new", room, "--from", f"{room}.jsonl", *options)


def tried(project: Project, room: str, *lines: str) -> Any:
    """Return what becomes of lines in a room."""
    project.write("later.jsonl", *lines)
    return project.tried("later.jsonl", "--transform", f"apps.{room}")


def rows_of(found: Any, table: str) -> list[Any]:
    return [one["row"] for one in found["tables"][table]["rows"]]


def test_texts_may_be_empty_or_longer_or_end_with_a_blank_wherever_they_come(project: Project) -> None:
    made(project, "firsts", '{"note": "", "n": 1}', '{"note": "b", "n": 2}')
    made(project, "jobs", '{"job": "Cook ", "n": 1}', '{"job": "Baker", "n": 2}')
    made(project, "sites", f'{{"site": "", "n": 1, {AT}0Z"}}', f'{{"site": "north", "n": 2, {AT}1Z"}}')
    said = made(project, "notes", '{"note": "ok", "n": 1}', '{"note": "open", "n": 2}')
    assert "grouped by" not in said and "  always present: note, n\n" in said
    later = ('{"note": "door open", "n": 3}', '{"note": "", "n": 4}', '{"note": "gute Tür", "n": 5}')
    found = tried(project, "notes", *later, json.dumps({"note": "x" * 3000, "n": 6}))
    assert (found["written"], found["letters"]) == (4, [])


def test_a_blank_at_the_end_is_refused_by_a_grouping_and_a_key_as_new_says(project: Project) -> None:
    lines = [f'{{"site": "{site}", "note": "a ", {AT}0Z"}}' for site in ("north", "south")]
    padded = f'{{"site": "north ", "note": "", {AT}0Z"}}'
    said = made(project, "sites", *lines)
    assert "  without a blank at the end, because it groups the aggregate: site\n" in said
    (letter,) = tried(project, "sites", *lines, padded)["letters"]
    assert (letter["line"], letter["class"]) == (3, "refused")
    said = made(project, "places", *lines, options=("--key", "site"))
    assert "  neither empty nor with a blank at the end, because it is a key: site\n" in said
    (letter,) = tried(project, "places", *lines, padded)["letters"]
    assert (letter["line"], letter["class"]) == (3, "poison")
    project.write("padded.jsonl", padded, padded.replace("north ", ""))
    said = refusal(project.hubledger("new", "x", "--from", "padded.jsonl", "--key", "site"))
    assert said == "--key site: its texts are too long for a key, or one ends with a blank, which no key has"
    project.write("empty.jsonl", padded.replace("north ", ""))
    said = refusal(project.hubledger("new", "x", "--from", "empty.jsonl", "--key", "site"))
    assert said.endswith("at `$.site`; a key has no empty text, and no blank at its end; nothing was written")


def test_new_says_what_it_assumes_of_integers_and_a_loose_room_takes_fractions_and_null(project: Project) -> None:
    said = made(project, "strict", *INTEGERS)
    assert "Assumed, because each line of strict.jsonl shows it (an event that differs becomes a letter):\n" in said
    assert "  always present: id, temperature, at\n" in said
    assert '  whole numbers, so neither 21.5 nor 10.0 nor "10": temperature\n' in said
    assert "--loose takes numbers with a fraction, and events without a value.\n" in said
    assert [one["line"] for one in tried(project, "strict", *LATER)["letters"]] == [1, 2, 3]
    said = made(project, "loose", *INTEGERS, options=("--loose", "--key", "id", "--at", "at"))
    assert "always present: id, at\n" in said and "--loose takes" not in said
    found = tried(project, "loose", *LATER)
    assert (found["written"], found["letters"]) == (4, [])
    values = [row["temperature"] for row in rows_of(found, "loose_event")]
    assert values == [21.5, 22.0, None, 20.0]
    said = made(project, "looser", *INTEGERS, options=("--loose",))
    assert "that every event has: name them by --at and --key." in said
    said = refusal(project.hubledger("new", "x", "--field", "a:text", "--loose"), 2)
    assert said.startswith("--loose is about the fields of a file")


def test_seconds_since_1970_are_instants_and_a_flag_that_contradicts_the_file_is_one_sentence(project: Project) -> None:
    said = made(project, "epochs", *EPOCH)
    assert 'Note: ts is a time, as a number since 1970 (epoch_s): --field "ts:integer" keeps the number.' in said
    assert "The aggregate sums by hour and id" in said
    assert rows_of(project.tried("--transform", "apps.epochs"), "epoch_event")[0]["ts"] == "2020-03-31T16:59:40Z"
    for given, why in {
        "ts:instant": "Expected `datetime`, got `int` - at `$.ts`; the lines show epoch_s, and --field ts:instant was",
        "value:date": "Expected `date`, got `int` - at `$.value`; the lines show integer, and --field value:date was",
        "kind:float": "Expected `float`, got `str` - at `$.kind`; the lines show text(4000), and --field kind:float",
        "kind:ascii": "- at `$.kind`; the lines show text(4000), and --field kind:ascii(40) was given",
        "value:text": "Expected `str`, got `int` - at `$.value`",
        "id:text(2)": "line 1 does not fit: the body is no event of x: Expected `str` of length <= 2 - at `$.id`",
        "missing:instant": "--field missing:instant: 2 of 2 lines of epochs.jsonl have no value of missing: write",
    }.items():
        assert why in refusal(project.hubledger("new", "x", "--from", "epochs.jsonl", "--field", given)), given


def test_a_number_since_1970_of_any_unit_is_cut_to_microseconds_and_what_is_none_is_poison(project: Project) -> None:
    fields = [part for unit in ("s", "ms", "us", "ns") for part in ("--field", f"{unit}:epoch_{unit}?")]
    project.done("hubledger", "new", "clocks", *fields, "--field", "id:integer", "--strict")
    good = {
        '"s": 1585673980.9999999999999999999': "2020-03-31T16:59:40.999999Z",
        '"s": -0.0000001': "1969-12-31T23:59:59.999999Z",
        '"s": 253402300799.9999999': "9999-12-31T23:59:59.999999Z",
        '"s": -62135596800': "0001-01-01T00:00:00Z",
        '"ms": 1585673980123.4567': "2020-03-31T16:59:40.123456Z",
        '"us": 1585673980123456.7': "2020-03-31T16:59:40.123456Z",
        '"ns": 1585673980123456999': "2020-03-31T16:59:40.123456Z",
        '"s": "1585673980"': "2020-03-31T16:59:40Z",
    }
    bad = ('"s": 253402300800', '"s": 1e300', '"ns": 1e30', '"s": "NaN"', '"s": "Infinity"', '"s": true', '"s": [1]')
    found = tried(project, "clocks", *(f'{{"id": 1, {each}}}' for each in (*good, *bad)))
    assert [(each["line"], each["class"]) for each in found["letters"]] == [
        (len(good) + place, "poison") for place in range(1, len(bad) + 1)
    ]
    rows = rows_of(found, "clock_event")
    values = [next(row[unit] for unit in ("s", "ms", "us", "ns") if row[unit] is not None) for row in rows]
    assert values == list(good.values())


FORMS = {  # of a time, a number and a day
    "at": (
        *("2026-03-01T10:00:00Z", "2026-03-01 10:00:00Z", "2026-03-01t10:00:00z", "2026-03-01T10:00:00+0100"),
        *("2026-03-01T10:00:00.123456789-01:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"),
        *("2016-12-31T23:59:60Z", "2016-12-31T24:00:00Z", "2016-12-31T23:59Z", "2016-12-31T23:59:59+01"),
        *("2016-12-31T23:59:59", "20161231T235959Z", "2016-12-31", 1585673980),
    ),
    "n": (10, -1, 10.0, "10", True),
    "day": ("2026-03-01", "2026-02-30", "2026-03-01T10:00:00Z", "20260301"),
}
KINDS = {"at": "instant", "n": "integer", "day": "date"}


def test_new_and_the_app_decide_alike_what_is_a_time_an_integer_and_a_day(project: Project) -> None:
    sound = {"at": "2026-03-01T10:00:00Z", "n": 10, "day": "2026-03-01"}
    made(project, "forms", json.dumps(sound))
    lines = [(name, json.dumps({**sound, name: value})) for name, values in FORMS.items() for value in values]
    lines += [("n", json.dumps(sound).replace("10,", f"{each},")) for each in ("1e1", "10.00")]
    letters = {one["line"] for one in tried(project, "forms", *(text for _, text in lines))["letters"]}
    for number, (name, text) in enumerate(lines, 1):
        file = project.write("one.jsonl", text)
        kinds = {one.name: one.kind for one in read_sample(file, {}).fields}
        assert (kinds[name] == KINDS[name]) is (number not in letters), text
    assert len(letters) == 16


def test_the_greatest_time_of_net_and_the_first_one_are_values_and_a_later_one_is_poison(project: Project) -> None:
    bounds = '{"id": "A", "valid_from": "0001-01-01T00:00:00Z", "valid_to": "9999-12-31T23:59:59Z"}'
    made(project, "prices", '{"id": "A", "valid_from": "2026-01-01T00:00:00Z", "valid_to": "2026-12-31T00:00:00Z"}')
    found = tried(project, "prices", bounds, bounds.replace("59Z", "59-05:00"))
    assert rows_of(found, "price_event")[0]["valid_to"] == "9999-12-31T23:59:59Z"
    (letter,) = found["letters"]
    assert "9999-12-31T23:59:59-05:00 is not in the years 1 to 9999 of UTC" in letter["error"]
    made(project, "tariffs", bounds)


def test_objects_and_lists_are_kept_as_json_and_new_says_so(project: Project) -> None:
    said = made(project, "devices", json.dumps(CENTRAL), json.dumps({**CENTRAL, "deviceId": "dev 2"}))
    kept = "kept whole as JSON text, so no field inside becomes a column"
    assert f"Note: telemetry, messageProperties, enrichments: {kept}." in said
    assert (
        json.loads(rows_of(project.tried("--transform", "apps.devices"), "device_event")[0]["telemetry"])
        == (CENTRAL["telemetry"])
    )
    said = made(project, "clouds", json.dumps(CLOUD_EVENT))
    assert f"Note: data: {kept}." in said
    assert "time of the event" in said


def test_rooms_of_such_files_are_sound(project: Project) -> None:
    made(project, "groups", f'{{"id": 1, "group": "a", {AT}0Z"}}', f'{{"id": 2, "group": "", {AT}1Z"}}')
    made(project, "epochs", *EPOCH, options=("--key", "id"))
    made(project, "loose", *INTEGERS, options=("--loose",))
    project.assert_sound("groups", "epochs", "loose")


METERS = (
    '{"meter_id": "M-1", "reading": 10, "at": "2026-03-01T10:00:00Z", "serial": 9007199254740993}',
    '{"meter_id": "M-2", "reading": 12, "at": "2026-03-01T12:00:00Z", "serial": 9007199254740993}',
)
ENDS = {  # the stored text of the time of each event
    "2026-02-28T23:59:59.9999999Z": "2026-02-28T23:59:59.999999Z",
    "2026-12-31T23:59:59.9999995Z": "2026-12-31T23:59:59.999999Z",
    "2026-12-31T23:59:59.9999994Z": "2026-12-31T23:59:59.999999Z",
    "9999-12-31T23:59:59.9999999Z": "9999-12-31T23:59:59.999999Z",
    "0001-01-01T00:00:00Z": "0001-01-01T00:00:00Z",
    "2026-02-28T23:59:59.999999Z": "2026-02-28T23:59:59.999999Z",
    "9999-12-31T23:59:59Z": "9999-12-31T23:59:59Z",
}
AFTER = "9999-12-31T23:59:59.9999999-05:00"


def test_the_end_of_a_day_stays_on_its_day_and_the_year_10000_is_a_letter(project: Project) -> None:
    project.write("meters.jsonl", *METERS)
    project.done("hubledger", "new", "meters", "--from", "meters.jsonl", "--key", "meter_id", "--strict")
    event = '{{"meter_id": "M-{}", "reading": 1, "at": "{}", "serial": 1}}'
    project.write("ends.jsonl", *(event.format(at, text) for at, text in enumerate((*ENDS, AFTER))))
    found = project.tried("ends.jsonl", "--transform", "apps.meters")
    assert [one["row"]["at"] for one in found["tables"]["meter_event"]["rows"]] == list(ENDS.values())
    ((line, kind, error),) = ((one["line"], one["class"], one["error"]) for one in found["letters"])
    assert (line, kind) == (8, "poison")
    assert error.endswith("9999-12-31T23:59:59.999999-05:00 is not in the years 1 to 9999 of UTC")
