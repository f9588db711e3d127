"""Where the app is: the option, the setting, a local run; and what is refused."""

import pytest

from hubledger.cli.output import UsageFault
from hubledger.cli.remote.connection import Address, read_address

HERE = "http://localhost:7071"


def read(given: str | None = None, run: str | None = None, **settings: str) -> Address:
    """Read an address."""
    return read_address(given, settings, lambda: run)


def test_the_option_goes_before_the_setting_and_the_setting_before_the_local_run() -> None:
    assert read("https://a.example", HERE, HUBLEDGER_URL="https://b.example").url == "https://a.example"
    assert read(None, HERE, HUBLEDGER_URL="https://b.example").url == "https://b.example"
    assert read(None, HERE).url == HERE


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://a.example/", "https://a.example"),
        ("https://a.example/api/", "https://a.example"),
        ("https://a.example:8443/one/api", "https://a.example:8443/one"),
        ("http://[::1]:7071", "http://[::1]:7071"),
    ],
)
def test_an_address_is_read_in_each_of_its_forms(text: str, url: str) -> None:
    assert read(text).url == url


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a.example", "begins with https://"),
        ("ftp://a.example", "begins with https://"),
        ("https://", "begins with https://"),
        ("https://a.example:x", "--url https://a.example:x"),
        ("https://a.example/?code=secret", "HUBLEDGER_KEY"),
        ("https://me:secret@a.example", "leave them out"),
    ],
)
def test_a_wrong_address_is_refused_without_its_secrets(text: str, why: str) -> None:
    with pytest.raises(UsageFault) as caught:
        read(text)
    assert why in str(caught.value)
    assert "secret" not in str(caught.value)


def test_without_any_address_the_error_says_what_to_set() -> None:
    with pytest.raises(UsageFault, match=r"HUBLEDGER_URL.*make run"):
        read()


def test_a_key_crosses_no_network_in_the_clear() -> None:
    with pytest.raises(UsageFault, match="not https"):
        read("http://a.example", HUBLEDGER_KEY="secret")
    with pytest.raises(UsageFault, match="not https"):
        read("http://localhost.example", HUBLEDGER_SCOPE="api://app/.default")
    assert read(HERE, HUBLEDGER_KEY="secret").key == "secret"


def test_a_key_is_never_shown() -> None:
    assert "secret" not in repr(read(HERE, HUBLEDGER_KEY="secret"))
    with pytest.raises(UsageFault) as caught:
        read(HERE, HUBLEDGER_KEY="secret\nX-Other: 1")
    assert "secret" not in str(caught.value)
