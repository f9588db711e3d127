"""The answers of the API over a copy of a world's database, as a person asks each route that reads."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from core.app import Sources, open_core
from core.ingest.batch_log import BatchLog
from core.ingest.stalled_partitions import SilenceCheck
from core.ledger.store import Ledger
from core.model.policies import SubjectKey
from core.model.ports import Clock
from core.remote.hub.reader import read_ends
from core.settings import Settings, read_settings
from core.store.database import OneStream
from core.store.sqlite.database import SqliteDatabase
from handlers.api import ROUTES
from handlers.app import BURN_DOWN, HUB_ENDS, LETTER_COUNTS, App, LetterCount, app, read_losses
from handlers.remembered import Remembered
from tests.fakes.builders import STREAM
from tests.handlers.running import SETTINGS, forget_health, request, respond
from tests.simulation.deployments import TRANSFORMS

PLACED = ("explain_number", "reveal_number", "show_letter", "reveal_letter")
OF_A_TASK = ("show_task", "show_replay_diff")
LISTED: Mapping[str, Mapping[str, str]] = {
    **{name: {"limit": "100"} for name in ("list_letters", "reveal_letters", "list_tasks")},
    "find_commits": {"at": "2026-01-01T00:00:00Z"},
    **{name: {"move": "retry"} for name in ("preview_redrive", "reveal_preview")},
    **{name: {} for name in ("status", "status_history", "audit_ledger", "list_aggregations", "reveal_stops")},
    **{name: {} for name in ("group_letters", "reveal_groups", "health_ledger")},
}
UNASKED = {  # they show nothing of the database, or what a room keeps
    "health_live", "health_ready", "openapi", "ops", "ops_file", "show_aggregation", "reveal_places",
    "find_homes", "show_activity", "show_own_activity", "home_page",
}  # fmt: skip


@cache
def _settings() -> Settings:
    eventhub = SETTINGS["EVENTHUB"].replace("//localhost:1", "//namespace")
    return read_settings(
        {**SETTINGS, "EVENTHUB": eventhub, "EVENTHUB_CONSUMER_GROUP": "hubledger", "STORE_CONNECTION": "sqlite:none.db"}
    )


@contextmanager
def served(connection: sqlite3.Connection, hub: Any, now: Callable[[], datetime], key: SubjectKey) -> Iterator[None]:
    """Let the functions of the API answer from a database in memory, and from the hub of the world."""
    settings = replace(_settings(), erasure=key)
    assert settings.stream == STREAM
    database = SqliteDatabase(Path(":memory:"), connect=lambda: connection, now=now)
    stream, before = OneStream(database, STREAM), app.value
    with ExitStack() as closing:
        core = open_core(Sources(settings, database, hub, TRANSFORMS[0]), Clock(now, uuid4), closing)
        app.value = App(
            core=core,
            hub=hub,
            hub_ends=Remembered(lambda: read_ends(hub), HUB_ENDS),
            brief=database,
            stream=stream,
            stalled=SilenceCheck(core.without_memory(), settings.gap_grace, None),
            batch_log=BatchLog(0, now),
            letter_counts=Remembered(lambda: LetterCount(Ledger(stream).count_open(), now()), LETTER_COUNTS),
            burn_down=Remembered(lambda: read_losses(now()), BURN_DOWN),
            close=closing.close,
        )
        forget_health()
        try:
            yield
        finally:
            forget_health()
            app.value = before


def answers(task_ids: Iterable[str], places: Iterable[tuple[str, int]]) -> Iterator[tuple[str, str]]:
    """Yield the name of each route that reads, and its answer: the lists, tasks and the given places."""
    assert {one.name for one in ROUTES if "GET" in one.methods} == {*PLACED, *OF_A_TASK, *LISTED, *UNASKED}
    for name, params in LISTED.items():
        yield _answer(name, {}, params, {200, 503} if name == "health_ledger" else {200})  # 503: a partition is stopped
    for task_id in task_ids:
        for name in OF_A_TASK:
            yield _answer(name, {"task_id": task_id}, {}, {200, 404, 409})
    for id, number in places:
        for name in PLACED:
            route = {"partition_id": id, "sequence_number": str(number)}
            params = {"body": "text"} if name == "reveal_letter" else {}  # which the hub may still have
            yield _answer(name, route, params, {200, 404, 409, 410})


def _answer(name: str, route: Mapping[str, str], params: Mapping[str, str], statuses: set[int]) -> tuple[str, str]:
    response = respond(name, request("GET", params=params, route_params=route))
    text = response.get_body().decode()
    assert response.status_code in statuses, (name, route, response.status_code, text)
    return f"{name} {dict(route)}", text
