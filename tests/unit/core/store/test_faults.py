"""core/store/faults.py: what an error of SQL Server means, from the words in which pyodbc hands it over."""

import logging

import pytest

from core.store.sqlserver.faults import Fault, classify, misses_object

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


CONFLICTS = [("42000", 51000)]
LETTERS = [("42000", 51002)]
DATA = [
    ("22003", 220),
    ("22007", 241),
    ("22007", 242),
    ("22018", 245),
    ("22003", 248),
    ("42000", 511),
    ("23000", 515),
    ("23000", 547),
    ("42000", 1946),
    ("22001", 2628),
    ("42000", 8114),
    ("22003", 8115),
    ("22001", 8152),
    ("42000", 8169),
    ("42000", 13609),
]
TRANSIENT = [
    ("42000", 926),
    ("40001", 1205),
    ("HYT00", 1222),
    ("42000", 3960),
    ("42000", 3966),
    ("42000", 4060),
    ("42000", 4221),
    ("42000", 10928),
    ("42000", 10929),
    ("42000", 40197),
    ("42000", 40501),
    ("42000", 40613),
    ("42000", 49918),
    ("42000", 49919),
    ("42000", 49920),
]
LOST = [("08S01", number) for number in (64, 233, 10053, 10054, 10060)]
LOGIN = [("28000", number) for number in (18452, 18456, 18470, 18486, 18487, 18488)]
LOGIN += [("42000", number) for number in (911, 4064, 40532, 40615, 47089)]
SCHEMA = [("42S02", 208), ("42S22", 207), ("42000", 229), ("42000", 262), ("42000", 1934), ("42000", 2812)]
MEANINGS = [
    (state, number, fault)
    for fault, all_of_it in {
        Fault.CONFLICT: CONFLICTS,
        Fault.LETTERS: LETTERS,
        Fault.DATA: DATA,
        Fault.TRANSIENT: TRANSIENT,
        Fault.LOST: LOST,
        Fault.LOGIN: LOGIN,
        Fault.SCHEMA: SCHEMA,
    }.items()
    for state, number in all_of_it
]


@pytest.mark.parametrize(("state", "number", "fault"), MEANINGS)
@pytest.mark.parametrize("more", ["", ENDED], ids=["alone", "chained"])
def test_every_number_has_its_meaning(
    state: str, number: int, fault: Fault, more: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert classify(error(state, number, more=more)) is fault
    assert caplog.records == []


REAL = {
    "a deadlock": (
        "40001",
        f"[40001] {SOURCE}[SQL Server]Transaction (Process ID 52) was deadlocked on lock resources with another process"
        " and has been chosen as the deadlock victim. Rerun the transaction. (1205) (SQLExecDirectW)",
        Fault.TRANSIENT,
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
    "an unknown refusal of the login": ("28000", f"[28000] {SOURCE}[SQL Server]No. (99999) (SQLDriver)", Fault.LOGIN),
    "a wrong database": (
        "42000",
        f'[42000] {SOURCE}[SQL Server]Cannot open database "x" requested by the login. The login failed. (4060)'
        f" (SQLDriverConnect); [42000] {SOURCE}[SQL Server]Cannot open database. (4060)",
        Fault.TRANSIENT,
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
    assert classify(Exception(state, message)) is fault
    assert caplog.records == []


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
    assert classify(error("22001", 2628, text, ENDED)) is Fault.DATA
    assert (
        classify(error("22018", 245, f"Conversion failed when converting the nvarchar value '{planted}'."))
        is Fault.DATA
    )


@pytest.mark.parametrize("number", [2601, 2627])
def test_a_checkpoint_that_exists_already_is_a_conflict(number: int) -> None:
    assert classify(duplicate("pk_event_hub_checkpoint", number=number), ["pk_home"]) is Fault.CONFLICT


def test_a_state_that_another_partition_made_at_the_same_time_is_transient() -> None:
    assert classify(duplicate("pk_home", "hubledger.home"), ["pk_home"]) is Fault.TRANSIENT
    assert classify(duplicate("pk_home", "hubledger.home"), ["pk_home_alert"]) is Fault.DATA


@pytest.mark.parametrize(
    "key", ["pk_sensor_reading", "pk_event_hub_dead_letter", "pk_batch_ledger", "uq_batch_ledger_first"]
)
def test_a_position_that_is_taken_is_data(key: str) -> None:
    """The checkpoint's row is locked then: nobody else can have taken it at the same time."""
    assert classify(duplicate(key), ["pk_home"]) is Fault.DATA


def test_a_unique_index_is_named_behind_its_table() -> None:
    text = (
        "Cannot insert duplicate key row in object 'hubledger.home' with unique index 'pk_home'."
        " The duplicate key value is (a)."
    )
    assert classify(error("23000", 2601, text, ENDED), ["pk_home"]) is Fault.TRANSIENT


@pytest.mark.parametrize("planted", ["'pk_event_hub_checkpoint'", "'pk_home'", "pk_home"])
def test_the_name_of_a_key_in_the_duplicate_value_fools_nobody(planted: str) -> None:
    assert classify(duplicate("pk_sensor_reading", values=planted), ["pk_home"]) is Fault.DATA


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
    assert classify(given) is Fault.TRANSIENT
    (record,) = caplog.records
    assert (record.levelno, record.__dict__["action"], record.__dict__["numbers"]) == (
        logging.WARNING,
        "classify_fault",
        numbers,
    )


POSTGRES_DUPLICATE = 'duplicate key value violates unique constraint "{name}"'
HASH = "36dfa5b2d7fc11d6c45b2b3a4a9f8e01"
CHECKPOINT = "pk_event_hub_checkpoint"


class TestPostgresWords:
    """Babelfish: PostgreSQL's words behind SQL Server's numbers, and one number for all that it has none for."""

    @pytest.mark.parametrize(
        ("name", "fault"),
        [
            (CHECKPOINT, Fault.CONFLICT),
            (f"{CHECKPOINT}event_hub_checkpoint{HASH}", Fault.CONFLICT),
            (f"{CHECKPOINT}event_hub_checkpoint"[:31] + HASH, Fault.CONFLICT),
            ("pk_home", Fault.TRANSIENT),
            (f"pk_homehome{HASH}", Fault.TRANSIENT),
            ("pk_home_alert", Fault.DATA),
            (f"pk_home_alerthome_alert{HASH}", Fault.DATA),
            (f"pk_homehome_alert{HASH}", Fault.DATA),
            (f"pk_home{HASH}", Fault.DATA),
            ("pk_homes", Fault.DATA),
            ("pk_sensor_reading", Fault.DATA),
            (f"uq_batch_ledger_firstbatch_ledger{HASH}"[:63], Fault.DATA),
        ],
    )
    @pytest.mark.parametrize("number", [2627, 2601])
    def test_a_key_is_known_by_its_name_and_by_the_hashed_one(self, name: str, fault: Fault, number: int) -> None:
        assert classify(error("23000", number, POSTGRES_DUPLICATE.format(name=name)), ["pk_home"]) is fault

    @pytest.mark.parametrize("planted", ['"pk_home"', POSTGRES_DUPLICATE.format(name=CHECKPOINT), f'x"{CHECKPOINT}"'])
    def test_such_words_in_a_value_that_sql_server_quotes_fool_nobody(self, planted: str) -> None:
        assert classify(duplicate("pk_sensor_reading", values=planted), ["pk_home"]) is Fault.DATA
        text = f"String or binary data would be truncated. Truncated value: '[SQL Server]{planted}'."
        assert classify(error("22001", 2628, text, ENDED), ["pk_home"]) is Fault.DATA

    @pytest.mark.parametrize(
        "words",
        [
            'value "9223372036854775808" is out of range for type bigint',
            "bigint out of range",
            "timestamp out of range",
            'date/time field value out of range: "2026-13-01"',
            "numeric field overflow",
            'invalid input syntax for type bigint: "x"',
            "invalid input syntax for type json",
            'invalid byte sequence for encoding "UTF8": 0x00',
            'invalid hexadecimal digit: "x"',
            "invalid Unicode code point 0x0",
            "unsupported Unicode escape sequence",
            "Unicode high surrogate must not follow a high surrogate.",
            "value too long for type character varying(32)",
            "String or binary data would be truncated.\nThe statement has been terminated.",
            'null value in column "a" of relation "t" violates not-null constraint',
            "Conversion failed when converting date and/or time from character string.",
            "Error converting data type varchar to numeric.",
            "Arithmetic overflow error for data type decimal.",
        ],
    )
    def test_a_refused_value_without_a_number_is_data(self, words: str, caplog: pytest.LogCaptureFixture) -> None:
        assert classify(error("42000", 33557097, words)) is Fault.DATA
        assert caplog.records == []

    @pytest.mark.parametrize(
        ("words", "fault"),
        [
            ('role "app" does not exist', Fault.LOGIN),
            ('password authentication failed for user "app"', Fault.LOGIN),
            ('no pg_hba.conf entry for host "10.0.0.1"', Fault.LOGIN),
            ('relation "master_hubledger.home" does not exist', Fault.SCHEMA),
            ('column "armed" does not exist', Fault.SCHEMA),
            ("permission denied for table home", Fault.SCHEMA),
            ("could not serialize access due to concurrent update", Fault.TRANSIENT),
            ("terminating connection due to administrator command", Fault.TRANSIENT),
            ("the database system is starting up", Fault.TRANSIENT),
            ("canceling statement due to lock timeout", Fault.TRANSIENT),
        ],
    )
    def test_the_rest_without_a_number_has_the_meaning_of_its_words(self, words: str, fault: Fault) -> None:
        assert classify(error("42000", 33557097, words)) is fault

    def test_words_count_only_at_the_beginning(self) -> None:
        assert classify(error("42000", 33557097, "terminated: bigint out of range")) is Fault.TRANSIENT
        assert classify(error("42000", 99999, "bigint out of range")) is Fault.TRANSIENT

    @pytest.mark.parametrize(
        ("given", "missing"),
        [
            (error("42S02", 208, "Invalid object name 'hubledger.home'."), True),
            (error("42000", 33557097, 'relation "x_hubledger.home" does not exist'), True),
            (error("42000", 229, "The SELECT permission was denied on the object 'home'."), False),
            (error("42000", 33557097, "permission denied for table home"), False),
        ],
    )
    def test_a_table_that_is_missing_is_told_from_one_that_is_forbidden(self, given: Exception, missing: bool) -> None:
        assert misses_object(given) is missing
