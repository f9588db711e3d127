"""bench/size: a small run of the story is recounted without a difference, and each plant in its store is one."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bench.size.paced import measure_paced
from bench.size.recounted import recounted
from bench.size.run import Ran, Story, run
from local.demo.chaos import counted
from local.stack.processes import Children
from local.stack.stack import Place, Stack

pytestmark = pytest.mark.slow

STORY = Story(events=4_000, homes=500, workers=1, bad=0.01, again=0.1)


# Lost, doubled and changed rows: tests/bench/size/test_published.py.
PLANTED = {
    "a lost letter": (
        "DELETE FROM event_hub_dead_letter WHERE (partition_id, sequence_number) ="
        " (SELECT partition_id, sequence_number FROM event_hub_dead_letter LIMIT 1)",
        "letters",
    ),
    "a changed home": ("UPDATE home SET armed = 1 - armed WHERE home_id = (SELECT MIN(home_id) FROM home)", "home"),
    "a hole in the ledger": ("DELETE FROM batch_ledger WHERE first_sequence_number = 0", "ledger"),
    "a checkpoint that went back": (
        "UPDATE event_hub_checkpoint SET sequence_number = sequence_number - 1",
        "checkpoint",
    ),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("size"))


@pytest.fixture(scope="module")
def ran(place: Place) -> Iterator[Ran]:
    with Children(place.folder) as children:
        yield run(Stack(place, children, time.sleep), children, STORY)


def differences(ran: Ran, store: Path) -> list[str]:
    return recounted(store, Path(ran.order.record), Path(ran.order.expected))


def test_every_published_event_is_accounted_for_once(place: Place, ran: Ran) -> None:
    assert differences(ran, place.store) == []
    assert ran.books.accounted == ran.books.in_hub == STORY.events
    assert ran.books.balanced
    assert 0 < ran.books.dead_lettered < STORY.events * 0.02
    assert 0 < counted(ran.logs)["redelivered"] <= STORY.events * 0.15


def test_the_last_look_is_at_the_whole_run(ran: Ran) -> None:
    assert ran.looks[-1].accounted == STORY.events
    assert set(ran.looks[-1].usage) == {"emulator", "publisher", "worker-1"}
    assert all(usage.resident > 1 << 20 and usage.cpu > 0 for usage in ran.looks[-1].usage.values())
    assert {name: size > 0 for name, size in ran.looks[-1].files.items()} == dict.fromkeys(
        ("store", "log", "hub"), True
    )


def test_at_a_pace_each_commit_is_seen_and_the_publisher_keeps_the_pace() -> None:
    (share,) = measure_paced(events=14_000, workers=1)
    assert share.note == "14,000 events, 7,000 /s published"
    assert 0 < float(share.value) < 150


@pytest.mark.parametrize("plant", PLANTED)
def test_a_plant_is_a_difference(place: Place, ran: Ran, plant: str, tmp_path: Path) -> None:
    statement, table = PLANTED[plant]
    with closing(sqlite3.connect(place.store)) as store, closing(sqlite3.connect(tmp_path / "planted.db")) as copy:
        store.backup(copy)
        assert copy.execute(statement).rowcount > 0
        copy.commit()
    assert table in {one.partition(":")[0] for one in differences(ran, tmp_path / "planted.db")}
