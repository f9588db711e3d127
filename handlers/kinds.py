"""The kinds of tasks: what makes each from the parts of the app, its request, and what shows a task of it.

A new kind is a line here.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Union

from core.tasks.run import Kind
from core.tasks.statuses import TaskKind
from core.tasks.task import Task, TaskAnswer, TaskOrder, TaskRequest
from handlers.app import App
from handlers.operations import audits, erasures, purges, redrives, replays
from handlers.operations.audits import AuditJobAnswer, AuditShape
from handlers.operations.erasures import ErasureAnswer, ErasureShape
from handlers.operations.purges import PurgeAnswer, PurgeShape
from handlers.operations.redrives import RedriveAnswer, RedriveShape
from handlers.operations.replays import ReplayAnswer, ReplayShape
from handlers.operations.task_shapes import TaskShape


class KindOfApp(NamedTuple):
    """A kind: the function that makes it, the shapes of its requests and answers, the function that turns a request
    into a task, and the one that shows a task. Another one shows it in a list, if to show it whole takes long.
    `at_once` works on a new task while its client waits."""

    make: Callable[[App], Kind]
    asked: type[TaskShape]
    answer: type[TaskAnswer]
    request: Callable[[App, TaskOrder, Any], TaskRequest]
    shown: Callable[[Task], TaskAnswer]
    listed: Callable[[Task], TaskAnswer] | None = None
    at_once: Callable[[App, Task], Task] | None = None


KINDS: Mapping[TaskKind, KindOfApp] = {
    "replay": KindOfApp(replays.kind, ReplayShape, ReplayAnswer, replays.request, replays.shown),
    "redrive": KindOfApp(
        redrives.kind, RedriveShape, RedriveAnswer, redrives.request, redrives.shown, redrives.listed, redrives.at_once
    ),
    "purge": KindOfApp(purges.kind, PurgeShape, PurgeAnswer, purges.request, purges.shown),
    "audit": KindOfApp(audits.kind, AuditShape, AuditJobAnswer, audits.request, audits.shown),
    "erasure": KindOfApp(erasures.kind, ErasureShape, ErasureAnswer, erasures.request, erasures.shown),
}
ANY_TASK: Any = Union[tuple(one.answer for one in KINDS.values())]  # noqa: UP007 - it is computed
ANY_REQUEST: Any = Union[tuple(one.asked for one in KINDS.values())]  # noqa: UP007 - it is computed


def kind_named(own: App, name: TaskKind) -> Kind:
    """Return the kind with a name, made from the parts of the app."""
    return KINDS[name].make(own)
