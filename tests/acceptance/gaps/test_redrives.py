"""A redrive over HTTP in the host, which is killed in the middle: its letters are moved once, and it ends."""

from collections import Counter
from contextlib import closing
from pathlib import Path

from core.model.events import PartitionId
from tests.acceptance.gaps.apps import SELDOM, STREAM, App, working
from tests.fakes.builders import keep_letters

PLACES, LETTERS, RATE = ("7", "8"), 200, 100  # partitions that the hub does not have, letters of each, letters a second


def started(app: App, **changed: str) -> None:
    app.start_host(**SELDOM, TASK_SCHEDULE="* * * * * *", **changed)


def test_a_redrive_goes_on_after_its_app_was_killed_and_moves_each_letter_once(tmp_path: Path) -> None:
    with working(tmp_path) as app:
        with closing(app.engine.open()) as store:
            for place in PLACES:
                bodies = dict.fromkeys(range(LETTERS), "no such kind")
                keep_letters(store, bodies, STREAM.partition(PartitionId(place)), status="exhausted", due_at=None)
        started(app)
        assert app.request("api/dead-letters/preview?move=retry&status=exhausted")["count"] == 2 * LETTERS
        order = {
            "move": "retry",
            "filter": {"status": "exhausted"},
            "expected_count": 2 * LETTERS,
            "reason": "killed amid",
            "per_second": RATE,
        }
        job = app.open_task("redrive", **order)
        app.until(lambda: app.request(f"api/tasks/{job}")["moved"] >= LETTERS // 2)
        app.end_host()
        started(app)
        before = app.request(f"api/tasks/{job}")
        assert LETTERS // 2 <= before["moved"] < 2 * LETTERS
        app.until(lambda: app.request(f"api/tasks/{job}")["status"] == "done")
        after = app.request(f"api/tasks/{job}")
        assert (after["moved"], after["unmoved"]) == (2 * LETTERS, 0)
        requeued = Counter(
            (one.partition_id, one.sequence_number) for one in app.engine.attempts() if one.kind == "requeue"
        )
        assert requeued == {(place, number): 1 for place in PLACES for number in range(LETTERS)}
