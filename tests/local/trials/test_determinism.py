import sys
from pathlib import Path

import pytest

from core.errors import SchemaMismatch
from examples.flight_info import transform as flight_info
from examples.home_security import transform as home_security
from examples.home_security.transform import Home
from hubledger.testing import check_deterministic, check_replay_identity
from tests.fakes.written_modules import WrittenModules
from tests.local.trials.conftest import Plant

EVENTS = ["alpha beta gamma delta", "epsilon zeta", ""]


TWICE = "a second time: "
AFRESH = "in a process with PYTHONHASHSEED="


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "where"),
    [
        ("return reading(datetime.now(UTC).isoformat())", TWICE),
        ("return reading(os.urandom(4).hex())", TWICE),
        ("SEEN.append(text); return reading(str(len(SEEN)))", TWICE),
        ("if text not in SEEN: SEEN.append(text)\n    return reading(str(sorted(SEEN)))", TWICE),
        ("SEEN.append(text); return reading('first' if text[:5] == 'alpha' else SEEN[-2])", "after the later events: "),
        ("return reading(' '.join(set(text.split())))", AFRESH),
        ("return reading(str(date.today()))", AFRESH),
        ("return reading(datetime.fromtimestamp(5).isoformat())", AFRESH),
        ("return reading(str(os.getpid()))", AFRESH),
        ("return reading(str(time.time() // 1))", AFRESH),
        ("raise PoisonEvent(' '.join(set(text.split())))", AFRESH),
    ],
)
def test_an_outcome_that_depends_on_the_process_or_its_zone_is_named(plant: Plant, statement: str, where: str) -> None:
    with pytest.raises(AssertionError, match=rf"has two outcomes:\n  at first: .*\n  {where}"):
        check_deterministic(plant(statement), EVENTS)


@pytest.mark.slow
def test_a_pure_transform_passes(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    name = plant("print('hello'); return reading(' '.join(sorted(set(text.split()))))")
    for transform in (name, home_security, flight_info):
        check_deterministic(transform, EVENTS)
    with pytest.raises(AssertionError, match="at least one event"):
        check_deterministic(home_security, [])
    monkeypatch.setattr("sys.path", [each for each in sys.path if "pytest-" not in each])
    with pytest.raises(AssertionError, match=f"does not run in a new process: (?s:.*)No module named '{name}'"):
        check_deterministic(name, EVENTS)


HOME = Home("home-1", "UTC", True)
TWENTY = [f"event {number}" for number in range(20)]


@pytest.mark.parametrize(
    "statement",
    [
        "return reading(datetime.now(UTC).isoformat())",
        "SEEN.append(1); return reading(text, len(SEEN))",
        "SEEN.append(1); return () if len(SEEN) > 25 else reading(text)",
        "SEEN.append(1); return reading(text) * 2 if len(SEEN) > 25 else reading(text)",
        "SEEN.append(1); return (Home('home-2', str(len(SEEN)), True),)",
    ],
)
def test_rows_that_a_replay_changes_adds_or_takes_away_are_named(plant: Plant, statement: str) -> None:
    with pytest.raises(AssertionError, match=r"a replay changes the rows of event \d+, b'event \d+':\n  ingested: "):
        check_replay_identity(plant(statement), TWENTY)


def test_a_pure_transform_passes_with_states_references_and_letters(plant: Plant) -> None:
    check_replay_identity(plant("return reading(text)"), TWENTY)
    check_replay_identity(plant("return (Home(text[-1], text, True), *reading(text))"), TWENTY)
    check_replay_identity(plant("return reading(references.get(Home, 'home-1').time_zone)"), TWENTY, references=[HOME])
    poison = "if text.endswith(('3', '4')): raise PoisonEvent(text)"
    check_replay_identity(plant(f"{poison}\n    return reading(text)"), TWENTY)


def test_a_check_in_which_no_row_is_written_or_whose_row_class_has_no_table_fails(tmp_path: Path, plant: Plant) -> None:
    with pytest.raises(AssertionError, match="no event became a row"):
        check_replay_identity(home_security, [b"", b"x"])
    plant("return ()")  # makes the folder one of modules
    text = "from dataclasses import dataclass\nfrom core.model.rows import appended_to\nVERSION = '1'\n"
    row = "@appended_to('nowhere')\n@dataclass(frozen=True)\nclass Nowhere:\n    a: int\n"
    own = WrittenModules(tmp_path).write(f"{text}{row}def transform(event, references): return (Nowhere(1),)\n")
    with pytest.raises(SchemaMismatch, match="there is no table nowhere"):
        check_replay_identity(own, TWENTY)
