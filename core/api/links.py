"""Signed links: a link opens exactly one subject, for a limited time.

A link is `v1.EXPIRES.SIGNATURE`: the second at which it ends, and HMAC-SHA256 over purpose, subject and end.
"""

import base64
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from core.api.problems import CONFLICT, NOT_ALLOWED, Problem
from core.api.route import Link

_LINK = re.compile(r"v1\.([0-9]{10})\.([A-Za-z0-9_-]{43})")


def sign_link(link: Link, subject: str, expires_at: datetime, secret: str) -> str:
    """Return a link for one subject that ends at `expires_at`, which is a whole second."""
    expires = f"{int(expires_at.timestamp()):010}"
    return f"v1.{expires}.{_signature(link, subject, expires, secret)}"


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs links with the first of the app's secrets; each is good for `life`."""

    secrets: Sequence[str]
    life: timedelta

    def sign(self, link: Link, subject: str, now: datetime) -> tuple[str, datetime]:
        """Return a link for one subject, and the time at which it ends; raise a problem in an app without a secret."""
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
