"""What SQL Server and its driver report, by what it means: a conflict, refused data, or a passing trouble.

Numbers and states are Microsoft's: "Database engine events and errors", "Transient fault error codes" of Azure SQL, and
the SQLSTATE appendix of ODBC. What is not listed counts as passing: a retry is safe, giving up an event is not.
"""

import logging
import re
from collections.abc import Collection
from enum import Enum

log = logging.getLogger("hubledger.store")

CHECKPOINT_MOVED = 51000  # our own THROW in sql/sqlserver/commit_batch.sql

_DUPLICATE = {2601, 2627}
_DATA = {220, 245, 515, 547, 2628, 8114, 8115, 8152}
_TRANSIENT = {
    926, 1205, 1222, 3960, 3966, 4060, 4221, 10928, 10929, 40197, 40501, 40613, 49918, 49919, 49920,
}  # fmt: skip
_REFUSED_LOGIN = {4064, 18456, 18452, 40532, 40615, 47089}
_SCHEMA = {208, 207, 229, 2812}
_LOST = {64, 233, 10053, 10054, 10060}
_POSITION_KEYS = ("pk_event_hub_checkpoint", "uq_batch_ledger_first", "pk_batch_ledger")
_DATA_STATES = ("22", "23")
_LOST_STATES = ("08", "HYT00", "HYT01")
_DRIVER_MISSING = ("IM002", "01000")
_NUMBER = re.compile(r"\((\d+)\)(?= \(SQL|;|$)")  # at the end of each diagnostic, never inside its text


class Fault(Enum):
    """What a fault of the driver means for a commit."""

    CONFLICT = "another owner committed first"
    DATA = "the database refuses a value"
    TRANSIENT = "nothing was written, and a retry may succeed"
    LOST = "the connection failed: what was on its way may stand or not"
    LOGIN = "the login is refused"
    SCHEMA = "an object or a permission is missing"
    DRIVER = "the ODBC driver is not installed"


_BY_NUMBER: tuple[tuple[set[int], Fault], ...] = (
    ({CHECKPOINT_MOVED}, Fault.CONFLICT),
    (_DATA, Fault.DATA),
    (_REFUSED_LOGIN, Fault.LOGIN),
    (_LOST, Fault.LOST),
    (_TRANSIENT, Fault.TRANSIENT),
    (_SCHEMA, Fault.SCHEMA),
)


def classify(error: BaseException, racing_keys: Collection[str] = ()) -> Fault:
    """The meaning of a pyodbc error; one that is not known is transient, and is logged with its number.

    `racing_keys` are the primary keys of the commit's states: two partitions may insert one at the same time, and the
    next try finds the row and updates it.
    """
    state, message = _parts(error)
    numbers = {int(number) for number in _NUMBER.findall(message)}
    if numbers & _DUPLICATE:
        return _of_duplicate(message, racing_keys)
    for known, fault in _BY_NUMBER:
        if numbers & known:
            return fault
    return _of_state(state, numbers)


def _of_duplicate(message: str, racing_keys: Collection[str]) -> Fault:
    if any(key in message for key in _POSITION_KEYS):
        return Fault.CONFLICT
    return Fault.TRANSIENT if any(key in message for key in racing_keys) else Fault.DATA


def _of_state(state: str, numbers: set[int]) -> Fault:
    if state.startswith(_LOST_STATES):
        return Fault.LOST
    if state in _DRIVER_MISSING:
        return Fault.DRIVER
    if state.startswith(_DATA_STATES):
        return Fault.DATA
    facts = {"action": "classify_fault", "sql_state": state, "numbers": sorted(numbers)}
    log.warning("unknown database fault, taken as transient", extra=facts)
    return Fault.TRANSIENT


def _parts(error: BaseException) -> tuple[str, str]:
    arguments = [str(argument) for argument in error.args]
    return (arguments[0], arguments[-1]) if arguments else ("", str(error))
