"""Write the log records of host and app: JSON lines to a file, a short form to the terminal."""

import json
import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from local.programs import STANDARD, ShortForm

current_invocation_id: ContextVar[str | None] = ContextVar("invocation_id", default=None)

_CHATTY = ("azure", "aiohttp.access", "asyncio")


def configure_logs(file: Path | None, *, verbose: bool) -> None:
    """Send all records to `file` (appended) and warnings, or all when `verbose`, to standard error."""
    terminal = logging.StreamHandler(sys.stderr)
    terminal.setLevel(logging.INFO if verbose else logging.WARNING)
    terminal.setFormatter(ShortForm())
    handlers: list[logging.Handler] = [terminal]
    if file is not None:
        lines = logging.FileHandler(file, encoding="utf-8")  # flushes after each record
        lines.setFormatter(JsonForm())
        handlers.append(lines)
    for handler in handlers:
        handler.addFilter(_add_invocation_id)
    logging.basicConfig(level=logging.INFO, handlers=handlers, force=True)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)


def _add_invocation_id(record: logging.LogRecord) -> bool:
    if getattr(record, "invocation_id", None) is None:
        record.invocation_id = current_invocation_id.get()
    return True


class JsonForm(logging.Formatter):
    """One JSON object per record: time, level, logger, message, invocation_id where known, and all of `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if invocation_id := getattr(record, "invocation_id", None):
            line["invocation_id"] = invocation_id
        if record.exc_info:
            line["stack"] = self.formatException(record.exc_info)
        extra = {name: value for name, value in vars(record).items() if name not in STANDARD}
        return json.dumps({**extra, **line}, default=str)
