import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest

from core.ingest.stalled_partitions import HostStorageUnreachable
from core.model.commits import Checkpoint
from core.model.events import SequenceNumber
from core.remote.trigger_blobs import BlobCheckpoints, blob_name
from tests.fakes.builders import NOON, partition

KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


class HostBlobs:
    """The blobs by name: each has its metadata and its version. `refuse` answers every call with a status. `pause` is
    the time of an answer in seconds."""

    def __init__(self, port: int) -> None:
        account = f"DefaultEndpointsProtocol=http;AccountName=acc;AccountKey={KEY}"
        self.connection = f"{account};BlobEndpoint=http://127.0.0.1:{port}/acc;"
        self.blobs: dict[str, tuple[dict[str, str], int]] = {}
        self.refuse: int | None = None
        self.pause = 0.0

    def put(self, name: str, **metadata: str) -> None:
        self.blobs[name] = (metadata, self.blobs.get(name, ({}, 0))[1] + 1)


@pytest.fixture
def account() -> Iterator[HostBlobs]:
    """Serve an empty account on the loopback until the end."""

    def answer(request: dict[str, Any], start: Callable[[str, list[tuple[str, str]]], Any]) -> list[bytes]:
        time.sleep(served.pause)
        name = request["PATH_INFO"].removeprefix("/acc/azure-webjobs-eventhub/")
        found, wanted = served.blobs.get(name), request.get("HTTP_IF_MATCH")
        status = 200 if found else 404
        if request["REQUEST_METHOD"] == "PUT":
            status = 200 if "comp=metadata" in request["QUERY_STRING"] else 201
            if request.get("HTTP_IF_NONE_MATCH") == "*" and found:
                status = 409
            elif wanted is not None and (found is None or wanted != f'"{found[1]}"'):
                status = 412
            else:
                given = {key[15:].lower(): text for key, text in request.items() if key.startswith("HTTP_X_MS_META_")}
                served.put(name, **given)
        metadata, version = served.blobs.get(name, ({}, 0)) if status < 300 else ({}, 0)
        shown = [("ETag", f'"{version}"'), ("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT"), ("Content-Length", "0")]
        start(f"{served.refuse or status} -", [*shown, *((f"x-ms-meta-{key}", text) for key, text in metadata.items())])
        return []

    class Silent(WSGIRequestHandler):
        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with make_server("127.0.0.1", 0, answer, handler_class=Silent) as server:
        served = HostBlobs(server.server_port)
        serving = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        serving.start()
        yield served
        server.shutdown()
        serving.join()


PLACE = partition("3", hub="NS.servicebus.windows.net/Telemetry", group="$Default")
NAME = "ns.servicebus.windows.net/telemetry/$default/checkpoint/3"
POSITION = Checkpoint(SequenceNumber(41), "2624", NOON, 7, UUID(int=1))


@pytest.fixture
def host(account: HostBlobs) -> Iterator[BlobCheckpoints]:
    opened = BlobCheckpoints({"AzureWebJobsStorage": account.connection})
    yield opened
    opened.close()


def test_a_checkpoint_moves_and_its_other_values_stay(account: HostBlobs, host: BlobCheckpoints) -> None:
    assert blob_name(PLACE) == NAME
    found = host.read(PLACE)
    assert found.sequence_number == -1
    assert host.write(PLACE, POSITION, found)
    assert account.blobs == {NAME: ({"offset": "2624", "sequencenumber": "41"}, 1)}
    account.put(NAME, offset="64", sequencenumber="1", clientidentifier="host-1")
    found = host.read(PLACE)
    assert found.sequence_number == 1
    assert host.write(PLACE, POSITION, found)
    assert account.blobs[NAME][0] == {"offset": "2624", "sequencenumber": "41", "clientidentifier": "host-1"}


@pytest.mark.parametrize("is_there", [True, False])
def test_of_two_that_write_at_once_one_writes(account: HostBlobs, host: BlobCheckpoints, is_there: bool) -> None:
    if is_there:
        account.put(NAME, offset="64", sequencenumber="1")
    found = host.read(PLACE)
    account.put(NAME, offset="128", sequencenumber="2")
    assert not host.write(PLACE, POSITION, found)
    assert account.blobs[NAME][0]["sequencenumber"] == "2"


def test_a_refusal_is_one_fault_with_the_name_of_the_setting(account: HostBlobs, host: BlobCheckpoints) -> None:
    found = host.read(PLACE)
    account.refuse = 404
    with pytest.raises(HostStorageUnreachable):
        host.write(PLACE, POSITION, found)
    for account.refuse in (400, 403, 500, 503):
        with pytest.raises(HostStorageUnreachable, match="AzureWebJobsStorage: "):
            host.read(PLACE)


@pytest.mark.parametrize("metadata", [{}, {"offset": "64"}, {"sequencenumber": "a few"}])
def test_a_blob_without_a_position_stays(account: HostBlobs, host: BlobCheckpoints, metadata: dict[str, str]) -> None:
    account.put(NAME, **metadata)
    with pytest.raises(HostStorageUnreachable):
        host.read(PLACE)


@pytest.mark.parametrize(
    ("connection", "words"),
    [
        (None, "AzureWebJobsStorage is not set"),
        ("AccountName=a", "AzureWebJobsStorage: "),
        ("BlobEndpoint=http://127.0.0.1:9/acc;AccountName=acc;AccountKey=a2V5", "refused"),
        ("that of the account, which does not answer in time", "timed out"),
    ],
)
def test_an_account_that_is_not_there_is_a_fault(account: HostBlobs, connection: str | None, words: str) -> None:
    account.pause = 0.5
    named = account.connection if words == "timed out" else connection
    host = BlobCheckpoints({} if named is None else {"AzureWebJobsStorage": named}, {"read_timeout": 0.1})
    with pytest.raises(HostStorageUnreachable, match=words):
        host.read(PLACE)
    host.close()
