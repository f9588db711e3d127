from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.errors import SettingsRefused
from core.model.letters import Backoff, LetterPolicy
from core.model.policies import AccessPolicy, Fuse, embedded_path, read_store_connection
from core.settings import read_settings

GOOD = {
    "STORE_CONNECTION": "sqlite:store.db",
    "EVENTHUB_NAME": "telemetry",
    "EVENTHUB_CONSUMER_GROUP": "hubledger",
    "EVENTHUB": "Endpoint=sb://localhost",
}


def access_of(**named: str) -> AccessPolicy:
    return read_settings({**GOOD, **named}).access


def faults(**changed: str | None) -> list[str]:
    environment = {name: value for name, value in {**GOOD, **changed}.items() if value is not None}
    with pytest.raises(SettingsRefused) as refusal:
        read_settings(environment)
    return refusal.value.faults


def test_without_further_settings_each_has_the_value_of_the_design() -> None:
    settings = read_settings(GOOD)
    assert (settings.store_connection, settings.transform) == ("sqlite:store.db", "examples.home_security")
    assert (settings.event_hub, settings.consumer_group) == ("telemetry", "hubledger")
    assert (settings.hub_connection, settings.hub_namespace) == ("Endpoint=sb://localhost", None)
    assert (settings.reference_memory, settings.store_patience) == (timedelta(seconds=60), timedelta(seconds=20))
    assert (settings.reader_group, settings.anchoring) == ("hubledger-reader", "first")
    assert (settings.heal_deadline, settings.gap_grace) == (timedelta(seconds=120), timedelta(seconds=120))
    assert settings.fuse == Fuse(share=0.5, floor=20, patience=10)
    assert settings.letters == LetterPolicy(Backoff(timedelta(seconds=30), timedelta(hours=1), 8), True)
    assert (settings.spark.engine, settings.spark.submit) == ("none", "spark-submit")
    assert (settings.spark.jobs, settings.spark.lake) == (None, None)
    assert (settings.spark.grace, settings.spark.deadline) == (timedelta(minutes=10), timedelta(hours=2))
    access = settings.access
    assert (access.signs_in, access.operator_role, access.link_secrets) == (False, None, ())
    assert access.link_life == timedelta(hours=1)
    identity = {**GOOD, "EVENTHUB": "", "EVENTHUB__fullyQualifiedNamespace": "ns.servicebus.windows.net"}
    named = read_settings(identity)  # a hub reached by identity needs no connection string
    assert (named.hub_connection, named.hub_namespace) == (None, "ns.servicebus.windows.net")
    built_in = read_settings({**GOOD, "EVENTHUB": f"{BUILT_IN};EntityPath=mine-1", "EVENTHUB_NAME": "mine-1"})
    assert built_in.stream.event_hub == "iothub-ns-mine.servicebus.windows.net/mine-1", "as the trigger has it"


LETTERS = {
    "DEAD_LETTER_BASE_SECONDS": "1.5",
    "DEAD_LETTER_CEILING_SECONDS": "60",
    "DEAD_LETTER_ATTEMPTS": "3",
    "DEAD_LETTER_CHUNK": "50",
    "DEAD_LETTER_FAN_OUT": "4",
    "DEAD_LETTER_LEASE_SECONDS": "90",
    "KEEP_BODIES": "False",
}
OWN_BACKOFF = Backoff(timedelta(seconds=1.5), timedelta(seconds=60), 3)


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"ANCHOR": "latest"}, "anchoring", "latest"),
        ({"ANCHOR": "2026-01-01T00:00:00Z"}, "anchoring", datetime(2026, 1, 1, tzinfo=UTC)),
        ({"ANCHOR": "2026-01-01T05:45:00.5+05:45"}, "anchoring", datetime(2026, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)),
        *(
            ({"REFERENCE_MEMORY_SECONDS": given}, "reference_memory", timedelta(seconds=seconds))
            for given, seconds in (("0", 0), ("0.5", 0.5), ("3600", 3600), (" 7 ", 7), ("", 60))
        ),
        (
            {"FUSE_SHARE_PERCENT": "80", "FUSE_FLOOR": "5", "FUSE_PATIENCE": "0"},
            "fuse",
            Fuse(share=0.8, floor=5, patience=0),
        ),
        ({"BATCH_LINES_PER_MINUTE": "0"}, "batch_lines", 0),
        ({"BATCH_LINES_PER_MINUTE": "1000000"}, "batch_lines", 1_000_000),
        ({"ORDER_POLICY": "hold_key", "HELD_LIMIT": "7"}, "letters", LetterPolicy(order="hold_key", held_limit=7)),
        (LETTERS, "letters", LetterPolicy(OWN_BACKOFF, False, 50, 4, timedelta(seconds=90))),
    ],
)
def test_a_setting_is_read(given: dict[str, str], field: str, value: object) -> None:
    assert getattr(read_settings({**GOOD, **given}), field) == value


BEFORE_ALL_TIME = "0001-01-01T00:00:00+14:00"
SECONDS = ["REFERENCE_MEMORY_SECONDS", "STORE_PATIENCE_SECONDS", "HEAL_DEADLINE_SECONDS", "GAP_GRACE_SECONDS"]
COUNTS = ["DEAD_LETTER_ATTEMPTS", "DEAD_LETTER_CHUNK", "DEAD_LETTER_FAN_OUT"]
FUSES = ["FUSE_SHARE_PERCENT", "FUSE_FLOOR", "FUSE_PATIENCE"]
NO_ANCHORS = ["First", "beginning", "2026-01-01T00:00:00", "2026-01-01", "1767225600", "-1", BEFORE_ALL_TIME]
REFUSED = [
    (["ANCHOR"], NO_ANCHORS, "must be first, latest or a time with its offset (RFC 3339), not "),
    (SECONDS, ["-0.1", "1e9", "nan", "inf", "-inf", "ten", "1,5", "0x10"], "must be a number of seconds from 0 to "),
    (["BATCH_LINES_PER_MINUTE"], ["-1", "1000001", "twenty"], "must be a whole number from 0 to 1000000, not "),
    (FUSES, ["-1", "100000", "half", "0.5"], "must be a whole number from "),
    (COUNTS, ["0", "-1", "1.5", "many", "1e3", "100000", "٣"], "must be a whole number from 1 to "),
    (["DEAD_LETTER_LEASE_SECONDS"], ["0", "0.5", "86401", "nan"], "must be a number of seconds from 1 to 86400"),
    (["KEEP_BODIES"], ["yes", "1", "0", "on", "tru"], "must be true or false, not "),
    (["SPARK_ENGINE"], ["spark"], "must be "),
    (["LIVY_DIALECT"], ["klingon"], "must be "),
    (["SPARK_OPTIONS"], ["[]", "{"], "must be "),
    (["ORDER_POLICY"], ["strict"], "must be "),
    (["HELD_LIMIT"], ["0"], "must be "),
]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [(name, value, words) for names, values, words in REFUSED for name in names for value in values],
)
def test_a_value_that_makes_no_sense_is_refused_and_quoted(name: str, value: str, words: str) -> None:
    (fault,) = faults(**{name: value})
    assert fault.startswith(f"{name} {words}")
    assert repr(value) in fault or name == "SPARK_OPTIONS"


def test_every_fault_is_reported_together_and_names_its_setting() -> None:
    broken = {"STORE_PATIENCE_SECONDS": "soon", "REFERENCE_MEMORY_SECONDS": "-1", "STORE_CONNECTION": "mysql:x"}
    with pytest.raises(SettingsRefused) as refusal:
        read_settings(broken)
    unset = {"EVENTHUB_NAME", "EVENTHUB_CONSUMER_GROUP", "EVENTHUB"}
    assert {fault.split()[0] for fault in refusal.value.faults} == {*broken, *unset}
    assert all(fault in str(refusal.value) for fault in refusal.value.faults)


KEY = "SharedAccessKeyName=service;SharedAccessKey=azE="
BUILT_IN = f"Endpoint=sb://IoTHub-ns-Mine.servicebus.windows.net/;{KEY}"
NO_HUB = "EVENTHUB must be the connection string of an event hub, Endpoint=sb://"
SPARK_GOOD = {"SPARK_ENGINE": "livy", "LIVY_URL": "https://livy/", "SPARK_JOBS": "abfss://jobs"}
OF_STORE = "STORE_CONNECTION must be sqlite:PATH (the embedded store in a file) or an ODBC connection string"
DOOR = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
NO_DOOR = "TRUSTED_FRONT_DOOR must be the id"
LINKS = "RESIDENT_LINK_SECRET"


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        *(
            ({name: value}, f"{name} must be set")
            for name in ("STORE_CONNECTION", "EVENTHUB_NAME", "EVENTHUB_CONSUMER_GROUP")
            for value in (None, "")
        ),
        *(({"STORE_CONNECTION": value}, OF_STORE) for value in ("store.db", "sqlite:", "SQLITE:store.db", "mssql:x")),
        (
            {"DEAD_LETTER_BASE_SECONDS": "60", "DEAD_LETTER_CEILING_SECONDS": "59"},
            "DEAD_LETTER_CEILING_SECONDS must not be below DEAD_LETTER_BASE_SECONDS",
        ),
        *(
            ({"HUB_READER_CONSUMER_GROUP": value}, "HUB_READER_CONSUMER_GROUP must differ from EVENTHUB_CONSUMER_GROUP")
            for value in ("hubledger", "HubLedger")
        ),
        *(({"EVENTHUB": text}, NO_HUB) for text in ("nonsense", f"HostName=mine.azure-devices.net;{KEY}")),
        (
            {"EVENTHUB": "@Microsoft.KeyVault(SecretUri=https://vault/secrets/hub)"},
            "EVENTHUB is a Key Vault reference that the platform could not resolve",
        ),
        (
            {"EVENTHUB": f"{BUILT_IN};EntityPath=mine-1"},
            "EVENTHUB_NAME must be 'mine-1', the EntityPath of EVENTHUB, which the trigger reads",
        ),
        (
            {"EVENTHUB__fullyQualifiedNamespace": "ns.servicebus.windows.net"},
            "EVENTHUB and EVENTHUB__fullyQualifiedNamespace must not both be set",
        ),
        ({"OPERATOR_ROLE": "Mine"}, "OPERATOR_ROLE needs sign-in"),
        ({"OPERATOR_ROLE": "Mine", "WEBSITE_AUTH_ENABLED": "False"}, "OPERATOR_ROLE needs sign-in"),
        *(
            ({"TRUSTED_FRONT_DOOR": door}, NO_DOOR)
            for door in ("x", DOOR[:-1], f"{DOOR},{DOOR}", f"{DOOR}\n", "*", "{" + DOOR + "}")
        ),
        ({f"{LINKS}_PREVIOUS": "o" * 32}, f"{LINKS} must be set where {LINKS}_PREVIOUS is"),
        (SPARK_GOOD | {"LIVY_URL": "livy"}, "LIVY_URL must be an address, https://..., for SPARK_ENGINE=livy"),
        (SPARK_GOOD | {"SPARK_JOBS": None}, "SPARK_JOBS must be set"),
        (
            {"SPARK_ENGINE": "databricks", "SPARK_JOBS": "x", "DATABRICKS_URL": "adb"},
            "DATABRICKS_URL must be an address, https://..., for SPARK_ENGINE=databricks",
        ),
    ],
)
def test_settings_that_do_not_go_together_are_one_fault(given: dict[str, str | None], fault: str) -> None:
    (found,) = faults(**given)
    assert found.startswith(fault)


@pytest.mark.parametrize(
    "connection",
    [
        "Driver={ODBC Driver 18 for SQL Server};Server=tcp:s.database.windows.net,1433;Database=d;Encrypt=yes",
        "DSN=hubledger;UID=app;PWD=secret",
        "driver = {x};server=localhost",
    ],
)
def test_a_store_may_be_a_server_named_by_an_odbc_string_or_the_file_after_its_prefix(connection: str) -> None:
    kept = read_settings({**GOOD, "STORE_CONNECTION": connection}).store_connection
    assert (kept, embedded_path(kept)) == (connection, None)
    assert embedded_path("sqlite:a/b store.db") == Path("a/b store.db")
    assert read_store_connection({"STORE_CONNECTION": connection}) == connection  # without a hub
    with pytest.raises(SettingsRefused, match="STORE_CONNECTION must be set"):
        read_store_connection({})


def test_no_value_of_a_secret_is_in_a_fault() -> None:
    assert "hunter2" not in str(faults(STORE_CONNECTION="Server=s;PWD=hunter2"))
    assert "hunter2" not in str(faults(EVENTHUB="Endpoint=sb://x;SharedAccessKey=hunter2", EVENTHUB_NAME=None))


@pytest.mark.parametrize(
    ("url", "dialect"),
    [
        ("https://ws.dev.azuresynapse.net/livyApi", "synapse"),
        ("https://api.fabric.microsoft.com/v1", "fabric"),
        ("https://livy.example.com", "apache"),
    ],
)
def test_the_dialect_of_livy_follows_from_its_address(url: str, dialect: str) -> None:
    spark = read_settings({**GOOD, **SPARK_GOOD, "LIVY_URL": f"{url}/"}).spark
    assert (spark.livy_url, spark.livy_dialect) == (url, dialect)


@pytest.mark.parametrize("named", [{"WEBSITE_AUTH_ENABLED": "True"}, {"TRUSTED_FRONT_DOOR": DOOR}])
def test_the_platform_or_a_front_door_signs_in_and_only_then_a_role_may_be_named(named: dict[str, str]) -> None:
    access = access_of(**named, OPERATOR_ROLE="Mine")
    assert (access.signs_in, access.operator_role) == (True, "Mine")


@pytest.mark.parametrize("secret", ["s" * 31, " ", "@Microsoft.KeyVault(SecretUri=https://vault/secrets/links/)"])
def test_a_secret_that_could_be_guessed_is_refused_and_not_quoted(secret: str) -> None:
    for name, given in ((LINKS, {}), (f"{LINKS}_PREVIOUS", {LINKS: "n" * 32})):
        (fault,) = faults(**given, **{name: secret})
        assert fault.startswith(f"{name} ")
        assert secret not in fault.replace(" ", "") or not secret.strip()
