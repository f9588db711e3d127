"""The trigger's own checkpoints in the layout of the Event Hubs extension: an empty blob for each partition.

Source of the layout: `BlobCheckpointStoreInternal` of the extension. The container is `azure-webjobs-eventhub`, and the
name of a blob is `namespace/hub/group/checkpoint/partition` in lower case. Its metadata has the position. The blobs
beside them say which host owns a partition. They are never touched: a change of them makes pauses and doubles.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from core.ingest.stalled_partitions import HostCheckpoint, HostStorageUnreachable
from core.model.commits import Checkpoint
from core.model.events import Partition
from core.remote.hub.client import first_line, sync_credential

CONTAINER, SETTING = "azure-webjobs-eventhub", "AzureWebJobsStorage"
SECONDS = {"connection_timeout": 3.0, "read_timeout": 5.0}  # a check of all partitions must not wait for long
NUMBER, OFFSET = "sequencenumber", "offset"
CHANGED = (409, 412)  # somebody made the blob, or changed it, since it was read


class BlobCheckpoints:
    """The HostCheckpoints of the account that `AzureWebJobsStorage` names: a connection string, an account or an
    address, to which the identity of this process signs in. Nothing connects before the first use."""

    def __init__(self, environment: Mapping[str, str], seconds: Mapping[str, float] = SECONDS) -> None:
        self._environment = environment
        self._seconds = seconds
        self._lock = threading.Lock()
        self._container: Any = None

    def read(self, partition: Partition) -> HostCheckpoint:
        from azure.core.exceptions import ResourceNotFoundError

        with _blob_faults():
            try:
                found = self._blob(partition).get_blob_properties()
            except ResourceNotFoundError:
                return HostCheckpoint()
            metadata = {name.lower(): value for name, value in found.metadata.items()}
            return HostCheckpoint(int(metadata[NUMBER]), found.etag, metadata)

    def write(self, partition: Partition, position: Checkpoint, found: HostCheckpoint) -> bool:
        from azure.core import MatchConditions
        from azure.core.exceptions import HttpResponseError

        metadata = {**found.others, OFFSET: position.offset, NUMBER: str(position.sequence_number)}
        with _blob_faults():
            blob = self._blob(partition)
            try:
                if found.tag is None:
                    blob.upload_blob(b"", metadata=metadata, overwrite=False)
                else:
                    blob.set_blob_metadata(metadata, etag=found.tag, match_condition=MatchConditions.IfNotModified)
            except HttpResponseError as error:
                if error.status_code not in CHANGED:
                    raise
                return False
        return True

    def close(self) -> None:
        with self._lock:
            if self._container is not None:
                self._container.close()

    def _blob(self, partition: Partition) -> Any:
        with self._lock:
            if self._container is None:
                self._container = _open_container(self._environment, self._seconds)
        return self._container.get_blob_client(blob_name(partition))


def blob_name(partition: Partition) -> str:
    """Return the name of the blob that holds the trigger's checkpoint of a partition."""
    return f"{partition.event_hub}/{partition.consumer_group}/checkpoint/{partition.partition_id}".lower()


def _open_container(environment: Mapping[str, str], seconds: Mapping[str, float]) -> Any:
    """Return a client of the container. Raises HostStorageUnreachable when no setting names the account."""
    from azure.storage.blob import ContainerClient

    options: dict[str, Any] = {"retry_total": 0, **seconds}
    if connection := environment.get(SETTING):
        return ContainerClient.from_connection_string(connection, CONTAINER, **options)
    name, address = (environment.get(f"{SETTING}__{part}") for part in ("accountName", "blobServiceUri"))
    if not name and not address:
        raise HostStorageUnreachable(f"{SETTING} is not set")
    account = address or f"https://{name}.blob.core.windows.net"
    return ContainerClient(account, CONTAINER, credential=sync_credential(), **options)


@contextmanager
def _blob_faults() -> Iterator[None]:
    from azure.core.exceptions import AzureError

    try:
        yield
    except (AzureError, OSError, ValueError, KeyError) as error:
        raise HostStorageUnreachable(f"{SETTING}: {first_line(error)}") from error
