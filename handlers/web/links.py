"""Signed links: a link opens exactly one home, for a limited time.

A link is `v1.EXPIRES.SIGNATURE`: the second at which it ends, and HMAC-SHA256 over purpose, version, home and end.
"""

import base64
import hmac
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from handlers.web.problems import NOT_ALLOWED, Problem

HEADER = "x-home-link"
PURPOSE = "hubledger: show the activity of one home, v1"
_LINK = re.compile(r"v1\.([0-9]{10})\.([A-Za-z0-9_-]{43})")


def sign_link(home_id: str, expires_at: datetime, secret: str) -> str:
    """Return a link for one home that ends at `expires_at`, which is a whole second."""
    expires = f"{int(expires_at.timestamp()):010}"
    return f"v1.{expires}.{_signature(home_id, expires, secret)}"


def end_of_link(now: datetime, life: timedelta) -> datetime:
    """Return the end of a link that is made now: a whole second."""
    return (now + life).astimezone(UTC).replace(microsecond=0)


def refuse_without_link(link: str, home_id: str, now: datetime, secrets: Sequence[str]) -> None:
    """Raise a problem unless one of the secrets signed this link for this home, and the link has not ended."""
    form = _LINK.fullmatch(link)
    expires, signature = (form[1], form[2]) if form else ("", "")
    # Texts are compared, not octets: base64 has several texts for the same 32 octets. All secrets are always tried.
    right = [hmac.compare_digest(_signature(home_id, expires, secret), signature) for secret in secrets]
    if form is None or not any(right):
        raise Problem(NOT_ALLOWED, f"{HEADER}: this is not a link for this home; open the page from its link")
    if now >= datetime.fromtimestamp(int(expires), UTC):
        raise Problem(NOT_ALLOWED, f"{HEADER}: the link has ended; get a new one from the site that made it")


def _signature(home_id: str, expires: str, secret: str) -> str:
    signed, key = (text.encode("utf-8", "surrogatepass") for text in (f"{PURPOSE}\n{home_id}\n{expires}", secret))
    return base64.urlsafe_b64encode(hmac.digest(key, signed, "sha256")).decode().rstrip("=")
