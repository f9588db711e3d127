"""The lake's pointer in a folder, or in a blob that is swapped by If-Match."""

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from core.aggregation.lake import Pointer, StoredPointer
from core.errors import LakeUnreachable
from core.remote.hub.client import first_line

POINTER = "current.json"


class FolderLake:
    """A Lake on this machine; a lock and a rename replace If-Match."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()

    @property
    def location(self) -> str:
        return str(self._folder)

    def read_pointer(self, job: str) -> StoredPointer | None:
        try:
            text = (self._folder / job / POINTER).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LakeUnreachable(f"LAKE: {error}") from error
        return StoredPointer(_pointer(text), _etag(text))

    def swap_pointer(self, pointer: Pointer, etag: str | None) -> bool:
        try:
            with self._locked(pointer.job) as folder:
                standing = self.read_pointer(pointer.job)
                if (standing.etag if standing else None) != etag:
                    return False
                _replace(folder / POINTER, pointer.to_json())
        except OSError as error:
            raise LakeUnreachable(f"LAKE: {error}") from error
        return True

    @contextmanager
    def _locked(self, job: str) -> Iterator[Path]:
        folder = self._folder / job
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder


class BlobLake:
    """A Lake in a storage account: `https://ACCOUNT.blob…/CONTAINER/PREFIX`, or `abfss://CONTAINER@ACCOUNT.dfs…/PREFIX`.

    `connection` is a connection string; without one, the identity of this process signs in.
    """

    def __init__(self, address: str, connection: str | None) -> None:
        self._address = address.rstrip("/")
        self._connection = connection
        self._container: Any = None

    @property
    def location(self) -> str:
        return self._address

    def read_pointer(self, job: str) -> StoredPointer | None:
        from azure.core.exceptions import AzureError, ResourceNotFoundError

        try:
            download = self._blob(job).download_blob()
            return StoredPointer(_pointer(download.readall()), download.properties.etag)
        except ResourceNotFoundError:
            return None
        except AzureError as error:
            raise LakeUnreachable(f"LAKE: {first_line(error)}") from error

    def swap_pointer(self, pointer: Pointer, etag: str | None) -> bool:
        from azure.core import MatchConditions
        from azure.core.exceptions import AzureError, ResourceExistsError, ResourceModifiedError

        condition: dict[str, Any] = {"overwrite": False}
        if etag is not None:
            condition = {"overwrite": True, "etag": etag, "match_condition": MatchConditions.IfNotModified}
        try:
            self._blob(pointer.job).upload_blob(pointer.to_json(), **condition)
        except (ResourceExistsError, ResourceModifiedError):
            return False
        except AzureError as error:
            raise LakeUnreachable(f"LAKE: {first_line(error)}") from error
        return True

    def _blob(self, job: str) -> Any:
        if self._container is None:
            self._container, self._prefix = open_container(self._address, self._connection)
        return self._container.get_blob_client("/".join(filter(None, [self._prefix, job, POINTER])))


def open_container(address: str, connection: str | None) -> tuple[Any, str]:
    """Return a client of the container that an address names, and our prefix in it; nothing is connected yet."""
    from azure.storage.blob import ContainerClient

    account, name, prefix = parse_address(address)
    if connection is not None:
        return ContainerClient.from_connection_string(connection, name), prefix
    from azure.identity import DefaultAzureCredential

    return ContainerClient(account, name, credential=DefaultAzureCredential()), prefix


def parse_address(address: str) -> tuple[str, str, str]:
    """Return the account, container and prefix of an address. Azurite has its account in the path, after an IP address.

    LakeUnreachable for an address that names no container.
    """
    parts = urlsplit(address)
    segments = [segment for segment in parts.path.split("/") if segment]
    if parts.scheme == "abfss" and parts.username and parts.hostname:
        return f"https://{parts.hostname.replace('.dfs.', '.blob.')}", parts.username, "/".join(segments)
    account = f"{parts.scheme}://{parts.netloc}"
    if parts.hostname and parts.hostname.replace(".", "").isdigit() and segments:
        account = f"{account}/{segments.pop(0)}"
    if parts.scheme not in ("https", "http") or not segments:
        raise LakeUnreachable(f"LAKE: {address} is not a folder, abfss://CONTAINER@ACCOUNT… or https://…/CONTAINER")
    return account, segments[0], "/".join(segments[1:])


def _pointer(text: bytes) -> Pointer:
    try:
        return Pointer.of_json(text)
    except (ValueError, KeyError, TypeError) as error:
        raise LakeUnreachable(f"LAKE: the pointer cannot be read: {error!r}") from error


def _replace(path: Path, text: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".pointer-")
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(name, path)


def _etag(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()
