"""`python -m core.worker`: ingest events without the Functions host, sharing partitions with its peers.

The worker also retries dead letters when they are due, and checks for gaps. It logs lines of JSON on stdout: one for
each of the first batches of a minute, and sums of the others. After SIGTERM or Ctrl-C, it finishes the current batches,
logs the sums, releases its partitions and ends with 0. A worker for which --grace is too short logs the sums and ends
with 70: the database rolls its batches back, and the next owner ingests them.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

from core.app import prepare_interpreter
from core.errors import HubledgerError
from core.worker.health import parts
from core.worker.work import Terms, work

SIGNALS = (signal.SIGTERM, signal.SIGINT)


def stop_at_signal(stop: Callable[[], None]) -> None:
    """Call `stop` on the running loop at the first signal, and ignore those that follow. Call it in the main thread.

    A handler of the loop ends with the loop, and one of Python with the interpreter: then a signal would kill the
    process. A signal that is ignored stays ignored.
    """
    loop = asyncio.get_running_loop()

    def take(*_: object) -> None:
        ignore_signals()
        loop.call_soon_threadsafe(stop)

    for number in SIGNALS:
        signal.signal(number, take)


def ignore_signals() -> None:
    """Ignore SIGTERM and Ctrl-C from now on. Call it before the loop ends."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


log = logging.getLogger("hubledger.worker")
LONGEST_SPAN = 3600  # seconds: the limit of --interval, --expiry and --grace
ENDED_EARLY = 70  # EX_SOFTWARE, as when a transform hangs


async def until_signal(work: Coroutine[Any, Any, None], grace: timedelta, end: Callable[[], None]) -> None:
    """Cancel the work once, however many signals come. Call `end` if the process has not ended after the grace."""
    signalled = asyncio.Event()
    stop_at_signal(signalled.set)
    task, waiting = asyncio.ensure_future(work), asyncio.ensure_future(signalled.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    if signalled.is_set():
        timer = threading.Timer(grace.total_seconds(), end)
        timer.daemon = True  # it ends with the process, whose threads may outlast the work
        timer.start()
    waiting.cancel()
    task.cancel()
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await task
    finally:
        ignore_signals()
    log.info("worker ended", extra={"action": "ended"})


def _end_early() -> None:
    log.critical("work in hand outlasts --grace; the next owner ingests it", extra={"action": "ended_early"})
    os._exit(ENDED_EARLY)


class JsonLines(logging.Formatter):
    """Formats each record as one JSON object, with its extra fields."""

    _own = frozenset(vars(logging.makeLogRecord({})))

    def format(self, record: logging.LogRecord) -> str:
        extra = {name: value for name, value in vars(record).items() if name not in self._own}
        at = datetime.fromtimestamp(record.created, UTC).isoformat()
        line = {"time": at, "level": record.levelname, "logger": record.name, "message": record.getMessage(), **extra}
        return json.dumps(line, default=str)


def main(arguments: list[str] | None = None) -> int:
    """Return 0 after a clean end, or 1, with one line on stderr, when the worker cannot work."""
    parser = argparse.ArgumentParser(prog="python -m core.worker", description=__doc__)
    parser.add_argument("--interval", type=_seconds, default=10, help="seconds between balancings of partitions (10)")
    parser.add_argument("--expiry", type=_seconds, default=60, help="seconds until a silent owner counts as gone (60)")
    parser.add_argument("--grace", type=_seconds, default=25, help="seconds after SIGTERM until it ends anyway (25)")
    parser.add_argument(
        "--health", type=_address, metavar="HOST:PORT", help="answer GET /health there (default: do not)"
    )
    given = parser.parse_args(arguments)
    if given.interval >= given.expiry:
        parser.error("--interval must be below --expiry")
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("hubledger").setLevel(logging.INFO)
    interval, expiry, grace = (timedelta(seconds=one) for one in (given.interval, given.expiry, given.grace))
    terms = Terms(interval, expiry, given.health)
    terms.cut_off.callback(_end_early)  # the last of the calls: it ends the process
    prepare_interpreter()
    try:
        asyncio.run(until_signal(work(terms), grace, terms.cut_off.close))
    except HubledgerError as error:
        print(f"worker: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= LONGEST_SPAN:
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0 and up to {LONGEST_SPAN}, not {text!r}")
    return seconds


def _address(text: str) -> str:
    try:
        parts(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


if __name__ == "__main__":
    sys.exit(main())
