"""The worker's alarm clock for dead letters: what the durable orchestration does in the Functions host, as a loop."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta

from core.errors import InfrastructureFault
from core.letters.retry import Keeper, claim_due, next_due_at, retry_chunk

log = logging.getLogger("hubledger.worker")
PAUSE = timedelta(seconds=5)  # when letters are due and none can be claimed: another keeper has them


async def keep_letters(
    keeper: Keeper, look: timedelta, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> None:
    """Retry what is due until it is cancelled; never sleep longer than `look`, for new letters may be due sooner.

    A round that a cancellation meets is finished by its thread; dying in it is harmless, its claims end by themselves.
    """
    while True:
        pause = await asyncio.to_thread(keep_round, keeper, look)
        await sleep(pause.total_seconds())


def keep_round(keeper: Keeper, look: timedelta) -> timedelta:
    """Retry what is due now; return how long to sleep. A fault is logged, and what it left is due again by itself."""
    try:
        due_at, now = next_due_at(keeper), keeper.clock.now()
        if due_at is None or due_at > now:
            return look if due_at is None else min(look, due_at - now)
        chunks = claim_due(keeper)
        for chunk in chunks:
            report = retry_chunk(chunk, keeper, "worker")
            log.info("letters retried", extra={"action": "retry_letters", **report.to_json()})
    except InfrastructureFault as fault:
        log.warning("letters not kept, and looked at again", extra={"action": "retry_letters", "error": str(fault)})
        return look
    return timedelta() if chunks else min(look, PAUSE)
