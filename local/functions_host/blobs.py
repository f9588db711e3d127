"""The host's checkpoints as blobs: kept in a storage account, or served from the host's state.

Source of the layout: `BlobCheckpointStoreInternal` of the Event Hubs extension: container `azure-webjobs-eventhub`, an
empty blob per partition at `namespace/hub/group/checkpoint/partition` in lower case, and the position in its metadata.
The real host's ownership blobs are not written: one process owns every partition here.

Source: the REST reference of Blob Storage: Get Blob Properties, Put Blob, Set Blob Metadata, conditional headers. There
is no other blob, and the signature of a request is not checked, like no key of this host.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any
from zlib import crc32

from aiohttp import web

from local.functions_host.errors import HostError
from local.functions_host.event_source import HubAddress, StartAt
from local.functions_host.state_file import StateFile
from local.stack.azurite import ACCOUNT, KEY

CONTAINER = "azure-webjobs-eventhub"


class BlobState(StateFile):
    """The state of the host: its checkpoints are in blobs, the rest is in the state file."""

    def __init__(self, path: Path | None, connection: str) -> None:
        """Connect to the account. Raises HostError when that fails."""
        self._container = _open_container(connection)
        super().__init__(path)

    def read_checkpoint(self, address: HubAddress, partition_id: str) -> StartAt | None:
        from azure.core.exceptions import ResourceNotFoundError

        try:
            metadata = self._blob(address, partition_id).get_blob_properties().metadata
        except ResourceNotFoundError:
            return None
        return StartAt(offset=metadata["offset"], sequence_number=int(metadata["sequencenumber"]))

    def write_checkpoint(self, address: HubAddress, partition_id: str, position: StartAt) -> None:
        metadata = {"offset": str(position.offset), "sequencenumber": str(position.sequence_number)}
        self._blob(address, partition_id).upload_blob(b"", overwrite=True, metadata=metadata)

    def close(self) -> None:
        self._container.close()
        super().close()

    def _blob(self, address: HubAddress, partition_id: str) -> Any:
        return self._container.get_blob_client(blob_name(address, partition_id))


def blob_name(address: HubAddress, partition_id: str) -> str:
    return f"{address.namespace}/{address.hub}/{address.consumer_group}/checkpoint/{partition_id}".lower()


def _open_container(connection: str) -> Any:
    try:
        from azure.core.exceptions import AzureError, ResourceExistsError
        from azure.storage.blob import ContainerClient
    except ImportError as error:
        raise HostError("--storage needs azure-storage-blob: pip install azure-storage-blob") from error
    try:
        container = ContainerClient.from_connection_string(connection, CONTAINER, retry_total=0)
        container.create_container()
    except ResourceExistsError:
        pass
    except (AzureError, ValueError) as error:
        raise HostError(f"--storage: the account cannot be opened: {str(error).splitlines()[0]}") from error
    return container


META = "x-ms-meta-"


class BlobService:
    """The checkpoints of hubs, as blobs of the account of Azurite."""

    def __init__(self, state: StateFile, hubs: Iterable[HubAddress]) -> None:
        self._state = state
        self._hubs = {blob_name(hub, ""): hub for hub in hubs}

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_put(f"/{ACCOUNT}/{CONTAINER}", self.create_container)
        router.add_head(f"/{ACCOUNT}/{CONTAINER}/{{name:.+}}", self.properties)
        router.add_put(f"/{ACCOUNT}/{CONTAINER}/{{name:.+}}", self.put)
        router.add_route("*", f"/{ACCOUNT}/{{rest:.*}}", self.refuse)

    async def create_container(self, _: web.Request) -> web.Response:
        return _refused(409, "ContainerAlreadyExists")

    async def refuse(self, _: web.Request) -> web.Response:
        return _refused(501, "NotEmulated")

    async def properties(self, request: web.Request) -> web.Response:
        """Return a checkpoint as the metadata of its blob."""
        found = self._read(request)
        if found is None:
            return _refused(404, "BlobNotFound")
        metadata = {f"{META}offset": found.offset or "", f"{META}sequencenumber": str(found.sequence_number)}
        return web.Response(headers={**_stamps(found), **metadata, "x-ms-blob-type": "BlockBlob"})

    async def put(self, request: web.Request) -> web.Response:
        """Write a checkpoint if the conditions hold: a whole blob, or the metadata of one that exists."""
        hub, partition_id = self._place(request)
        found, is_metadata = self._read(request), request.query.get("comp") == "metadata"
        if hub is None or request.query.get("comp") not in (None, "metadata"):
            return _refused(501, "NotEmulated")
        if found is None and is_metadata:
            return _refused(404, "BlobNotFound")
        if found is not None and request.headers.get("If-None-Match") == "*":
            return _refused(409, "BlobAlreadyExists")
        if request.headers.get("If-Match") not in (None, "*" if found else None, _tag(found)):
            return _refused(412, "ConditionNotMet")
        number = request.headers.get(f"{META}sequencenumber", "")
        if not number.isdigit():
            return _refused(400, "InvalidMetadata")
        position = StartAt(request.headers.get(f"{META}offset", ""), None, int(number))
        self._state.write_checkpoint(hub, partition_id, position)
        return web.Response(status=200 if is_metadata else 201, headers=_stamps(position))

    def _read(self, request: web.Request) -> StartAt | None:
        hub, partition_id = self._place(request)
        return None if hub is None else self._state.read_checkpoint(hub, partition_id)

    def _place(self, request: web.Request) -> tuple[HubAddress | None, str]:
        stream, slash, partition_id = request.match_info["name"].rpartition("/")
        return self._hubs.get(stream + slash), partition_id


def connection_to(port: int) -> str:
    endpoint = f"BlobEndpoint=http://127.0.0.1:{port}/{ACCOUNT}"
    return f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};{endpoint};"


def _tag(position: StartAt | None) -> str | None:
    """Return the tag of a checkpoint. Positions only rise, so that it never comes again."""
    return None if position is None else f'"0x{position.sequence_number}{crc32((position.offset or "").encode()):08X}"'


def _stamps(position: StartAt) -> dict[str, str]:
    return {"ETag": _tag(position) or "", "Last-Modified": format_datetime(datetime.now(UTC), usegmt=True)}


def _refused(status: int, code: str) -> web.Response:
    return web.Response(status=status, headers={"x-ms-error-code": code})
