import logging
import re
from itertools import product

import pytest

from core.store.script import Script, Step
from core.store.sqlserver.batch import UNMET, run_batch
from core.store.sqlserver.faults import Fault, Trouble, misses_object, read_trouble

SOURCE = "[Microsoft][ODBC Driver 18 for SQL Server]"
MANAGER = "[unixODBC][Driver Manager]"
ENDED = f"; [01000] {SOURCE}[SQL Server]The statement has been terminated. (3621)"
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
STATES = ("42000", "22001", "23000", "28000", "08S01", "HYT00")


def error(state: str, number: int, text: str = "Something is the matter.", more: str = "") -> Exception:
    return Exception(state, f"[{state}] {SOURCE}[SQL Server]{text} ({number}) (SQLExecDirectW){more}")


def duplicate(key: str, table: str = "hubledger.t", values: str = "1, 0", number: int = 2627) -> Trouble:
    text = f"Violation of PRIMARY KEY constraint '{key}'. Cannot insert duplicate key in object '{table}'."
    return read_trouble(error("23000", number, f"{text} The duplicate key value is ({values}).", ENDED))


@pytest.mark.parametrize("meaning", NUMBERS)
def test_a_number_has_its_meaning_whatever_the_state(meaning: Fault, caplog: pytest.LogCaptureFixture) -> None:
    for number, state, more in product(map(int, NUMBERS[meaning].split()), STATES, ("", ENDED)):
        given = error(state, number, more=more)
        assert read_trouble(given) == Trouble(meaning, number, str(given.args[-1]))
    assert caplog.records == []


# Errors whose number alone does not decide: the meaning, the state, and the words after it. ~ stands for the source,
# ~~ for that of the server.
REAL = {
    "the line cut": (
        Fault.LOST,
        "08S01",
        "~TCP Provider: Error code 0x68 (104) (SQLExecDirectW); [08S01] ~Communication link failure (104)",
    ),
    "nobody listens": (Fault.LOST, "HYT00", "~Login timeout expired (0) (SQLDriverConnect)"),
    "a statement too long": (Fault.LOST, "HYT00", "~Query timeout expired (0) (SQLExecDirectW)"),
    "a connection time-out": (Fault.LOST, "HYT01", "~Connection timeout expired (0) (SQLExecute)"),
    "the handshake fails": (Fault.LOST, "08001", "~An error during handshakes before login. (26) (SQLDriverConnect)"),
    "no such driver": (Fault.DRIVER, "01000", f"{MANAGER}Can't open lib 'x' : file not found (0) (SQLDriverConnect)"),
    "no such data source": (Fault.DRIVER, "IM002", f"{MANAGER}Data source name not found (0) (SQLDriverConnect)"),
    "an unknown refusal of the login": (Fault.LOGIN, "28000", "~~No. (9999) (SQLDriver)"),
    "a wrong database": (
        Fault.TRANSIENT,
        "42000",
        '~~Cannot open database "x" requested by the login. The login failed. (4060) (SQLDriverConnect);'
        " [42000] ~~Cannot open database. (4060)",
    ),
    "a trigger that raised before it rolled back": (
        Fault.DATA,
        "42000",
        "~~ppm is out of range. (50000) (SQLExecDirectW);"
        " [42000] ~~The transaction ended in the trigger. The batch has been aborted. (3609)",
    ),
    "a constraint of an unknown number": (Fault.DATA, "23000", "~~No. (9) (SQLExecute)"),
    "a value of an unknown number": (Fault.DATA, "22012", "~~By zero. (8134) (SQLExecute)"),
    "an error at nextset": (Fault.DATA, "23000", "~~Cannot insert the value NULL. (515) (SQLMoreResults)"),
}


@pytest.mark.parametrize("case", REAL)
def test_a_real_error_has_its_meaning(case: str, caplog: pytest.LogCaptureFixture) -> None:
    fault, state, words = REAL[case]
    message = f"[{state}] {words.replace('~~', f'{SOURCE}[SQL Server]').replace('~', SOURCE)}"
    assert read_trouble(Exception(state, message)).fault is fault
    assert caplog.records == []


def test_our_own_throw_is_known_by_the_words_of_the_batches_whatever_its_number() -> None:
    step = Step("close_gaps", {"stream_id": 1, "partition_id": "0"}, expect=1)
    (words,) = re.findall(r"THROW \d+, '([^']*)'", run_batch(Script("a test", (step,)), rehearse=False)[0])
    for place, said in product((0, 1, 99, 100, 5_000), (words, words.replace("close_gaps", "settle_letters"))):
        assert read_trouble(error("42000", UNMET + place, said)).fault is Fault.THROWN
        assert read_trouble(error("42000", UNMET + place, "ppm is out of range")).fault is Fault.DATA


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
    cut = f"String or binary data would be truncated in table 't', column 'c'. Truncated value: '{planted}'."
    wrong = f"Conversion failed when converting the nvarchar value '{planted}'."
    for given in (error("22001", 2628, cut, ENDED), error("22018", 245, wrong)):
        assert read_trouble(given).fault is Fault.DATA


@pytest.mark.parametrize("number", [2601, 2627])
def test_a_duplicate_names_its_key_and_its_table_and_no_other(number: int) -> None:
    trouble = duplicate("pk_home", "hubledger.home", number=number)
    assert trouble.fault is Fault.DUPLICATE
    assert trouble.names_key(["pk_event_hub_checkpoint", "pk_home"])
    assert trouble.names_key(["home"])
    assert not trouble.names_key(["pk_home_alert", "pk_hom", "hom", "hubledger"])
    assert not trouble.names_key([])
    text = "Cannot insert duplicate key row in object 'hubledger.home' with unique index 'pk_home'."  # after its table
    assert read_trouble(error("23000", 2601, f"{text} The duplicate key value is (a).", ENDED)).names_key(["pk_home"])


@pytest.mark.parametrize("planted", ["'pk_event_hub_checkpoint'", "'pk_home'", "pk_home", "', 'pk_home', '"])
def test_the_name_of_a_key_in_the_duplicate_value_fools_nobody(planted: str) -> None:
    trouble = duplicate("pk_sensor_reading", values=planted)
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
def test_an_unknown_error_is_transient(given: Exception, numbers: list[int], caplog: pytest.LogCaptureFixture) -> None:
    assert read_trouble(given).fault is Fault.TRANSIENT
    (record,) = caplog.records
    facts = record.__dict__
    assert (record.levelno, facts["action"], facts["numbers"]) == (logging.WARNING, "classify_fault", numbers)


def test_a_table_that_is_missing_is_told_from_one_that_is_forbidden() -> None:
    assert misses_object(error("42S02", 208, "Invalid object name 'hubledger.home'."))
    assert not misses_object(error("42000", 229, "The SELECT permission was denied on the object 'home'."))
