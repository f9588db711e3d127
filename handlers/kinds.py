"""The kinds of tasks: what makes each from the parts of the app, and what shows a task of it.

A new kind is a line here.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Union

from core.model.tasks import TaskKind
from core.tasks.run import Kind
from core.tasks.task import Task
from handlers.app import App
from handlers.operations import audit, audit_findings, erasures, purges, redrives, replays
from handlers.operations.audit_shapes import AuditJobAnswer
from handlers.operations.erasure_shapes import ErasureAnswer
from handlers.operations.purge_shapes import PurgeAnswer
from handlers.operations.redrive_shapes import RedriveAnswer
from handlers.operations.replay_shapes import ReplayAnswer
from handlers.operations.task_shapes import TaskAnswer


class KindOfApp(NamedTuple):
    """A kind: the function that makes it, the shape of its answers, and the function that shows a task of it. Another
    one shows it in a list, if to show it whole takes long."""

    make: Callable[[App], Kind]
    answer: type[TaskAnswer]
    shown: Callable[[Task], TaskAnswer]
    listed: Callable[[Task], TaskAnswer] | None = None


KINDS: Mapping[TaskKind, KindOfApp] = {
    "replay": KindOfApp(replays.kind, ReplayAnswer, replays.shown),
    "redrive": KindOfApp(redrives.kind, RedriveAnswer, redrives.shown, redrives.listed),
    "purge": KindOfApp(purges.kind, PurgeAnswer, purges.shown),
    "audit": KindOfApp(audit.kind, AuditJobAnswer, audit_findings.shown),
    "erasure": KindOfApp(erasures.kind, ErasureAnswer, erasures.shown),
}
ANY_TASK: Any = Union[tuple(one.answer for one in KINDS.values())]  # noqa: UP007 - it is computed


def kind_named(own: App, name: TaskKind) -> Kind:
    """Return the kind with a name, made from the parts of the app."""
    return KINDS[name].make(own)
