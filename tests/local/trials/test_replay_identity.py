"""local/trials/replay_identity.py: rows that a replay changes are named."""

import pytest

from core.errors import SchemaMismatch
from examples.home_security import transform as home_security
from examples.home_security.transform import Home
from hubledger.testing import check_replay_identity
from tests.fakes.written_modules import WrittenModules
from tests.local.trials.conftest import Plant

HOME = Home("home-1", "UTC", True)
EVENTS = [f"event {number}" for number in range(20)]


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
        check_replay_identity(plant(statement), EVENTS)


def test_a_pure_transform_passes_with_states_references_and_letters(plant: Plant) -> None:
    check_replay_identity(plant("return reading(text)"), EVENTS)
    check_replay_identity(plant("return (Home(text[-1], text, True), *reading(text))"), EVENTS)
    check_replay_identity(plant("return reading(references.get(Home, 'home-1').time_zone)"), EVENTS, references=[HOME])
    poison = "if text.endswith(('3', '4')): raise PoisonEvent(text)"
    check_replay_identity(plant(f"{poison}\n    return reading(text)"), EVENTS)


def test_a_check_in_which_no_row_is_written_fails() -> None:
    with pytest.raises(AssertionError, match="no event became a row"):
        check_replay_identity(home_security, [b"", b"x"])


def test_a_row_class_without_a_table_is_named(tmp_path: object, plant: Plant) -> None:
    name = plant("return ()")
    text = "from dataclasses import dataclass\nfrom core.model.rows import appended_to\nVERSION = '1'\n"
    row = "@appended_to('nowhere')\n@dataclass(frozen=True)\nclass Nowhere:\n    a: int\n"
    modules = WrittenModules(__import__("pathlib").Path(__import__(name).__file__).parent)
    own = modules.write(f"{text}{row}def transform(event, references): return (Nowhere(1),)\n")
    with pytest.raises(SchemaMismatch, match="there is no table nowhere"):
        check_replay_identity(own, EVENTS)
