"""The links take turns: no reader and no publisher keeps a different one waiting for more than one turn of each."""

import asyncio

import pytest

from local.event_hubs.frames import FLOW, TRANSFER
from local.event_hubs.sessions import CHUNK, TURN
from tests.local.event_hubs.messages import message, transfer
from tests.local.event_hubs.peer import Peer, make_broker, publisher, reader

pytestmark = pytest.mark.asyncio
_BODY = b"x" * 30_000


async def test_a_reader_with_credit_for_all_gets_a_bounded_piece_in_each_turn() -> None:
    broker = make_broker()
    publisher(broker, *[_BODY] * 200)
    peer = reader(broker)
    peer.grant(200)
    turns = [peer.codes().count(TRANSFER)]
    while turns[-1]:
        await asyncio.sleep(0)
        turns.append(peer.codes().count(TRANSFER))
    assert sum(turns) == 200
    assert max(turns) * len(_BODY) <= TURN * (CHUNK + len(_BODY))


async def test_a_small_reader_is_served_between_the_turns_of_a_large_one() -> None:
    broker = make_broker()
    publisher(broker, *[_BODY] * 200)
    large, small = reader(broker), reader(broker)
    large.grant(200)
    small.grant(1)
    assert large.codes().count(TRANSFER) < 200
    assert small.codes().count(TRANSFER) == 1


async def test_a_flood_of_two_publishers_leaves_a_reader_its_turn_after_each_of_theirs() -> None:
    broker = make_broker()
    peer = reader(broker)
    peer.grant(1_000)
    floods = [publisher(broker), publisher(broker)]
    for turn in range(20):
        for flood in floods:
            flood.put(*(transfer(message(_BODY), 8 * turn + number) for number in range(8)))
        await asyncio.sleep(0)
        assert peer.codes().count(TRANSFER) == 16, turn


async def test_a_link_that_ended_between_its_turns_sends_nothing_more() -> None:
    broker = make_broker()
    publisher(broker, *[_BODY] * 200)
    peer = reader(broker)
    peer.grant(200)
    peer.connection.sessions[0].detach(peer.connection.sessions[0].links[1])
    peer.frames()
    for _ in range(5):
        await asyncio.sleep(0)
    assert peer.codes() == []


async def test_a_drain_is_answered_after_the_last_turn() -> None:
    broker = make_broker()
    publisher(broker, *[_BODY] * 100)
    peer: Peer = reader(broker)
    peer.grant(150, drain=True)
    codes = peer.codes()
    assert FLOW not in codes
    while FLOW not in codes:
        await asyncio.sleep(0)
        codes += peer.codes()
    assert codes == [TRANSFER] * 100 + [FLOW]
