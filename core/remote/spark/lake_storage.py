"""The places of the lake: a folder of this machine, or a storage account, with the options that delta-rs needs."""

from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from core.errors import LakeUnreachable
from core.remote.spark.http import own_credential

STORAGE_SCOPE = "https://storage.azure.com/.default"


class Storage(Protocol):
    """Reads and writes small files, and names the place of a table for delta-rs."""

    @property
    def location(self) -> str:
        """The folder or the address that jobs write to."""

    def uri(self, table: str) -> str:
        """Return the address of a table in delta-rs."""

    def options(self) -> dict[str, str] | None:
        """Return the options of this storage in delta-rs, with a fresh token where an identity signs in."""

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the sizes of all files below a folder, by their paths relative to it."""

    def read(self, path: str) -> bytes:
        """Return the content of a file."""

    def write(self, path: str, content: bytes) -> None:
        """Write a file, or replace it."""

    def remove(self, path: str) -> None:
        """Remove a file."""


class FolderStorage:
    """A Storage on this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()

    @property
    def location(self) -> str:
        return str(self._folder)

    def uri(self, table: str) -> str:
        if self._folder.exists() and not self._folder.is_dir():
            raise NotADirectoryError(f"{self._folder} is no folder")  # delta-rs would report that there is no table
        return str(self._folder / table)

    def options(self) -> dict[str, str] | None:
        return None

    def sizes(self, folder: str) -> dict[str, int]:
        place = self._folder / folder
        return {one.relative_to(place).as_posix(): one.stat().st_size for one in place.rglob("*") if one.is_file()}

    def read(self, path: str) -> bytes:
        return (self._folder / path).read_bytes()

    def write(self, path: str, content: bytes) -> None:
        place = self._folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)

    def remove(self, path: str) -> None:
        (self._folder / path).unlink()


class BlobStorage:
    """A Storage in an account: `https://ACCOUNT.blob…/CONTAINER/PREFIX`, or `abfss://CONTAINER@ACCOUNT.dfs…/PREFIX`.

    `connection` is a connection string. Without one, the identity of this process signs in.
    """

    def __init__(self, address: str, connection: str | None) -> None:
        self._address = address.rstrip("/")
        self._connection = connection
        self._container: Any = None
        self._prefix = ""

    @property
    def location(self) -> str:
        return self._address

    def uri(self, table: str) -> str:
        _, container, prefix = parse_address(self._address)
        return f"az://{_joined(container, prefix, table)}"

    def options(self) -> dict[str, str] | None:
        account, _, _ = parse_address(self._address)
        return account_options(account, self._connection)

    def sizes(self, folder: str) -> dict[str, int]:
        container, prefix = self._open()
        place = f"{_joined(prefix, folder)}/"
        return {one.name.removeprefix(place): one.size for one in container.list_blobs(name_starts_with=place)}

    def read(self, path: str) -> bytes:
        container, prefix = self._open()
        return bytes(container.download_blob(_joined(prefix, path)).readall())

    def write(self, path: str, content: bytes) -> None:
        container, prefix = self._open()
        container.upload_blob(_joined(prefix, path), content, overwrite=True)

    def remove(self, path: str) -> None:
        container, prefix = self._open()
        container.delete_blob(_joined(prefix, path))

    def _open(self) -> tuple[Any, str]:
        if self._container is None:
            from azure.storage.blob import ContainerClient

            account, name, self._prefix = parse_address(self._address)
            if self._connection is None:
                self._container = ContainerClient(account, name, credential=own_credential())
            else:
                self._container = ContainerClient.from_connection_string(self._connection, name)
        return self._container, self._prefix


def _joined(*parts: str) -> str:
    return "/".join(filter(None, parts))


def account_options(account: str, connection: str | None) -> dict[str, str]:
    """Return the options in delta-rs of an account, given by its address: its key or its token, and its endpoint."""
    parts = urlsplit(account)
    host = parts.hostname or ""
    is_local = host.replace(".", "").isdigit()
    options = {"account_name": parts.path.strip("/") if is_local else host.partition(".")[0]}
    if is_local:
        options |= {"azure_storage_endpoint": account, "allow_http": "true"}
    if connection is None:
        return {**options, "bearer_token": str(own_credential().get_token(STORAGE_SCOPE).token)}
    given = dict(part.partition("=")[::2] for part in connection.split(";"))
    if "SharedAccessSignature" in given:
        return {**options, "sas_token": given["SharedAccessSignature"]}
    return {**options, "account_key": given.get("AccountKey", "")}


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
