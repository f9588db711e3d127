"""The means of a room's operations: its statements, the windows of its aggregates, and the links that it signs.

A link is `v1.EXPIRES.SIGNATURE`: the second at which it ends, and HMAC-SHA256 over purpose, subject and end.
"""

import base64
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

from core.aggregation.store import Aggregations
from core.api.problems import CONFLICT, NOT_ALLOWED, Problem
from core.api.route import Link
from core.model.aggregates import aggregate_table
from core.store.columns import decoded, instant_or_none, instant_text
from core.store.database import Database
from core.store.script import of_rows

_LINK = re.compile(r"v1\.([0-9]{10})\.([A-Za-z0-9_-]{43})")


def sign_link(link: Link, subject: str, expires_at: datetime, secret: str) -> str:
    """Return a link for one subject that ends at `expires_at`, which is a whole second."""
    expires = f"{int(expires_at.timestamp()):010}"
    return f"v1.{expires}.{_signature(link, subject, expires, secret)}"


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs links with the first of the app's secrets. Each is good for `life`."""

    secrets: Sequence[str]
    life: timedelta

    def sign(self, link: Link, subject: str, now: datetime) -> tuple[str, datetime]:
        """Return a link for one subject, and the time at which it ends. Raise a problem in an app without a secret."""
        if not self.secrets:
            raise Problem(CONFLICT, "RESIDENT_LINK_SECRET is not set, so this app makes no links")
        expires_at = end_of_link(now, self.life)
        return sign_link(link, subject, expires_at, self.secrets[0]), expires_at


def end_of_link(now: datetime, life: timedelta) -> datetime:
    """Return the end of a link that is made now: a whole second."""
    return (now + life).astimezone(UTC).replace(microsecond=0)


def refuse_without_link(link: Link, given: str, subject: str, now: datetime, secrets: Sequence[str]) -> None:
    """Raise a problem unless one of the secrets signed the given link for this subject, and it has not ended."""
    form = _LINK.fullmatch(given)
    expires, signature = (form[1], form[2]) if form else ("", "")
    # Texts are compared, not octets: base64 has several texts for the same 32 octets. All secrets are always tried.
    right = [hmac.compare_digest(_signature(link, subject, expires, secret), signature) for secret in secrets]
    if form is None or not any(right):
        raise Problem(
            NOT_ALLOWED, f"{link.header}: this is not a link for this {link.subject}; open the page from its link"
        )
    if now >= datetime.fromtimestamp(int(expires), UTC):
        raise Problem(NOT_ALLOWED, f"{link.header}: the link has ended; get a new one from the site that made it")


def _signature(link: Link, subject: str, expires: str, secret: str) -> str:
    signed, key = (text.encode("utf-8", "surrogatepass") for text in (f"{link.purpose}\n{subject}\n{expires}", secret))
    return base64.urlsafe_b64encode(hmac.digest(key, signed, "sha256")).decode().rstrip("=")


Value = TypeVar("Value")
Window = TypeVar("Window")
MOST_RUNS = 100  # newest runs among which the last committed one is found


@dataclass(frozen=True, slots=True)
class Windows(Generic[Window]):
    """Windows of an aggregate in order, and its cut (JSON: the commit number of each stream and partition), whether
    nothing was committed since, and when its run was committed (None before the first run)."""

    windows: tuple[Window, ...]
    cut: str
    is_current: bool
    committed_at: datetime | None


class RoomStore:
    """Reads what a room asks of the database. All streams share the rows of a room."""

    def __init__(self, database: Database, aggregations: Aggregations) -> None:
        self._database = database
        self._aggregations = aggregations

    def read(self, value_class: type[Value], statement: str, **values: Any) -> tuple[Value, ...]:
        """Return the rows of a named statement of the room (`queries/*.sql`) as values of a dataclass.

        The columns have the order of its fields. A datetime is given and read as an instant.
        """
        given = {name: instant_text(one) if isinstance(one, datetime) else one for name, one in values.items()}
        return decoded(value_class, self._database.ask(statement, **given))

    def read_windows(
        self, aggregate: type[Window], key: str | int, since: datetime, until: datetime
    ) -> Windows[Window]:
        """Return the windows of a value of the first column of the key that begin in [since, until).

        The cut is read first, so the windows may be newer than the cut, but never older.
        """
        job = aggregate_table(aggregate).name
        standing = self._aggregations.read_standing(job)
        runs = self._aggregations.read_runs(job, standing.number + 1, MOST_RUNS)
        committed = (one.closed_at for one in runs if one.status == "committed")
        windows = self._aggregations.read_windows(aggregate, key, since, until)
        return Windows(windows, standing.cut, standing.cut == standing.reached, next(committed, None))

    def read_last_window(self, aggregate: type, key: str | int, until: datetime) -> datetime | None:
        """Return the beginning of the last window of a key that begins before an instant, or None."""
        asked = {"key_value": key, "until_at": instant_text(until)}
        ((found,),) = self._database.ask(of_rows("read_last_window", aggregate), **asked)
        return instant_or_none(found)


@dataclass(frozen=True, slots=True)
class RoomMeans:
    """The means of a room's operations: the store, and the signer of its links."""

    store: RoomStore
    signer: Signer
