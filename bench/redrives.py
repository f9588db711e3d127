"""A redrive of a million letters on SQLite in the app's process, and the status of the app meanwhile."""

import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any, cast
from uuid import uuid4

from bench.api import LIMIT_MS, app_on
from bench.figures import Figure
from bench.large_store import Size, fill
from core.letters.listing import LetterChoice
from core.letters.redrive import LetterOrder
from core.model.letters import OrderedMove

LETTERS = int(os.environ.get("BENCH_LETTERS", "1000000"))
RATE = 5_000
EVERY_S = 0.2  # between two requests for the status
IN_ORDER = """
UPDATE event_hub_dead_letter
   SET failed_at = strftime('%Y-%m-%dT%H:%M:%S', 1767225600 + sequence_number / 10, 'unixepoch') || '.000000Z'
"""  # the letters of `large_store` failed in no order, so that every page of three indexes changes with each piece


def measure() -> Iterator[Figure]:
    """Measure the letters per second of a retry and of a discard, and the time of the status meanwhile."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = Path(folder) / "store.db"
        fill(path, Size(LETTERS, LETTERS))
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(IN_ORDER)
        ask = app_on(path)
        while ask("status").status_code == 503:
            pass
        yield from _figures("requeue", ask, LetterChoice())
        yield from _figures("discard", ask, LetterChoice(status="waiting"))


def _figures(move: OrderedMove, ask: Callable[..., Any], wanted: LetterChoice) -> Iterator[Figure]:
    times: list[float] = []
    over = threading.Event()
    watch = threading.Thread(target=_watch, args=(ask, times, over))
    watch.start()
    try:
        letters, seconds = _redrive(move, wanted)
    finally:
        over.set()
        watch.join()
    rate = letters / seconds
    target, met = (f">= {RATE}", rate >= RATE) if move == "requeue" else ("", None)
    yield Figure(f"{letters:,} letters, {move} by one job", rate, "letters/s", target, met)
    slow = median(times)
    note = f"{len(times)} requests, the slowest {max(times):.0f} ms"
    yield Figure(f"status during the {move}, median", slow, "ms", f"< {LIMIT_MS:g}", slow < LIMIT_MS, note)


def _redrive(move: OrderedMove, wanted: LetterChoice) -> tuple[int, float]:
    from core.letters.redrive import RedriveKind, redrive_of, redrive_task
    from core.model.letters import MOVES
    from core.tasks.run import open_task, work_on
    from core.tasks.task import TaskOrder
    from handlers.app import app
    from handlers.operations.tasks import kind_named

    means = cast(RedriveKind, kind_named(app(), "redrive"))
    count = means.listing.count_matching(wanted, MOVES[move].sources)
    stream_id = app().stream.find()
    assert stream_id is not None
    order = TaskOrder(uuid4(), stream_id, "somebody", "because", datetime.now(UTC))
    asked = redrive_task(order, LetterOrder(move, wanted, count), means.listing)
    task = open_task(asked, means.tasks)
    began = time.perf_counter()
    work_on(task.task_id, None, means, datetime.now(UTC) + timedelta(hours=1))
    seconds = time.perf_counter() - began
    ended = means.tasks.find(task.task_id)
    if ended is None or redrive_of(ended).moved != count:
        raise RuntimeError(f"not all letters were moved: {ended}")
    return count, seconds


def _watch(ask: Callable[..., Any], times: list[float], over: threading.Event) -> None:
    """Ask for the status again and again, and store the milliseconds of each answer."""
    while not over.wait(EVERY_S):
        began = time.perf_counter()
        ask("status")
        times.append(1_000 * (time.perf_counter() - began))
