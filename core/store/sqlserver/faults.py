"""The faults that SQL Server and its driver report, by their meaning: an unmet condition, refused data, or trouble that
passes.

Numbers and states are Microsoft's: "Database engine events and errors", "Transient fault error codes" of Azure SQL, and
the SQLSTATE appendix of ODBC. A fault that is not listed counts as passing: a retry is safe, giving up an event is not.
"""

import logging
import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

from core.store.queries import DUPLICATE

log = logging.getLogger("hubledger.store")

UNMET_WORDS = "touched a different number of rows than expected"  # of our own THROW in sqlserver/batch.py
_FIRST_THROWN = 50000  # THROW and RAISERROR use this number and those above: ours, and those of a user's triggers
_DATA = {
    206, 220, 241, 242, 245, 248, 257, 511, 515, 547, 1946, 2628, 3609, 8114, 8115, 8152, 8169, 13609,
    *range(9400, 9481),  # XML parsing: such as 9436, an end tag that does not match
}  # fmt: skip
_CROSSED = {1205, 1222, 3960, 3966}
_TRANSIENT = {926, 4060, 4221, 10928, 10929, 40197, 40501, 40613, 49918, 49919, 49920}
_REFUSED_LOGIN = {911, 4064, 18452, 18456, 18470, 18486, 18487, 18488, 40532, 40615, 47089}
_SCHEMA = {
    207, 208, 229, 230, 262, 468, 916, 1934, 2760, 2812,
    271, 273, 544, 8102, 4405, 4406,  # a column that cannot be set: computed, rowversion, identity, derived in a view
}  # fmt: skip
_TRIGGER = 334  # the target of an OUTPUT without INTO cannot have an enabled trigger
_LOST = {64, 233, 10053, 10054, 10060}
_DATA_STATES = ("22", "23")
_LOST_STATES = ("08", "HYT00", "HYT01")
_NO_DRIVER_STATES = ("IM",)  # of the driver manager: no such data source, no such driver, a driver that does not load
_NO_DRIVER_TEXT = "Can't open lib"  # unixODBC reports it with state 01000
_REFUSED_LOGIN_STATE = "28000"
_MISSING_OBJECT = "42S02"
_WITH_CALL = re.compile(r"\((\d+)\) \(SQL\w+\)(?=; \[|$)")
_AT_END = re.compile(r"\((\d+)\)(?=; \[|$)")
_TAKEN = re.compile(r"duplicate key value is \((.*)\)\.", re.S)
_QUOTED = re.compile(r"'([^']*)'")


class Fault(Enum):
    """The meaning of a fault of the driver."""

    THROWN = "a condition of the batch does not hold"
    DUPLICATE = "a key exists already"
    DATA = "the database refuses a value"
    CROSSED = "another transaction was in the way: nothing was written, and the connection is still good"
    TRANSIENT = "nothing was written, and a retry may succeed on a new connection"
    LOST = "the connection failed: the batch that was on its way may have been committed"
    LOGIN = "the login is refused"
    SCHEMA = "an object or a permission is missing, a column cannot be set, or two collations meet"
    TRIGGER = "a trigger is enabled on a table of Hubledger whose changed rows are read back"
    DRIVER = "the ODBC driver is not installed"


_MEANING: dict[int, Fault] = {
    **dict.fromkeys(DUPLICATE, Fault.DUPLICATE),
    **dict.fromkeys(_DATA, Fault.DATA),
    **dict.fromkeys(_REFUSED_LOGIN, Fault.LOGIN),
    **dict.fromkeys(_LOST, Fault.LOST),
    **dict.fromkeys(_CROSSED, Fault.CROSSED),
    **dict.fromkeys(_TRANSIENT, Fault.TRANSIENT),
    **dict.fromkeys(_SCHEMA, Fault.SCHEMA),
    _TRIGGER: Fault.TRIGGER,
}


@dataclass(frozen=True, slots=True)
class Trouble:
    """A parsed error of the driver: its meaning, the server's number if it has one, and its text."""

    fault: Fault
    number: int | None
    text: str

    def names_key(self, keys: Collection[str]) -> bool:
        """Return True when the text of a duplicate names one of these keys or tables, with or without a schema.

        Its first two quoted words are names. Further quoted words are values.
        """
        return any(name.rpartition(".")[2] in keys for name in _QUOTED.findall(self.text)[:2])

    @property
    def taken(self) -> str:
        """The key of a duplicate. It is empty if the server does not name it."""
        found = _TAKEN.search(self.text)
        return found[1] if found else ""


def read_trouble(error: BaseException) -> Trouble:
    """Return the meaning of a pyodbc error. An unknown error counts as transient and is logged with its number.

    The number of a THROW does not show its meaning: 51000 is the example of Microsoft's own page.
    """
    state, message = _state_and_text(error)
    numbers = _numbers(message)
    for number in numbers:
        meaning = _MEANING.get(number)
        if number >= _FIRST_THROWN:
            meaning = Fault.THROWN if UNMET_WORDS in message else Fault.DATA
        if meaning is not None:
            return Trouble(meaning, number, message)
    if state.startswith(_LOST_STATES):
        return Trouble(Fault.LOST, None, message)
    if state.startswith(_NO_DRIVER_STATES) or _NO_DRIVER_TEXT in message:
        return Trouble(Fault.DRIVER, None, message)
    if state == _REFUSED_LOGIN_STATE:
        return Trouble(Fault.LOGIN, None, message)
    if state.startswith(_DATA_STATES):
        return Trouble(Fault.DATA, None, message)
    facts = {"action": "classify_fault", "sql_state": state, "numbers": numbers}
    log.warning("unknown database fault, taken as transient", extra=facts)
    return Trouble(Fault.TRANSIENT, None, message)


def misses_object(error: BaseException) -> bool:
    """Return True when the requested table does not exist, and False when access to it is denied."""
    return _state_and_text(error)[0] == _MISSING_OBJECT


def _numbers(message: str) -> list[int]:
    """Return the server's numbers in a message, the number of the error itself first.

    pyodbc names the ODBC call only after the number of the first diagnostic, so a number earlier in the text is part of
    a value that the server quotes.
    """
    first = _WITH_CALL.findall(message)[-1:]
    return [int(number) for number in first or _AT_END.findall(message)]


def _state_and_text(error: BaseException) -> tuple[str, str]:
    arguments = [str(argument) for argument in error.args]
    return (arguments[0], arguments[-1]) if arguments else ("", str(error))
