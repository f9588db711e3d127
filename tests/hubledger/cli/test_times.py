"""The times of a room that `new` makes: each is cut to microseconds, from the first year to the last."""

from pathlib import Path

import pytest

from tests.hubledger.cli.project import Project

pytestmark = pytest.mark.slow
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


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.parametrize("options", [(), ("--strict",)], ids=["lenient", "strict"])
def test_the_end_of_a_day_stays_on_its_day_and_the_year_10000_is_a_letter(
    project: Project, options: tuple[str, ...]
) -> None:
    project.write("meters.jsonl", *METERS)
    project.done("hubledger", "new", "meters", "--from", "meters.jsonl", "--key", "meter_id", *options)
    event = '{{"meter_id": "M-{}", "reading": 1, "at": "{}", "serial": 1}}'
    project.write("ends.jsonl", *(event.format(at, text) for at, text in enumerate((*ENDS, AFTER))))
    found = project.tried("ends.jsonl", "--transform", "apps.meters")
    assert [one["row"]["at"] for one in found["tables"]["meter_event"]["rows"]] == list(ENDS.values())
    ((line, kind, error),) = ((one["line"], one["class"], one["error"]) for one in found["letters"])
    assert (line, kind) == (8, "poison")
    assert error.endswith("9999-12-31T23:59:59.999999-05:00 is not in the years 1 to 9999 of UTC")


def test_the_last_instant_of_all_is_a_time_of_a_sample(project: Project) -> None:
    project.write(
        "valid.jsonl",
        '{"id": "A", "valid_from": "2026-01-01T00:00:00Z", "valid_to": "9999-12-31T23:59:59.9999999Z"}',
        '{"id": "B", "valid_from": "0001-01-01T00:00:00Z", "valid_to": "2026-12-31T23:59:59.9999999Z"}',
    )
    project.done("hubledger", "new", "valid", "--from", "valid.jsonl")
    room = project.folder / "apps" / "valid"
    assert "valid_to: Instant" in (room / "transform.py").read_text()
    found = project.tried("valid.jsonl", "--transform", "apps.valid")
    rows = [one["row"]["valid_to"] for one in found["tables"]["valid_event"]["rows"]]
    assert rows == ["9999-12-31T23:59:59.999999Z", "2026-12-31T23:59:59.999999Z"]
    assert " passed" in project.done("pytest", "-q", "-n", "0", "-o", "addopts=", "apps")
