"""Tokens: signatures, expiry, scopes and rights."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.event_hubs.errors import AmqpError
from local.event_hubs.tokens import LISTEN, SEND, Grants, SharedAccessKey, read_token, split_path
from tests.local.event_hubs.messages import make_token

KEYS = {
    "root": SharedAccessKey("root", "secret"),
    "reader": SharedAccessKey("reader", "other", frozenset({LISTEN})),
}
NOW = 1_000_000
HUB = "sb://localhost/telemetry"


def sign(resource: str = HUB, name: str = "root", expiry: int = 2_000, key: str | None = None) -> str:
    return make_token(resource, name, key or KEYS[name].value, expiry)


def granted(*tokens: str) -> Grants:
    grants = Grants()
    for token in tokens:
        grants.add(read_token(token, KEYS, NOW))
    return grants


def allows(grants: Grants, right: str | None, address: str = "telemetry", now: int = NOW) -> bool:
    try:
        grants.require(right, split_path(address), now)
    except AmqpError as error:
        assert error.condition == "amqp:unauthorized-access"
        return False
    return True


def test_a_token_is_good_for_its_resource_and_all_below() -> None:
    expected = {
        (HUB, "telemetry"): True,
        ("sb://localhost/Telemetry/", "amqps://localhost/telemetry/Partitions/0"): True,
        ("sb://localhost/", "telemetry"): True,
        (HUB, "alarms"): False,
        (HUB, "telemetry2"): False,
        (f"{HUB}/Partitions/0", "telemetry"): False,
        (f"{HUB}/partitions/0", "telemetry/Partitions/0"): True,
    }
    found = {(resource, address): allows(granted(sign(resource)), SEND, address) for resource, address in expected}
    assert found == expected


def test_a_key_gives_its_rights_and_no_more() -> None:
    grants = granted(sign(name="reader"))
    assert [allows(grants, right) for right in (LISTEN, None, SEND)] == [True, True, False]


def test_a_grant_ends_when_its_token_expires_unless_a_newer_token_renews_it() -> None:
    grants = granted(sign(expiry=2_000))
    assert allows(grants, SEND, now=1_999_999)
    assert not allows(grants, SEND, now=2_000_000)
    with pytest.raises(AmqpError, match="ExpiredToken"):
        grants.require(SEND, ("telemetry",), 2_000_000)
    assert allows(granted(sign(expiry=2_000), sign(expiry=3_000)), SEND, now=2_500_000)


def test_a_bad_token_is_refused_with_a_reason_and_without_repeating_it() -> None:
    reasons = {
        sign(key="wrong"): "signature does not match",
        sign().replace("telemetry", "alarms"): "signature does not match",
        sign().replace("skn=root", "skn=nobody"): "signature does not match",
        sign(expiry=999): "has expired",
        sign().replace("se=2000", "se=soon"): "lacks",
        "SharedAccessSignature sr=x": "lacks",
        "eyJhbGciOi.J9.x": "only SharedAccessSignature",
        "": "only SharedAccessSignature",
    }
    for token, reason in reasons.items():
        with pytest.raises(AmqpError, match=reason) as refused:
            read_token(token, KEYS, NOW)
        assert refused.value.condition == "amqp:unauthorized-access"
        assert "sig=" not in str(refused.value)


@given(st.text(max_size=80))
def test_any_text_is_refused_or_read_and_nothing_else(garbage: str) -> None:
    for attempt in (garbage, "SharedAccessSignature " + garbage, sign() + garbage):
        try:
            read_token(attempt, KEYS, NOW)
        except AmqpError:
            continue


def test_a_key_does_not_show_its_value() -> None:
    assert "secret" not in repr(KEYS["root"])


def test_an_unknown_right_is_refused() -> None:
    with pytest.raises(ValueError, match="has rights other than"):
        SharedAccessKey("k", "v", frozenset({"Write"}))
