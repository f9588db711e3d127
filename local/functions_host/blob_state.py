"""Store host checkpoints in a storage account, such as Azurite, in the layout of the real host.

Source of the layout: `BlobCheckpointStoreInternal` of the Event Hubs extension: container `azure-webjobs-eventhub`, an
empty blob per partition at `namespace/hub/group/checkpoint/partition` in lower case, and the position in its metadata.
The real host's ownership blobs are not written: one process owns every partition here.
"""

from pathlib import Path
from typing import Any

from local.functions_host.errors import HostError
from local.functions_host.event_source import HubAddress, StartAt
from local.functions_host.state_file import StateFile

CONTAINER = "azure-webjobs-eventhub"


class BlobState(StateFile):
    """The state of the host: its checkpoints are in blobs, the rest is in the state file."""

    def __init__(self, path: Path | None, connection: str) -> None:
        """Connect to the account; raise HostError when that fails."""
        self._container = _open_container(connection)
        super().__init__(path)

    def read_checkpoint(self, address: HubAddress, partition_id: str) -> StartAt | None:
        """Return the host checkpoint of a partition, or None when there is none."""
        from azure.core.exceptions import ResourceNotFoundError

        try:
            metadata = self._blob(address, partition_id).get_blob_properties().metadata
        except ResourceNotFoundError:
            return None
        return StartAt(offset=metadata["offset"], sequence_number=int(metadata["sequencenumber"]))

    def write_checkpoint(self, address: HubAddress, partition_id: str, position: StartAt) -> None:
        """Store the host checkpoint of a partition."""
        metadata = {"offset": str(position.offset), "sequencenumber": str(position.sequence_number)}
        self._blob(address, partition_id).upload_blob(b"", overwrite=True, metadata=metadata)

    def close(self) -> None:
        """Close the file and the connections."""
        self._container.close()
        super().close()

    def _blob(self, address: HubAddress, partition_id: str) -> Any:
        return self._container.get_blob_client(blob_name(address, partition_id))


def blob_name(address: HubAddress, partition_id: str) -> str:
    """Return the name of the blob of a partition's checkpoint."""
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
