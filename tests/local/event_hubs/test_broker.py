from typing import Any

import pytest

from local.event_hubs.codec import Symbol, decode
from local.event_hubs.errors import AmqpError
from local.event_hubs.frames import AMQP_HEADER, DETACH, FRAME_HEADER, SASL_HEADER, SASL_INIT, composite, frame
from local.event_hubs.sections import sections
from local.event_hubs.tokens import LISTEN, ROOT_KEY, SEND, Grants, SharedAccessKey, read_token, split_path
from tests.local.event_hubs.messages import make_token
from tests.local.event_hubs.peer import Peer, make_broker


def values(payload: bytes) -> dict[int, Any]:
    return {section.code: decode(payload, section.body)[0] for section in sections(payload)}


@pytest.mark.asyncio
async def test_the_sixth_reader_without_an_epoch_is_refused_until_a_lost_connection_frees_its_places() -> None:
    broker = make_broker()
    peer = Peer(broker).begin()
    for handle in range(6):
        peer.attach_reader(handle=handle)
    [fields] = peer.fields(DETACH)
    assert fields[2].value[:2] == [
        "amqp:resource-limit-exceeded",
        "Exceeded the maximum number of allowed receivers per partition in a consumer group which is 5. List of"
        " connected receivers - nil, nil, nil, nil, nil.",
    ]
    peer.connection.connection_lost(None)
    assert not broker.connections
    again = Peer(broker).begin()
    again.attach_reader()
    assert again.refusals() == []


@pytest.mark.asyncio
async def test_a_higher_or_equal_epoch_takes_over_and_no_reader_without_one_reads_beside_it() -> None:
    for epochs, refused in {(None, 0): {0}, (0, 0): {0}, (1, 2): {0}, (2, 1): {1}, (0, None): {1}}.items():
        broker = make_broker()
        peers = [Peer(broker).begin() for _ in epochs]
        for peer, epoch in zip(peers, epochs, strict=True):
            peer.attach_reader(epoch=epoch)
        stolen = [["amqp:link:stolen"] if number in refused else [] for number in range(len(epochs))]
        assert [peer.refusals() for peer in peers] == stolen


READER = SharedAccessKey("reader", "other", frozenset({LISTEN}))
KEYS = {"root": SharedAccessKey("root", "secret"), "reader": READER}
NOW = 1_000_000
HUB = "sb://localhost/telemetry"


def sign(resource: str = HUB, name: str = "root", expiry: int = 2_000, key: str | None = None) -> str:
    return make_token(resource, name, key or KEYS[name].value, expiry)


def allows(right: str | None, *tokens: str, address: str = "telemetry", now: int = NOW) -> bool:
    grants = Grants()
    for token in tokens:
        grants.add(read_token(token, KEYS, NOW))
    try:
        grants.require(right, split_path(address), now)
    except AmqpError as error:
        assert error.condition == "amqp:unauthorized-access"
        return False
    return True


def test_a_token_is_good_for_its_resource_and_all_below_with_the_rights_of_its_key_until_it_expires() -> None:
    expected = {
        (HUB, "telemetry"): True,
        ("sb://localhost/Telemetry/", "amqps://localhost/telemetry/Partitions/0"): True,
        ("sb://localhost/", "telemetry"): True,
        (HUB, "alarms"): False,
        (HUB, "telemetry2"): False,
        (f"{HUB}/Partitions/0", "telemetry"): False,
        (f"{HUB}/partitions/0", "telemetry/Partitions/0"): True,
    }
    assert {each: allows(SEND, sign(each[0]), address=each[1]) for each in expected} == expected
    assert [allows(right, sign(name="reader")) for right in (LISTEN, None, SEND)] == [True, True, False]
    assert [allows(SEND, sign(expiry=2_000), now=now) for now in (1_999_999, 2_000_000)] == [True, False]
    assert allows(SEND, sign(expiry=2_000), sign(expiry=3_000), now=2_500_000), "a newer token renews it"
    with pytest.raises(ValueError, match="has rights other than"):
        SharedAccessKey("k", "v", frozenset({"Write"}))
    assert "secret" not in repr(KEYS["root"])


ROOT = b"\0RootManageSharedAccessKey\0SAS_KEY_VALUE"


def greeted(mechanism: str, response: Any) -> Peer:
    """Return a peer without a token that has chosen a mechanism."""
    peer = Peer(make_broker(keys=(ROOT_KEY, READER)), None)
    peer.connection.data_received(SASL_HEADER)
    peer.connection.data_received(frame(composite(SASL_INIT, Symbol(mechanism), response, "localhost"), kind=1))
    return peer


def sasl_values(peer: Peer) -> list[list[Any]]:
    data, at, found = bytes(peer.transport.written), 8, []
    while at < len(data) and data[at : at + 4] != b"AMQP":
        size, _, kind, _ = FRAME_HEADER.unpack_from(data, at)
        assert kind == 1
        found.append(decode(data[at + 8 : at + size])[0].value)
        at += size
    return found


@pytest.mark.asyncio
async def test_an_unknown_mechanism_a_wrong_key_or_no_key_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    for mechanism, response in (
        ("SCRAM-SHA-1", ROOT),
        ("PLAIN", b"\0RootManageSharedAccessKey\0not-the-secret"),
        ("PLAIN", b"\0nobody\0SAS_KEY_VALUE"),
        ("PLAIN", None),
        ("PLAIN", "a text"),
    ):
        peer = greeted(mechanism, response)
        assert sasl_values(peer)[1][0] == 1, response
        assert peer.is_closed, response
        assert not peer.transport.written.endswith(AMQP_HEADER), response
    assert caplog.records
    assert "not-the-secret" not in "".join(str(record.__dict__) for record in caplog.records)
