import sqlite3
import time
from contextlib import closing
from pathlib import Path

from bench.size.paced import measure_paced
from bench.size.recounted import recounted
from bench.size.run import Story, run
from local.demo.chaos import counted
from local.stack.processes import Children
from local.stack.stack import Place, Stack

STORY = Story(events=4_000, homes=500, workers=1, bad=0.01, again=0.1)
PLANTED = {  # lost, doubled and changed rows: tests/bench/size/test_published.py
    "letters": "DELETE FROM event_hub_dead_letter WHERE rowid = (SELECT MIN(rowid) FROM event_hub_dead_letter)",
    "home": "UPDATE home SET armed = 1 - armed WHERE home_id = (SELECT MIN(home_id) FROM home)",
    "ledger": "DELETE FROM batch_ledger WHERE first_sequence_number = 0",
    "checkpoint": "UPDATE event_hub_checkpoint SET sequence_number = sequence_number - 1",
}


def test_every_published_event_is_accounted_for_once_and_each_plant_is_a_difference(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with Children(place.folder) as children:
        ran = run(Stack(place, children, time.sleep), children, STORY)

    def differences(store: Path) -> list[str]:
        return recounted(store, Path(ran.order.record), Path(ran.order.expected))

    assert differences(place.store) == []
    assert ran.books.accounted == ran.books.in_hub == STORY.events
    assert ran.books.balanced
    assert 0 < ran.books.dead_lettered < STORY.events * 0.02
    assert 0 < counted(ran.logs)["redelivered"] <= STORY.events * 0.15
    last = ran.looks[-1]
    assert (last.accounted, set(last.usage)) == (STORY.events, {"emulator", "publisher", "worker-1"})
    assert all(usage.resident > 1 << 20 and usage.cpu > 0 for usage in last.usage.values())
    assert {name: size > 0 for name, size in last.files.items()} == dict.fromkeys(("store", "log", "hub"), True)
    for table, statement in PLANTED.items():
        planted = tmp_path / f"{table}.db"
        with closing(sqlite3.connect(place.store)) as store, closing(sqlite3.connect(planted)) as copy:
            store.backup(copy)
            assert copy.execute(statement).rowcount > 0
            copy.commit()
        assert table in {one.partition(":")[0] for one in differences(planted)}, table


def test_at_a_pace_each_commit_is_seen_and_the_publisher_keeps_the_pace() -> None:
    (share,) = measure_paced(events=14_000, workers=1)
    assert share.note == "14,000 events, 7,000 /s published"
    assert 0 < float(share.value) < 150
