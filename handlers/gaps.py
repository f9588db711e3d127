"""The timer that heals partitions whose checkpoint stands while the hub is ahead: a log line for each turn."""

import logging
import os
from typing import TYPE_CHECKING

import azure.functions as func

if TYPE_CHECKING:
    from core.ingest.silence import Looked

log = logging.getLogger("hubledger.gaps")
bp = func.Blueprint()


@bp.function_name("heal_gaps")
@bp.timer_trigger(arg_name="timer", schedule=os.environ.get("WATCH_SCHEDULE") or "15 * * * * *", use_monitor=False)
def heal_gaps(timer: func.TimerRequest, context: func.Context) -> None:
    """Check every partition. A fault of one is logged, and its check is repeated at the next tick."""
    from handlers.app import app, in_time

    own = app()
    own.hub.check_access()  # reports a missing consumer group every minute, not only when a gap is found
    with in_time():
        for looked in own.silence.run(context.invocation_id):
            _note(looked)


def _note(looked: "Looked") -> None:
    from core.ingest.gaps import gap_facts
    from core.ingest.silence import Healed, Unhealed

    if isinstance(looked, Healed):
        log.warning("gap healed", extra=gap_facts(looked.partition, looked.gap, looked.healed, looked.absent))
    elif isinstance(looked, Unhealed):
        error = f"{type(looked.fault).__name__}: {looked.fault}"
        log.error("gap not healed", extra={"action": "gap", "partition": str(looked.partition), "error": error})
    else:
        facts = {"action": "trigger", "partition": str(looked.partition), "detail": looked.words}
        log.warning("trigger stands", extra=facts)
