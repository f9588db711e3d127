"""The timer that heals partitions whose last batches were lost and that then fell silent: one log line for each."""

import logging
import os

import azure.functions as func

from core.ingest.gaps import gap_facts
from core.ingest.silence import Healed, Unhealed
from core.settings import gap_check_schedule
from handlers.services import services

log = logging.getLogger("hubledger.gaps")
bp = func.Blueprint()


@bp.function_name("heal_gaps")
@bp.timer_trigger(arg_name="timer", schedule=gap_check_schedule(os.environ), use_monitor=False)
def heal_gaps(timer: func.TimerRequest, context: func.Context) -> None:
    """Look at every partition. A fault of one is logged and tried again at the next tick; the others go on."""
    own = services()
    own.hub.check_access()  # a consumer group that is missing is told every minute, not when the first gap is found
    for looked in own.silence.run(context.invocation_id):
        _log(looked)


def _log(looked: Healed | Unhealed) -> None:
    if isinstance(looked, Healed):
        log.warning("gap healed", extra=gap_facts(looked.partition, looked.gap, looked))
    else:
        error = f"{type(looked.fault).__name__}: {looked.fault}"
        log.error("gap not healed", extra={"action": "gap", "partition": str(looked.partition), "error": error})
