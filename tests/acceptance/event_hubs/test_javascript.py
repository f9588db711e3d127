import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from local.event_hubs import Emulator, HubSettings
from local.event_hubs.codec import Described, Symbol, UInt, ULong
from local.event_hubs.frames import ATTACH, SOURCE, TARGET, composite
from tests.acceptance.event_hubs.clients import HUB, signed_in, wait_until
from tests.patience import allowed

CLIENT = Path(__file__).parents[3] / ".venv" / "javascript" / "node_modules"
PROGRAM = Path(__file__).with_name("javascript.cjs")
IS_HERE = shutil.which("node") is not None and (CLIENT / "@azure" / "event-hubs").exists()
pytestmark = pytest.mark.skipif(
    not IS_HERE, reason="the JavaScript client is not installed: `make javascript` does it, with npm"
)


def begin(act: str, emulator: Emulator) -> "subprocess.Popen[str]":
    command = ["node", str(PROGRAM), act, emulator.connection_string]
    environment = {**os.environ, "NODE_PATH": str(CLIENT)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def found(process: "subprocess.Popen[str]") -> Any:
    """Return what the program found. Fail with its complaint when it does not end well in time."""
    try:
        printed, complaints = process.communicate(timeout=allowed(60))
    finally:
        process.kill()
    assert process.returncode == 0, complaints
    return json.loads(printed)


def test_a_reader_of_a_lower_epoch_learns_who_took_its_place(emulator: Emulator) -> None:
    refused = found(begin("epochs", emulator))
    assert refused["code"] == "ReceiverDisconnectedError"
    former, later = r"current receiver '(\S+)' with epoch '3'", r"New receiver '(\S+)' with higher epoch of '5'"
    names = [re.search(pattern, refused["message"]) for pattern in (former, later)]
    assert all(name and name[1] != "nil" for name in names), "the client names its readers"


def test_producers_of_one_group_see_its_last_number_and_a_wrong_one_ends_nobody(emulator: Emulator) -> None:
    seen = found(begin("producers", emulator))
    assert seen["numbers"] == [0, 5, 6]
    out_of_order = "the number 1 does not follow: 6 is the next one of its producer"
    assert seen["refused"] == [out_of_order, "ArgumentOutOfRangeError", "ProducerDisconnectedError"]
    assert emulator.end_of(HUB)["0"] == 7


@contextmanager
def idle_owner(emulator: Emulator) -> Iterator[None]:
    ends = Described(ULong(SOURCE), [f"{HUB}/ConsumerGroups/$Default/Partitions/0"]), Described(ULong(TARGET), ["here"])
    epoch = {Symbol("com.microsoft:epoch"): 0}
    attach = composite(ATTACH, "owner", UInt(1), True, None, None, *ends, *[None] * 6, epoch)
    with socket.create_connection(("127.0.0.1", emulator.port), timeout=allowed(10)) as connection:
        connection.sendall(signed_in(emulator, attach))
        wait_until(lambda: emulator.reader_count(HUB) == 1)
        yield


def test_an_idempotent_producer_that_never_learns_of_a_stored_event_publishes_it_once() -> None:
    with Emulator([HubSettings(HUB, 1, lead=1)]).running() as emulator, idle_owner(emulator):
        process = begin("idempotent", emulator)
        wait_until(lambda: emulator.end_of(HUB)["0"] == 1)
        emulator.drop_connections()
        assert found(process) == list(range(10))
        assert emulator.end_of(HUB)["0"] == 9
