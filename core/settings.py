"""The settings of the app: read once into a frozen value. All faults are reported together."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

from core.errors import SettingsRefused
from core.model.event_keys import fault_of_choice
from core.model.events import Stream, stream_of
from core.model.letters import Backoff, LetterPolicy, OrderPolicy
from core.model.policies import (
    REFERENCE,
    AccessPolicy,
    Anchoring,
    Fuse,
    PurgePolicy,
    SubjectKey,
    address_fault,
    anchoring_of,
    dialect_at,
    policy_of,
    read_store_connection,
    secret_faults,
)
from core.model.release import DEFAULT_TRANSFORM
from core.model.transforms import ROWS_LIMIT

LONGEST_RETENTION = 2160  # hours: 90 days, which Premium and Dedicated allow
OWN_LINES = 20  # of batches, a minute and process: the others are summed
_ENDPOINT = re.compile(r"Endpoint=sb://([^/:;]+)", re.IGNORECASE)
_ENTITY = re.compile(r";\s*EntityPath=([^;]+)", re.IGNORECASE)
SPARK_ENGINES = ("none", "local", "livy", "databricks")
LIVY_DIALECTS = ("apache", "synapse", "fabric")


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """The settings of aggregation. `jobs` is the folder or address of the programs. None: the app's own folder."""

    engine: str
    submit: str
    jobs: str | None
    options: Mapping[str, Any]
    livy_url: str
    livy_dialect: str
    databricks_url: str
    lake: str | None
    lake_connection: str | None
    lake_rows: bool
    grace: timedelta
    deadline: timedelta
    rows: int

    @property
    def keeps_rows(self) -> bool:
        """True if there is a lake, and it also gets the rows that aggregates read."""
        return self.lake_rows and (self.lake is not None or self.engine == "local")


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in the environment of the app, as docs/configuration.md explains them."""

    store_connection: str
    transform: str
    event_hub: str
    consumer_group: str
    hub_connection: str | None
    hub_namespace: str | None
    hub_retention: timedelta | None
    reference_memory: timedelta
    store_patience: timedelta
    reader_group: str
    anchoring: Anchoring
    heal_deadline: timedelta
    gap_grace: timedelta
    fuse: Fuse
    letters: LetterPolicy
    letter_look: timedelta
    rows_per_event: int
    transform_deadline: timedelta
    replay_most_events: int
    spark: SparkSettings
    access: AccessPolicy
    batch_lines: int
    purging: PurgePolicy
    erasure: SubjectKey
    event_key: str

    @property
    def stream(self) -> Stream:
        return stream_of(self.namespace, self.event_hub, self.consumer_group)

    @property
    def longest_work(self) -> timedelta:
        """The longest time that one attempt at a batch may take: heal a gap, transform, and wait for the store."""
        return self.heal_deadline + self.transform_deadline + self.store_patience

    @property
    def namespace(self) -> str:
        """The host name of the hub, without a port, as the trigger's partition context has it."""
        endpoint = _ENDPOINT.search(self.hub_connection or "")
        return endpoint[1] if endpoint else (self.hub_namespace or "")

    @property
    def hub_faults(self) -> list[str]:
        """Why these settings name no hub, or two. The trigger prefers EntityPath, all others EVENTHUB_NAME."""
        connection = self.hub_connection or ""
        if not connection:
            missing = "EVENTHUB (a connection string) or EVENTHUB__fullyQualifiedNamespace must be set"
            return [] if self.hub_namespace else [missing]
        if connection.startswith(REFERENCE):
            return secret_faults({"EVENTHUB": connection})
        if not self.namespace:
            form = "Endpoint=sb://HOST/;..., for an IoT Hub the one of its built-in endpoint"
            return [f"EVENTHUB must be the connection string of an event hub, {form}"]
        if self.hub_namespace:
            return ["EVENTHUB and EVENTHUB__fullyQualifiedNamespace must not both be set"]
        entity = _ENTITY.search(connection)
        if entity is not None and self.event_hub not in ("", entity[1]):
            return [f"EVENTHUB_NAME must be {entity[1]!r}, the EntityPath of EVENTHUB, which the trigger reads"]
        return []


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Return all settings. Raises SettingsRefused with every fault and the name of its setting."""
    reader = _Reader(environment)
    settings = Settings(
        store_connection=reader.store(),
        transform=reader.text("TRANSFORM", DEFAULT_TRANSFORM),
        event_hub=reader.text("EVENTHUB_NAME"),
        consumer_group=reader.text("EVENTHUB_CONSUMER_GROUP"),
        hub_connection=environment.get("EVENTHUB") or None,
        hub_namespace=environment.get("EVENTHUB__fullyQualifiedNamespace") or None,
        hub_retention=reader.hours("HUB_RETENTION_HOURS", most=LONGEST_RETENTION),
        reference_memory=reader.seconds("REFERENCE_MEMORY_SECONDS", 60, most=3600),
        store_patience=reader.seconds("STORE_PATIENCE_SECONDS", 20, most=120),
        reader_group=reader.text("HUB_READER_CONSUMER_GROUP", "hubledger-reader"),
        anchoring=reader.anchoring(),
        heal_deadline=reader.seconds("HEAL_DEADLINE_SECONDS", 120, most=540),
        gap_grace=reader.seconds("GAP_GRACE_SECONDS", 120, most=3600),
        fuse=reader.fuse(),
        letters=reader.letters(),
        letter_look=reader.seconds("DEAD_LETTER_LOOK_SECONDS", 60, most=600, least=0.1),
        rows_per_event=reader.count("ROWS_PER_EVENT", ROWS_LIMIT, most=1_000_000),
        transform_deadline=reader.seconds("TRANSFORM_DEADLINE_SECONDS", 60, most=420, least=1),
        replay_most_events=reader.count("REPLAY_MOST_EVENTS", 10_000_000, most=999_999_999),
        spark=reader.spark(),
        access=reader.access(),
        batch_lines=reader.count("BATCH_LINES_PER_MINUTE", OWN_LINES, most=1_000_000, least=0),
        purging=reader.purging(),
        erasure=reader.erasure(),
        event_key=reader.text("EVENT_KEY", ""),
    )
    if (fault := fault_of_choice(settings.event_key)) is not None:
        reader.faults.append(fault)
    if settings.reader_group.lower() == settings.consumer_group.lower():
        reader.faults.append(
            "HUB_READER_CONSUMER_GROUP must differ from EVENTHUB_CONSUMER_GROUP: the trigger admits no other reader"
        )
    reader.faults += settings.hub_faults
    if reader.faults:
        raise SettingsRefused(reader.faults)
    return settings


class _Reader:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.faults: list[str] = []

    def text(self, name: str, default: str | None = None) -> str:
        value = self._environment.get(name) or default
        if value is None:
            self.faults.append(f"{name} must be set")
        return value or ""

    def store(self) -> str:
        try:
            return read_store_connection(self._environment)
        except SettingsRefused as refused:
            self.faults += refused.faults
            return ""

    def anchoring(self) -> Anchoring:
        value = self.text("ANCHOR", "first")
        try:
            return anchoring_of(value)
        except ValueError:
            self.faults.append(f"ANCHOR must be first, latest or a time with its offset (RFC 3339), not {value!r}")
            return "first"

    def seconds(self, name: str, default: float, most: float, least: float = 0) -> timedelta:
        value = self._environment.get(name) or str(default)
        try:
            seconds = float(value)
        except ValueError:
            seconds = -1.0
        if not least <= seconds <= most:
            self.faults.append(f"{name} must be a number of seconds from {least:g} to {most:g}, not {value!r}")
            return timedelta()
        return timedelta(seconds=seconds)

    def hours(self, name: str, most: int) -> timedelta | None:
        return timedelta(hours=self.count(name, most, most)) if self._environment.get(name) else None

    def letters(self) -> LetterPolicy:
        base = self.seconds("DEAD_LETTER_BASE_SECONDS", 30, most=3600)
        ceiling = self.seconds("DEAD_LETTER_CEILING_SECONDS", 3600, most=604_800)
        if ceiling < base:
            self.faults.append("DEAD_LETTER_CEILING_SECONDS must not be below DEAD_LETTER_BASE_SECONDS")
        return LetterPolicy(
            backoff=Backoff(base, ceiling, self.count("DEAD_LETTER_ATTEMPTS", 8, most=100)),
            keep_bodies=self.flag("KEEP_BODIES", default=True),
            chunk=self.count("DEAD_LETTER_CHUNK", 100, most=1000),
            fan_out=self.count("DEAD_LETTER_FAN_OUT", 16, most=100),
            lease=self.seconds("DEAD_LETTER_LEASE_SECONDS", 300, most=86_400, least=1),
            order=cast(OrderPolicy, self.choice("ORDER_POLICY", ("none", "hold_key"), "none")),
            held_limit=self.count("HELD_LIMIT", 10_000, most=1_000_000),
        )

    def fuse(self) -> Fuse:
        percent = self.count("FUSE_SHARE_PERCENT", 50, most=100)
        return Fuse(
            share=percent / 100,
            floor=self.count("FUSE_FLOOR", 20, most=10_000),
            patience=self.count("FUSE_PATIENCE", 10, most=1_000, least=0),
        )

    def access(self) -> AccessPolicy:
        policy = AccessPolicy(
            platform_signs_in=self.flag("WEBSITE_AUTH_ENABLED", False),
            front_door=self._environment.get("TRUSTED_FRONT_DOOR") or None,
            operator_role=self._environment.get("OPERATOR_ROLE") or None,
            link_secret=self._environment.get("RESIDENT_LINK_SECRET") or "",
            former_link_secret=self._environment.get("RESIDENT_LINK_SECRET_PREVIOUS") or "",
            link_life=self.seconds("RESIDENT_LINK_SECONDS", 3600, most=86_400, least=60),
        )
        self.faults += policy.faults
        return policy

    def erasure(self) -> SubjectKey:
        secret = self._environment.get("ERASURE_KEY") or ""
        before = self._environment.get("ERASURE_KEY_BEFORE") or ""
        self.faults += secret_faults({"ERASURE_KEY": secret, "ERASURE_KEY_BEFORE": before})
        return SubjectKey(secret, before)

    def count(self, name: str, default: int, most: int, least: int = 1) -> int:
        value = self._environment.get(name) or str(default)
        count = int(value) if re.fullmatch(r"[0-9]{1,9}", value) else -1
        if not least <= count <= most:
            self.faults.append(f"{name} must be a whole number from {least} to {most}, not {value!r}")
            return default
        return count

    def flag(self, name: str, default: bool) -> bool:
        value = (self._environment.get(name) or str(default)).lower()
        if value not in ("true", "false"):
            self.faults.append(f"{name} must be true or false, not {value!r}")
        return value == "true"

    def choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        value = self.text(name, default)
        if value not in choices:
            self.faults.append(f"{name} must be one of {', '.join(choices)}, not {value!r}")
        return value

    def json_object(self, name: str) -> Mapping[str, Any]:
        try:
            value = json.loads(self._environment.get(name) or "{}")
        except ValueError:
            value = None
        if not isinstance(value, dict):
            self.faults.append(f"{name} must be a JSON object")
            return {}
        return value

    def purging(self) -> PurgePolicy:
        return policy_of(self.flag("PURGE_DAILY", default=False), self.json_object("PURGE_DAYS"), self.faults)

    def spark(self) -> SparkSettings:
        engine = self.choice("SPARK_ENGINE", SPARK_ENGINES, "none")
        livy_url, databricks_url = (
            (self._environment.get(name) or "").rstrip("/") for name in ("LIVY_URL", "DATABRICKS_URL")
        )
        dialect = self.choice("LIVY_DIALECT", LIVY_DIALECTS, dialect_at(livy_url))
        if engine == "livy":
            self._refuse_address("LIVY_URL", livy_url, engine, dialect)
        if engine == "databricks":
            self._refuse_address("DATABRICKS_URL", databricks_url, engine, engine)
        if engine in ("livy", "databricks"):
            self.text("SPARK_JOBS")
        return SparkSettings(
            engine=engine,
            submit=self.text("SPARK_SUBMIT", "spark-submit"),
            jobs=self._environment.get("SPARK_JOBS") or None,
            options=self.json_object("SPARK_OPTIONS"),
            livy_url=livy_url,
            livy_dialect=dialect,
            databricks_url=databricks_url,
            lake=self._environment.get("LAKE") or None,
            lake_connection=self._environment.get("LAKE_CONNECTION") or None,
            lake_rows=self.flag("LAKE_ROWS", False),
            grace=self.seconds("AGGREGATION_GRACE_SECONDS", 600, most=86_400),
            deadline=self.seconds("AGGREGATION_DEADLINE_SECONDS", 7_200, most=86_400),
            rows=self.count("AGGREGATION_ROWS", 10_000_000, most=999_999_999),
        )

    def _refuse_address(self, name: str, address: str, engine: str, service: str) -> None:
        if (fault := address_fault(address, service)) is not None:
            self.faults.append(f"{name} {fault}, for SPARK_ENGINE={engine}")
