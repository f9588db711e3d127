"""What SQL Server and its driver report, by what it means: a conflict, refused data, or a passing trouble.

Numbers and states are Microsoft's: "Database engine events and errors", "Transient fault error codes" of Azure SQL, and
the SQLSTATE appendix of ODBC. Babelfish, PostgreSQL with the face of SQL Server, has the same numbers with PostgreSQL's
words, and one number for all that it has none for. What is not listed counts as passing: a retry is safe, giving up an
event is not.
"""

import logging
import re
from collections.abc import Collection
from enum import Enum

log = logging.getLogger("hubledger.store")

CHECKPOINT_MOVED = 51000  # our own THROW in sql/sqlserver/commit_batch.sql
LETTERS_TAKEN = 51002  # our own THROW in sql/sqlserver/commit_retry.sql
REPLAY_MOVED = 51008  # our own THROW in sql/sqlserver/commit_replay.sql
CHECKPOINT_KEY = "pk_event_hub_checkpoint"

_DUPLICATE = {2601, 2627}
_DATA = {220, 241, 242, 245, 248, 511, 515, 547, 1946, 2628, 8114, 8115, 8152, 8169, 13609}
_TRANSIENT = {
    926, 1205, 1222, 3960, 3966, 4060, 4221, 10928, 10929, 40197, 40501, 40613, 49918, 49919, 49920,
}  # fmt: skip
_REFUSED_LOGIN = {911, 4064, 18452, 18456, 18470, 18486, 18487, 18488, 40532, 40615, 47089}
_SCHEMA = {207, 208, 229, 262, 1934, 2760, 2812}
_LOST = {64, 233, 10053, 10054, 10060}
_DATA_STATES = ("22", "23")
_LOST_STATES = ("08", "HYT00", "HYT01")
_NO_DRIVER_STATES = ("IM",)  # the driver manager's own: no such data source, no such driver, it does not load
_NO_DRIVER_TEXT = "Can't open lib"  # unixODBC says it under 01000
_REFUSED_LOGIN_STATE = "28000"
_MISSING_OBJECT = "42S02"
_WITH_CALL = re.compile(r"\((\d+)\) \(SQL\w+\)(?=; \[|$)")
_AT_END = re.compile(r"\((\d+)\)(?=; \[|$)")
_QUOTED = re.compile(r"'([^']*)'")
_UNNUMBERED = 33557097  # Babelfish's, of an error for which SQL Server has no number
_WORDS = re.compile(r"\[\w+\] (?:\[[^][]+\])*")  # the state and who speaks; what follows are the server's own words
_DUPLICATE_WORDS = re.compile(r'duplicate key value violates unique constraint "([^"]+)"')
_HASH, _SHORTEST_STEM = 32, 28  # hexadecimal digits of a hash; characters that are left of a long name before it


class Fault(Enum):
    """What a fault of the driver means for a commit."""

    CONFLICT = "another owner committed first"
    LETTERS = "letters were taken from the claim"
    REPLAY = "the replay moved on, or does not run"
    DATA = "the database refuses a value"
    TRANSIENT = "nothing was written, and a retry may succeed"
    LOST = "the connection failed: what was on its way may stand or not"
    LOGIN = "the login is refused"
    SCHEMA = "an object or a permission is missing"
    DRIVER = "the ODBC driver is not installed"


_UNNUMBERED_WORDS: dict[Fault, tuple[str, ...]] = {  # what they begin with, as regular expressions
    Fault.DATA: (
        r"value \".*\" is out of range",
        r"[a-z /]{1,40} out of range",
        r"numeric field overflow|Arithmetic overflow",
        r"invalid (input syntax|byte sequence|hexadecimal|Unicode code point)",
        r"value too long for|String or binary data would be truncated",
        r"null value in column|new row for relation",
        r"unsupported Unicode escape|Unicode (high|low) surrogate",
        r"Conversion failed|Error converting",
    ),
    Fault.LOGIN: (r"role \".*\" does not exist", r"(\w+ )?authentication failed", r"no pg_hba.conf entry"),
    Fault.SCHEMA: (r"(relation|column|schema) \".*\" does not exist", r"permission denied for (table|schema)"),
}


_MEANING: dict[int, Fault] = {
    CHECKPOINT_MOVED: Fault.CONFLICT,
    LETTERS_TAKEN: Fault.LETTERS,
    REPLAY_MOVED: Fault.REPLAY,
    **dict.fromkeys(_DATA, Fault.DATA),
    **dict.fromkeys(_REFUSED_LOGIN, Fault.LOGIN),
    **dict.fromkeys(_LOST, Fault.LOST),
    **dict.fromkeys(_TRANSIENT, Fault.TRANSIENT),
    **dict.fromkeys(_SCHEMA, Fault.SCHEMA),
}


def classify(error: BaseException, racing_keys: Collection[str] = ()) -> Fault:
    """The meaning of a pyodbc error; one that is not known is transient, and is logged with its number.

    `racing_keys` are the primary keys of the commit's states: two partitions may insert one at the same time, and the
    next try finds the row and updates it.
    """
    state, message = _parts(error)
    numbers = _numbers(message)
    for number in numbers:
        if number in _DUPLICATE:
            return _of_duplicate(message, racing_keys)
        if number in _MEANING:
            return _MEANING[number]
        if number == _UNNUMBERED and (fault := _of_words(message)):
            return fault
    return _of_state(state, message, numbers)


def misses_object(error: BaseException) -> bool:
    """Whether the table that was asked for is not there, rather than not allowed."""
    state, message = _parts(error)
    return state == _MISSING_OBJECT or _words(message).startswith('relation "')


def _numbers(message: str) -> list[int]:
    """The server's numbers, that of the error itself first.

    pyodbc writes the call behind the number of the first diagnostic only. What stands earlier in the text, however much
    it looks like one, is a value that the server quotes.
    """
    first = _WITH_CALL.findall(message)[-1:]
    return [int(number) for number in first or _AT_END.findall(message)]


def _of_duplicate(message: str, racing_keys: Collection[str]) -> Fault:
    named = _DUPLICATE_WORDS.match(_words(message))
    names = [named[1]] if named else _QUOTED.findall(message)[:2]  # the constraint and the table, before the values
    if any(_is_of(name, CHECKPOINT_KEY) for name in names):
        return Fault.CONFLICT
    return Fault.TRANSIENT if any(_is_of(name, key) for key in racing_keys for name in names) else Fault.DATA


def _is_of(name: str, key: str) -> bool:
    """Whether this is the name of a key: Babelfish may add the table and a hash, and cut what is before the hash."""
    whole, stem = f"{key}{key.partition('_')[2]}", name[:-_HASH]
    hashed = re.fullmatch("[0-9a-f]*", name[-_HASH:]) is not None and len(stem) >= min(len(whole), _SHORTEST_STEM)
    return name == key or (hashed and whole.startswith(stem))


def _words(message: str) -> str:
    prefix = _WORDS.match(message)
    return message[prefix.end() :] if prefix else message


def _of_words(message: str) -> Fault | None:
    words = _words(message)
    return next((of for of, begins in _UNNUMBERED_WORDS.items() if any(re.match(one, words) for one in begins)), None)


def _of_state(state: str, message: str, numbers: list[int]) -> Fault:
    if state.startswith(_LOST_STATES):
        return Fault.LOST
    if state.startswith(_NO_DRIVER_STATES) or _NO_DRIVER_TEXT in message:
        return Fault.DRIVER
    if state == _REFUSED_LOGIN_STATE:
        return Fault.LOGIN
    if state.startswith(_DATA_STATES):
        return Fault.DATA
    facts = {"action": "classify_fault", "sql_state": state, "numbers": numbers}
    log.warning("unknown database fault, taken as transient", extra=facts)
    return Fault.TRANSIENT


def _parts(error: BaseException) -> tuple[str, str]:
    arguments = [str(argument) for argument in error.args]
    return (arguments[0], arguments[-1]) if arguments else ("", str(error))
