"""The frame of every program here: its parser, log lines for a terminal, and a flag for Ctrl-C and SIGTERM."""

import argparse
import logging
import os
import re
import signal
import threading
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

APP = Path(__file__).resolve().parents[1]  # the folder of function_app.py
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(Exception):
    """A signal arrived. `signal_number` names it."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(signal_number).name}")
        self.signal_number = signal_number


class Interruption:
    """Raise a signal in the next `pause` and nowhere else, so that no step stops half-way."""

    def __init__(self) -> None:
        self._arrived = threading.Event()
        self._number = 0

    def listen(self) -> None:
        """Catch the signals from now on, in the main thread."""
        for number in SIGNALS:
            signal.signal(number, self._take)

    def pause(self, seconds: float) -> None:
        """Sleep. Raises Interrupted as soon as a signal arrives."""
        if self._arrived.wait(seconds):
            raise Interrupted(self._number)

    def _take(self, number: int, _: FrameType | None) -> None:
        self._number = number
        self._arrived.set()


BY_MAKE = "ASKED_BY_MAKE"  # set in the environment by the targets whose settings are the options of a program
_OPTION = re.compile(r"--([a-z]+(?:-[a-z]+)*)")
_ARGUMENT = re.compile(r"^argument (--[a-z-]+)[^:]*:")


def asked_as(text: str) -> str:
    """Return a text with its options named as the caller has named them: --hub-port, or HUB_PORT= of make."""
    if BY_MAKE not in os.environ:
        return text
    return _OPTION.sub(lambda found: f"{found[1].replace('-', '_').upper()}=", text)


class Parser(argparse.ArgumentParser):
    """Refuses in one line where make has called, because nobody has typed an option, and otherwise after the usage."""

    def error(self, message: str) -> NoReturn:
        """Print why the options are refused, and end with 2."""
        if BY_MAKE in os.environ:
            said = asked_as(_ARGUMENT.sub(r"\1:", message)).replace("=:", ":", 1)
            self.exit(2, f"{self.prog.rpartition('.')[2]}: {said}\n")
        super().error(message)


STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "invocation_id"}


class ShortForm(logging.Formatter):
    """Time, level, text, the extra values, then the stack if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        extra: dict[str, Any] = {name: value for name, value in vars(record).items() if name not in STANDARD}
        stack = extra.pop("stack", "") or (self.formatException(record.exc_info) if record.exc_info else "")
        values = " ".join(f"{name}={value}" for name, value in extra.items())
        at = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        return f"{at} {record.levelname:7} {record.getMessage()} {values}".rstrip() + (f"\n{stack}" if stack else "")
