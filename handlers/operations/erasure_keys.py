"""The keys of erased subjects that the settings do not have: list them, and forget those that are lost."""

import logging

from core.api.operation import Call, operation
from core.api.problems import CONFLICT, Problem
from core.erasure.store import ErasureKeyAnswer, Erasures
from core.erasure.task import ErasureKind
from core.model.shapes import Answered, Nothing, Reason, Shape
from core.tasks.store import Tasks
from handlers.app import app

log = logging.getLogger("hubledger.api")


class ForgetKeysShape(Shape):
    """A request to forget the lost keys. Only a request with `dry_run` = false forgets them."""

    reason: Reason
    dry_run: bool = True


class ForgottenKeysAnswer(Answered):
    """The lost keys, forgotten or only listed. Without them, a retry, a replay or the next incarnation brings back what
    the hub, Capture or letters still have of events that reached the hub before `erased_at`."""

    dry_run: bool
    keys: list[ErasureKeyAnswer]


def lost_keys() -> list[ErasureKeyAnswer]:
    """Return the keys of erased subjects that the settings do not have."""
    own = app()
    return Erasures(own.stream, own.transform.row_classes).read_lost_keys(own.settings.erasure.names)


@operation("Forget lost keys of erased subjects; a dry run by default", "tasks", problems=(CONFLICT,))
def forget_erasure_keys(call: Call[Nothing, Nothing, ForgetKeysShape]) -> ForgottenKeysAnswer:
    """Delete the hashes of which the settings do not have the key. Then nothing waits for the key, and what was erased
    with it can come back."""
    own, lost = app(), lost_keys()
    if lost and not call.body.dry_run:
        stream_id = own.stream.find()
        for task_id, kind, _ in [] if stream_id is None else Tasks(own.brief).read_open(stream_id):
            if kind == ErasureKind.name:
                raise Problem(CONFLICT, f"erasure {task_id} is open, and its own key may be lost: cancel it first")
        Erasures(own.stream, own.transform.row_classes).forget_keys([one.key_hash for one in lost])
        facts = {"action": "forget keys", "who": call.who}
        log.warning("lost keys of erased subjects forgotten", extra={**facts, "keys": len(lost)})
    return ForgottenKeysAnswer(dry_run=call.body.dry_run, keys=lost)
