"""The values that settings become: access, connection, retention, anchor, fuse, subject key and Spark addresses."""

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from core.errors import SettingsRefused
from core.model.ports import parse_instant

# Where a stream begins: at the first event that the hub holds ("first"), at the first event that was enqueued after the
# stream was opened ("latest"), or at the first event from a time on.
Anchoring = Literal["first", "latest"] | datetime
_NAMED: dict[str, Anchoring] = {"first": "first", "latest": "latest"}


def anchoring_of(text: str) -> Anchoring:
    """Return the anchoring that a text names: `first`, `latest` or a time. Raises ValueError for any other text."""
    return _NAMED[text] if text in _NAMED else parse_instant(text)


@dataclass(frozen=True, slots=True)
class SubjectKey:
    """The key that hashes the values of erased subjects, and the one before it, while not all hashes are made anew."""

    secret: str = field(default="", repr=False)
    secret_before: str = field(default="", repr=False)

    def hash_of(self, value: str) -> str:
        """Return the hash of a value, as 64 digits."""
        return hmac.new(self.secret.encode(), value.encode("utf-8", "replace"), hashlib.sha256).hexdigest()

    @property
    def before(self) -> "SubjectKey | None":
        """The key before this one, or None."""
        return SubjectKey(self.secret_before) if self.secret_before else None

    @property
    def both(self) -> tuple["SubjectKey", ...]:
        """This key, and the one before it, if there is one."""
        return (self,) if self.before is None else (self, self.before)

    @property
    def names(self) -> frozenset[str]:
        """The names of both keys."""
        return frozenset([one.name for one in self.both])

    @property
    def name(self) -> str:
        """A hash that names the key without telling it."""
        return hmac.new(self.secret.encode(), b"the name of this key", hashlib.sha256).hexdigest()[:16]


NO_KEY = SubjectKey()


@dataclass(frozen=True, slots=True)
class Fuse:
    """Suspects an outage when `floor` events or more of an invocation fail with one class, and at least this `share`.

    While a batch is held, one failure is enough for the floor. `patience` is the number of attempts. 0: no fuse. The
    share counts the events that were tried. Letters that are held after a failure count for the floor. A crash never
    counts: its event is alone to blame.
    """

    share: float = 0.5
    floor: int = 20
    patience: int = 10


NO_FUSE = Fuse(patience=0)

# The hosts to which the app sends a token of Entra: a name that begins with a dot stands for every host below it.
HOSTS = {
    "synapse": (".dev.azuresynapse.net",),
    "fabric": ("api.fabric.microsoft.com", ".api.fabric.microsoft.com"),
    "databricks": (".azuredatabricks.net",),
}


def address_fault(address: str, service: str) -> str | None:
    """Return the end of a sentence that says why the app does not use an address, or None for a good one."""
    parts = _split(address)
    if parts is None or not parts.hostname or "@" in parts.netloc or parts.query or parts.fragment:
        return "must be an address, https://..."
    if not (parts.scheme == "https" or (parts.scheme == "http" and _is_here(parts.hostname))):
        return "must be an address, https://... (http only on this machine)"
    if service in HOSTS and not (_is_host_of(service, parts.hostname) or _is_here(parts.hostname)):
        known = " or ".join(f"HOST{name}" if name.startswith(".") else name for name in HOSTS[service])
        return f"must be an address at {known}, because the app sends it a token"
    return None


def dialect_at(livy_address: str) -> str:
    """Return the dialect of Livy that the host of an address speaks."""
    parts = _split(livy_address)
    host = "" if parts is None else parts.hostname or ""
    return next((service for service in ("synapse", "fabric") if _is_host_of(service, host)), "apache")


def _split(address: str) -> SplitResult | None:
    try:
        parts = urlsplit(address)
        _ = parts.port  # a port that is no number is reported here
    except ValueError:
        return None
    return parts


def _is_host_of(service: str, host: str) -> bool:
    return any(host == name or (name.startswith(".") and host.endswith(name)) for name in HOSTS[service])


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


LEAST_SECRET = 32  # octets
REFERENCE = "@Microsoft.KeyVault("
GUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """The parties that the app trusts to name a caller, and the secrets of residents' links.

    With `platform_signs_in`, App Service authentication signs callers in. Otherwise the Azure Front Door with the id
    `front_door` does, if there is one. `operator_role` replaces the name of the role for changes. `link_secret` signs
    links, and links that `former_link_secret` signed still work. Without a secret there are no links.
    """

    platform_signs_in: bool = False
    front_door: str | None = None
    operator_role: str | None = None
    link_secret: str = field(default="", repr=False)
    former_link_secret: str = field(default="", repr=False)
    link_life: timedelta = timedelta(hours=1)

    @property
    def signs_in(self) -> bool:
        """True if callers sign in, at the platform or at a front door: then routes need roles."""
        return self.platform_signs_in or self.front_door is not None

    @property
    def link_secrets(self) -> tuple[str, ...]:
        """The secrets whose links work. The first one signs."""
        return tuple(secret for secret in (self.link_secret, self.former_link_secret) if secret)

    @property
    def faults(self) -> list[str]:
        """The faults of these settings. No fault quotes a secret."""
        found = []
        if self.front_door is not None and not GUID.fullmatch(self.front_door):
            found.append("TRUSTED_FRONT_DOOR must be the id of an Azure Front Door, which its X-Azure-FDID carries")
        if self.operator_role is not None and not self.signs_in:
            found.append(
                "OPERATOR_ROLE needs sign-in: turn on App Service authentication"
                " (WEBSITE_AUTH_ENABLED), name TRUSTED_FRONT_DOOR, or leave OPERATOR_ROLE empty"
            )
        if self.former_link_secret and not self.link_secret:
            found.append("RESIDENT_LINK_SECRET must be set where RESIDENT_LINK_SECRET_PREVIOUS is")
        return found + secret_faults(
            {"RESIDENT_LINK_SECRET": self.link_secret, "RESIDENT_LINK_SECRET_PREVIOUS": self.former_link_secret}
        )


def secret_faults(secrets: Mapping[str, str]) -> list[str]:
    """Name the secrets that could be guessed: short ones, and a reference's own text, which the platform leaves there
    when it cannot resolve the reference."""
    found = []
    for name, secret in secrets.items():
        if secret.startswith(REFERENCE):
            found.append(f"{name} is a Key Vault reference that the platform could not resolve")
        elif secret and len(secret.encode("utf-8", "surrogatepass")) < LEAST_SECRET:
            found.append(f"{name} must have at least {LEAST_SECRET} octets")
    return found


EMBEDDED = "sqlite:"
SERVER_WORDS = ("driver=", "dsn=")  # one of them is in every ODBC connection string


def read_store_connection(environment: Mapping[str, str]) -> str:
    """Return the setting STORE_CONNECTION. Raises SettingsRefused when it is missing or wrong."""
    value = environment.get("STORE_CONNECTION") or ""
    if not value:
        raise SettingsRefused(["STORE_CONNECTION must be set"])
    server = any(word in value.lower().replace(" ", "") for word in SERVER_WORDS)
    if not server and (not value.startswith(EMBEDDED) or value == EMBEDDED):
        raise SettingsRefused(
            [f"STORE_CONNECTION must be {EMBEDDED}PATH (the embedded store in a file) or an ODBC connection string"]
        )
    return value


def embedded_path(store_connection: str) -> Path | None:
    """Return the file of the embedded store, or None for a server."""
    path = store_connection.removeprefix(EMBEDDED)
    return None if path == store_connection else Path(path)


# The days after which rows of each table go, unless a setting or a request names others. The rows of retracted_row and
# dead_letter_attempt go with those of the ledger and of the letters; of the tasks, replays and redrives stay.
DEFAULT_DAYS: Mapping[str, int] = {
    "batch_ledger": 400,
    "event_hub_dead_letter": 90,
    "staged_event": 30,
    "replay_diff": 30,
    "task": 400,
    "aggregation_failure": 90,
}
MOST_DAYS = 36_500


@dataclass(frozen=True, slots=True)
class PurgePolicy:
    """The settings of purges: whether one begins each day by itself, and the days after which rows of a table go."""

    daily: bool
    days: Mapping[str, int]


def policy_of(daily: bool, given: Mapping[str, object], faults: list[str]) -> PurgePolicy:
    """Return the policy of the settings. PURGE_DAYS names the days of some tables. Add its faults to those given."""
    tables = ", ".join(DEFAULT_DAYS)
    unknown = [f"PURGE_DAYS names {table!r}, which is none of {tables}" for table in given if table not in DEFAULT_DAYS]
    wrong = [
        f"PURGE_DAYS of {table} must be a number of days from 1 to {MOST_DAYS}, not {days!r}"
        for table, days in given.items()
        if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= MOST_DAYS
    ]
    named = {table: days for table, days in given.items() if isinstance(days, int)}
    faults += [*unknown, *wrong]
    return PurgePolicy(daily, {**DEFAULT_DAYS, **named})
