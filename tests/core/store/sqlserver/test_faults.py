"""core/store/sqlserver/faults.py: what an error of SQL Server means, from the words in which pyodbc hands it over."""

import logging
import re
from itertools import product

import pytest

from core.store.script import Script, Step
from core.store.sqlserver.batch import UNMET, run_batch
from core.store.sqlserver.faults import Fault, Trouble, misses_object, read_trouble

SOURCE = "[Microsoft][ODBC Driver 18 for SQL Server]"
ENDED = f"; [01000] {SOURCE}[SQL Server]The statement has been terminated. (3621)"
DUPLICATE = (
    "Violation of PRIMARY KEY constraint '{key}'. Cannot insert duplicate key in object '{table}'."
    " The duplicate key value is ({values})."
)


def error(state: str, number: int, text: str = "Something is the matter.", more: str = "") -> Exception:
    return Exception(state, f"[{state}] {SOURCE}[SQL Server]{text} ({number}) (SQLExecDirectW){more}")


def duplicate(key: str, table: str = "hubledger.t", values: str = "1, 0", number: int = 2627) -> Exception:
    return error("23000", number, DUPLICATE.format(key=key, table=table, values=values), ENDED)


NUMBERS = {
    Fault.DUPLICATE: "2601 2627",
    Fault.DATA: "206 220 241 242 245 248 257 511 515 547 1946 2628 3609 8114 8115 8152 8169 13609"
    " 9400 9421 9436 9448 9455 50000 50001 51000 51001 51100 51199 99999",
    Fault.CROSSED: "1205 1222 3960 3966",
    Fault.TRANSIENT: "926 4060 4221 10928 10929 40197 40501 40613 49918 49919 49920",
    Fault.LOST: "64 233 10053 10054 10060",
    Fault.LOGIN: "911 4064 18452 18456 18470 18486 18487 18488 40532 40615 47089",
    Fault.SCHEMA: "207 208 229 230 262 468 916 1934 2760 2812 271 273 544 4405 4406 8102",
    Fault.TRIGGER: "334",
}
PLACE = {"stream_id": 1, "partition_id": "0"}
STATES = ("42000", "22001", "23000", "28000", "08S01", "HYT00")


@pytest.mark.parametrize("meaning", NUMBERS)
def test_a_number_has_its_meaning_whatever_the_state_and_the_diagnostics_after_it(
    meaning: Fault, caplog: pytest.LogCaptureFixture
) -> None:
    for number, state, more in product(map(int, NUMBERS[meaning].split()), STATES, ("", ENDED)):
        given = error(state, number, more=more)
        assert read_trouble(given) == Trouble(meaning, number, str(given.args[-1]))
    assert caplog.records == []


REAL = {
    "a deadlock": (
        "40001",
        f"[40001] {SOURCE}[SQL Server]Transaction (Process ID 52) was deadlocked on lock resources with another process"
        " and has been chosen as the deadlock victim. Rerun the transaction. (1205) (SQLExecDirectW)",
        Fault.CROSSED,
    ),
    "the line cut": (
        "08S01",
        f"[08S01] {SOURCE}TCP Provider: Error code 0x68 (104) (SQLExecDirectW);"
        f" [08S01] {SOURCE}Communication link failure (104)",
        Fault.LOST,
    ),
    "nobody listens": ("HYT00", f"[HYT00] {SOURCE}Login timeout expired (0) (SQLDriverConnect)", Fault.LOST),
    "a statement too long": ("HYT00", f"[HYT00] {SOURCE}Query timeout expired (0) (SQLExecDirectW)", Fault.LOST),
    "a connection time-out": ("HYT01", f"[HYT01] {SOURCE}Connection timeout expired (0) (SQLExecute)", Fault.LOST),
    "the handshake fails": (
        "08001",
        f"[08001] {SOURCE}Client unable to establish connection because an error was encountered during handshakes"
        " before login. (26) (SQLDriverConnect)",
        Fault.LOST,
    ),
    "no such driver": (
        "01000",
        "[01000] [unixODBC][Driver Manager]Can't open lib 'ODBC Driver 18 for SQL Server' : file not found (0)"
        " (SQLDriverConnect)",
        Fault.DRIVER,
    ),
    "no such data source": (
        "IM002",
        "[IM002] [unixODBC][Driver Manager]Data source name not found and no default driver specified (0)"
        " (SQLDriverConnect)",
        Fault.DRIVER,
    ),
    "a wrong password": (
        "28000",
        f"[28000] {SOURCE}[SQL Server]Login failed for user 'app'. (18456) (SQLDriverConnect)",
        Fault.LOGIN,
    ),
    "an unknown refusal of the login": ("28000", f"[28000] {SOURCE}[SQL Server]No. (9999) (SQLDriver)", Fault.LOGIN),
    "a wrong database": (
        "42000",
        f'[42000] {SOURCE}[SQL Server]Cannot open database "x" requested by the login. The login failed. (4060)'
        f" (SQLDriverConnect); [42000] {SOURCE}[SQL Server]Cannot open database. (4060)",
        Fault.TRANSIENT,
    ),
    "a trigger that rolled back": (
        "42000",
        f"[42000] {SOURCE}[SQL Server]The transaction ended in the trigger. The batch has been aborted. (3609)"
        " (SQLExecDirectW)",
        Fault.DATA,
    ),
    "a trigger that raised before it rolled back": (
        "42000",
        f"[42000] {SOURCE}[SQL Server]ppm is out of range. (50000) (SQLExecDirectW);"
        f" [42000] {SOURCE}[SQL Server]The transaction ended in the trigger. The batch has been aborted. (3609)",
        Fault.DATA,
    ),
    "a trigger that throws the number of a step": (
        "42000",
        f"[42000] {SOURCE}[SQL Server]The record does not exist. (51100) (SQLExecDirectW)",
        Fault.DATA,
    ),
    "a type that the column does not take": (
        "22018",
        f"[22018] {SOURCE}[SQL Server]Operand type clash: date is incompatible with int (206) (SQLExecDirectW);"
        f" [42000] {SOURCE}[SQL Server]Statement(s) could not be prepared. (8180)",
        Fault.DATA,
    ),
    "a text that is no XML": (
        "42000",
        f"[42000] {SOURCE}[SQL Server]XML parsing: line 1, character 4, illegal name character (9421) (SQLExecDirectW)",
        Fault.DATA,
    ),
    "a constraint of an unknown number": ("23000", f"[23000] {SOURCE}[SQL Server]No. (9) (SQLExecute)", Fault.DATA),
    "a value of an unknown number": ("22012", f"[22012] {SOURCE}[SQL Server]By zero. (8134) (SQLExecute)", Fault.DATA),
    "an error at nextset": (
        "23000",
        f"[23000] {SOURCE}[SQL Server]Cannot insert the value NULL into column 'time_zone'. (515) (SQLMoreResults)",
        Fault.DATA,
    ),
}


@pytest.mark.parametrize("case", REAL)
def test_a_real_error_has_its_meaning(case: str, caplog: pytest.LogCaptureFixture) -> None:
    state, message, fault = REAL[case]
    assert read_trouble(Exception(state, message)).fault is fault
    assert caplog.records == []


@pytest.mark.parametrize("place", [0, 1, 99, 100, 5_000])
def test_our_own_throw_is_known_by_its_words_whatever_its_number(place: int) -> None:
    thrown = error("42000", UNMET + place, "settle_letters touched a different number of rows than expected")
    assert read_trouble(thrown).fault is Fault.THROWN
    assert read_trouble(error("42000", UNMET + place, "ppm is out of range")).fault is Fault.DATA


def test_the_words_of_our_own_throw_are_those_of_the_batches() -> None:
    text, _ = run_batch(Script("a test", (Step("close_gaps", PLACE, expect=1),)), rehearse=False)
    (words,) = re.findall(r"THROW \d+, '([^']*)'", text)
    assert read_trouble(error("42000", 51000, words)).fault is Fault.THROWN


@pytest.mark.parametrize(
    "planted",
    [
        "x (51000) (SQLExecDirectW)",
        f"x (1205) (SQLExecDirectW); [01000] {SOURCE}[SQL Server]The statement has been terminated. (3621)",
        "x (51000); y",
        "(18456)",
        "[08S01] (10054)",
        "Can't open lib",
    ],
)
def test_a_number_in_the_quoted_value_fools_nobody(planted: str) -> None:
    text = f"String or binary data would be truncated in table 't', column 'c'. Truncated value: '{planted}'."
    assert read_trouble(error("22001", 2628, text, ENDED)).fault is Fault.DATA
    assert (
        read_trouble(error("22018", 245, f"Conversion failed when converting the nvarchar value '{planted}'.")).fault
        is Fault.DATA
    )


@pytest.mark.parametrize("number", [2601, 2627])
def test_a_duplicate_names_its_key_and_its_table_and_no_other(number: int) -> None:
    trouble = read_trouble(duplicate("pk_home", "hubledger.home", number=number))
    assert trouble.fault is Fault.DUPLICATE
    assert trouble.names_key(["pk_event_hub_checkpoint", "pk_home"])
    assert trouble.names_key(["home"])
    assert not trouble.names_key(["pk_home_alert", "pk_hom", "hom", "hubledger"])
    assert not trouble.names_key([])


def test_the_name_of_a_unique_index_comes_after_its_table() -> None:
    text = (
        "Cannot insert duplicate key row in object 'hubledger.home' with unique index 'pk_home'."
        " The duplicate key value is (a)."
    )
    assert read_trouble(error("23000", 2601, text, ENDED)).names_key(["pk_home"])


@pytest.mark.parametrize("planted", ["'pk_event_hub_checkpoint'", "'pk_home'", "pk_home", "', 'pk_home', '"])
def test_the_name_of_a_key_in_the_duplicate_value_fools_nobody(planted: str) -> None:
    trouble = read_trouble(duplicate("pk_sensor_reading", values=planted))
    assert trouble.fault is Fault.DUPLICATE
    assert not trouble.names_key(["pk_home", "pk_event_hub_checkpoint"])


@pytest.mark.parametrize(
    ("given", "numbers"),
    [
        (error("42000", 102), [102]),
        (error("42000", 102, more=f"; [42000] {SOURCE}[SQL Server]Could not be prepared. (8180)"), [102]),
        (Exception("HY000", "The driver did not supply an error!"), []),
        (Exception("no state at all"), []),
        (Exception(), []),
    ],
    ids=["a number", "two numbers", "no number", "only a text", "nothing"],
)
def test_an_unknown_error_is_transient_and_logged_with_its_number(
    given: Exception, numbers: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    assert read_trouble(given).fault is Fault.TRANSIENT
    (record,) = caplog.records
    assert (record.levelno, record.__dict__["action"], record.__dict__["numbers"]) == (
        logging.WARNING,
        "classify_fault",
        numbers,
    )


def test_a_table_that_is_missing_is_told_from_one_that_is_forbidden() -> None:
    assert misses_object(error("42S02", 208, "Invalid object name 'hubledger.home'."))
    assert not misses_object(error("42000", 229, "The SELECT permission was denied on the object 'home'."))
