"""Hostile parts of requests: texts with newlines for paths, and cursors whose keys have every wrong type."""

import base64
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import msgspec

from core.api.operation import cursor_of, query_of
from core.model.events import PartitionId, SequenceNumber, Span
from core.replay.pieces import PartitionRange
from core.replay.store import Replays
from examples.home_security.shapes import HomesQuery
from handlers.operations.aggregations import AggregationsQuery
from handlers.operations.letters import LettersQuery
from handlers.operations.tasks import TasksQuery
from tests.acceptance.api.served import HUB
from tests.fakes.builders import partition
from tests.fakes.replaying import opened, replay_asked

AT, JOB = "2026-01-01T00:00:00Z", "6f1e2f2b-52c8-4c5f-9d0a-0d8d3a3b9b11"
ENDS = ("\n", "\r\n", "\x00", "\u2028", " ", "\x85", "\x0b")
NUMBERS: tuple[Any, ...] = (2**63, 2**64, 10**30, -1, -(2**63) - 1, 1.5, 1e300, "1", None, True, [1], {"a": 1})
MOMENTS: tuple[Any, ...] = (
    *("2026-01-01T00:00:00", "2026-01-01", "now", "", 1767225600, 1e9, None, False, [AT]),
    *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-13-01T00:00:00Z", AT + "\n"),
)
TEXTS: tuple[Any, ...] = ("0\n", "\x00", "é", "x" * 500, "'; DROP TABLE home; --", 7, None, True, ["0"], {})
IDS: tuple[Any, ...] = ("x", JOB + "\n", JOB[:-1], 7, None, True, [JOB])
SHAPES: tuple[Any, ...] = ([], {}, None, 1, "x", [[AT]], [[]], [None] * 3, [AT, "0", 1, 2], [JOB, AT, 1], [1, 2])

# The query that a cursor of each list is bound to, and keys that are wrong in one field each.
BOUND: Mapping[str, object] = {
    "dead-letters": query_of(LettersQuery()),
    "revealed/dead-letters": query_of(LettersQuery()),
    "homes": query_of(HomesQuery()),
    "aggregations": query_of(AggregationsQuery()),
    "tasks": ("tasks", query_of(TasksQuery())),
    f"tasks/{JOB}/diff": JOB,
}
OF_LETTERS: tuple[Any, ...] = (
    *([at, "0", 1] for at in MOMENTS),
    *([AT, id, 1] for id in TEXTS),
    *([AT, "0", number] for number in NUMBERS),
)
WRONG: Mapping[str, tuple[Any, ...]] = {
    "dead-letters": OF_LETTERS,
    "revealed/dead-letters": OF_LETTERS,
    "homes": tuple([id] for id in TEXTS),
    "aggregations": tuple([number] for number in NUMBERS),
    "tasks": (*([at, JOB] for at in MOMENTS), *([AT, id] for id in IDS)),
    f"tasks/{JOB}/diff": (*([id, 1] for id in TEXTS), *(["0", number] for number in NUMBERS)),
}


def forged(bound: object, key: object) -> str:
    """Return a cursor that belongs to a query, with any JSON as its key."""
    own = cursor_of(bound, ())
    mark = msgspec.json.decode(base64.urlsafe_b64decode(own + "=" * (-len(own) % 4)))[0]
    return base64.urlsafe_b64encode(msgspec.json.encode([mark, key])).decode().rstrip("=")


def open_replay(store: Replays) -> None:
    """Open a dry run whose id is JOB, so that there is a list of its diffs."""
    ranges = (PartitionRange(PartitionId("0"), Span(SequenceNumber(0), SequenceNumber(9))),)
    opened(store, replay_asked(UUID(JOB), ranges), partition("0", hub=HUB).stream)
