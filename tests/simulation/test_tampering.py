"""An audit with rows and hub names every change by hand to a finished store or its hub."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.simulation.histories import History, history
from tests.simulation.tamperings import TAMPERINGS, Tampering

SEED = 34  # three partitions, letters that replays made, retries, gaps with absent numbers, retracted rows


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> History:
    return history(SEED, tmp_path_factory.mktemp("base") / "store.db")


def tamper(made: History, with_it: Tampering) -> dict[str, Any]:
    """Change the store or the hub by hand; return the picked values."""
    with closing(sqlite3.connect(made.engine.path, isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        target = dict(connection.execute(with_it.pick).fetchone())
        touched = sum(connection.execute(statement, target).rowcount for statement in with_it.statements)
    if with_it.hub is not None:
        with_it.hub(made.hub, target)
    assert touched or with_it.hub is not None, "the tampering changed nothing"
    return target


def test_the_untouched_store_is_clean(base: History, tmp_path: Path) -> None:
    assert base.copied(tmp_path / "copy.db").audit() == []


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if at % 4 else []) for at, name in enumerate(TAMPERINGS)],
)
def test_a_tampering_is_named_with_its_place(name: str, base: History, tmp_path: Path) -> None:
    made, given = base.copied(tmp_path / "copy.db"), TAMPERINGS[name]
    target = tamper(made, given)
    found = made.audit()
    kinds = given.kinds.split()
    named = [
        one
        for one in found
        if (one.kind, one.partition_id) == (kinds[0], target["partition_id"])
        and given.words.format(**target) in one.detail
        and one.first <= target.get("number", one.first) <= one.last
    ]
    assert named, [f"{one.partition_id} {one.kind} {one.first}..{one.last}: {one.detail}" for one in found]
    assert sorted(one.kind for one in found) == sorted(kinds)
