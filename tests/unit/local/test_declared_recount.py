"""local/declared_recount.py: the aggregates of both examples agree with their declarations, and changes are named."""

from pathlib import Path

import pytest

from core.transforms.aggregates import find_aggregate
from local.aggregate_recount import Recounted
from local.declared_recount import recount_declared
from tests.unit.local.test_activity_recount import LEVELS, Aggregated
from tests.unit.local.test_punctuality_recount import Aggregated as Punctual

CHANGES = (
    "readings = readings + 1",
    "active = active + 1",
    "ppm_hundredths = COALESCE(ppm_hundredths, 0) + 1",
    "least_ppm_hundredths = -1",
    "most_ppm_hundredths = 1",
    "first_observed_at = '2020-01-01T00:00:00.000001Z'",
    "last_observed_at = '2029-01-01T00:00:00.000000Z'",
    "window_start = '2020-01-01T00:00:00.000000Z'",
    "kind = 'other'",
)


def recounted(files: Aggregated | Punctual, name: str) -> Recounted:
    return recount_declared(find_aggregate(name), files.store)


def test_every_level_of_both_examples_agrees_with_its_rows(tmp_path: Path) -> None:
    for name, made, levels in (("home_activity", Aggregated.made, 3), ("flight_punctuality", Punctual.made, 1)):
        (tmp_path / name).mkdir()
        found = recounted(made(tmp_path / name), name)
        assert found.differences == []
        assert (len(found.coarser) + 1, found.rows > 500) == (levels, True)


@pytest.mark.parametrize("level", LEVELS)
def test_every_changed_value_is_named_with_its_level(tmp_path: Path, level: str) -> None:
    (tmp_path / "made").mkdir()
    made = Aggregated.made(tmp_path / "made")
    unnamed = []
    for number, change in enumerate(CHANGES):
        made.copied_to(tmp_path / str(number))
        copy = Aggregated(tmp_path / str(number))
        key = "home_id, window_start, kind"
        copy.change(f"UPDATE {level} SET {change} WHERE ({key}) IN (SELECT {key} FROM {level} LIMIT 1)")
        differences = recounted(copy, "home_activity").differences
        if not differences or not all(one.startswith(f"{level}: home-") for one in differences):
            unnamed.append((change, differences))
    assert unnamed == []
