"""core/api/room_operations.py: a link opens one home for a limited time, and no other text opens it."""

import base64
import hmac
import string
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from core.api.problems import Problem
from core.api.room_operations import end_of_link, refuse_without_link, sign_link
from examples.home_security.routes import LINK as KIND

NOW = datetime(2026, 11, 22, 12, 0, 0, 250_000, UTC)
SECRET, FORMER = "s" * 32, "former-secret-of-more-than-32-octets"
END = end_of_link(NOW, timedelta(hours=1))
LINK = sign_link(KIND, "H1", END, SECRET)


def opens(link: str, home_id: str = "H1", now: datetime = NOW, *secrets: str) -> bool:
    """True if the link opens the home; every refusal is 403."""
    try:
        refuse_without_link(KIND, link, home_id, now, secrets or (SECRET, FORMER))
    except Problem as problem:
        assert problem.kind.status == 403
        return False
    return True


def test_a_link_opens_its_home_until_it_ends() -> None:
    assert opens(LINK)
    assert opens(LINK, now=END - timedelta(microseconds=1))
    assert not opens(LINK, now=END)
    assert not opens(LINK, now=END + timedelta(days=400))


def test_only_a_signed_link_gets_the_answer_that_it_has_ended() -> None:
    ended = END + timedelta(seconds=1)
    with pytest.raises(Problem, match="has ended"):
        refuse_without_link(KIND, LINK, "H1", ended, (SECRET,))
    with pytest.raises(Problem, match="not a link for this home"):
        refuse_without_link(KIND, LINK, "H2", ended, (SECRET,))


def forged() -> Iterator[str]:
    """Yield each text near the link, and guesses."""
    version, expires, signature = LINK.split(".")
    for moved in (int(expires) + 1, int(expires) - 1, 9_999_999_999, 0):
        yield f"{version}.{moved:010}.{signature}"
    alphabet = string.ascii_letters + string.digits + "-_."
    for at, letter in enumerate(LINK):  # also the last one, whose two lowest bits base64 ignores: a link has one text
        yield from (LINK[:at] + other + LINK[at + 1 :] for other in set(alphabet) - {letter})
    yield from (*(LINK[:at] for at in range(len(LINK))), *(LINK[at:] for at in range(1, len(LINK))))
    yield from (f"{LINK}=", f"{LINK}\n", f" {LINK}", f"{LINK} ", f"{LINK}{LINK}", f"{LINK},{LINK}", f"{LINK}A")
    yield from ("", "v1..", "null", "\ud800", "é" * 60, "A" * 10_000, f"v1.{expires}.{'A' * 43}", f"v1.{expires}.")
    yield f"v1.{''.join(chr(0x660 + int(digit)) for digit in expires)}.{signature}"
    yield from (LINK.upper(), LINK.replace("v1", "v2"), LINK.replace("v1", "v01"))
    yield from (sign_link(KIND, "H1", END, wrong) for wrong in ("t" * 32, "s" * 31, "s" * 33, SECRET.upper(), ""))
    for signed in (f"H1\n{expires}", f"H1{expires}", f"hubledger: show the activity of one home, v2\nH1\n{expires}"):
        octets = hmac.digest(SECRET.encode(), signed.encode(), "sha256")  # for a different purpose
        yield f"v1.{expires}.{base64.urlsafe_b64encode(octets).decode().rstrip('=')}"


def test_no_changed_cut_guessed_or_foreign_link_opens_anything() -> None:
    assert [one for one in forged() if opens(one)] == []


def test_a_link_opens_no_other_home() -> None:
    others = ("H2", "h1", "H", "H11", "H1 ", "H1\n", "", "H1\n1700000000", "\ud800", "H1\x00")
    assert [other for other in others if opens(LINK, other)] == []


def test_without_its_secret_no_link_opens_anything() -> None:
    assert not opens(LINK, "H1", NOW, "t" * 32)
    for link in (LINK, sign_link(KIND, "H1", END, ""), ""):
        with pytest.raises(Problem):
            refuse_without_link(KIND, link, "H1", NOW, ())


def test_after_a_rotation_links_of_the_secret_before_still_open() -> None:
    assert opens(LINK, "H1", NOW, "n" * 32, SECRET)
    assert opens(sign_link(KIND, "H1", END, "n" * 32), "H1", NOW, "n" * 32, SECRET)
    assert not opens(sign_link(KIND, "H1", END, FORMER), "H1", NOW, "n" * 32, SECRET)


def test_a_link_has_only_letters_that_an_address_and_a_header_can_hold() -> None:
    assert set(LINK) <= set(string.ascii_letters + string.digits + "-_.")
    assert END.microsecond == 0
