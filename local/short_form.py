"""Log records as lines for a person to read at a terminal."""

import logging
from datetime import UTC, datetime
from typing import Any

STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "invocation_id"}


class ShortForm(logging.Formatter):
    """Time, level, text, the extra values, then the stack if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record for a person to read."""
        extra: dict[str, Any] = {name: value for name, value in vars(record).items() if name not in STANDARD}
        stack = extra.pop("stack", "") or (self.formatException(record.exc_info) if record.exc_info else "")
        values = " ".join(f"{name}={value}" for name, value in extra.items())
        at = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        return f"{at} {record.levelname:7} {record.getMessage()} {values}".rstrip() + (f"\n{stack}" if stack else "")
