"""A checkpoint store in memory that keeps the SDK's rules: claims are compare-and-set on the etag."""

from __future__ import annotations

import threading
import time
import uuid
from typing import Any

from azure.eventhub import CheckpointStore
from azure.eventhub.aio import CheckpointStore as AioCheckpointStore

_KEY = ("fully_qualified_namespace", "eventhub_name", "consumer_group", "partition_id")
_Rows = dict[tuple[str, ...], dict[str, Any]]


class MemoryCheckpoints(CheckpointStore):
    """The store of sync consumers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owners: _Rows = {}
        self._checkpoints: _Rows = {}

    @property
    def checkpoints(self) -> dict[str, int]:
        """The sequence number of each partition's checkpoint."""
        return {key[3]: checkpoint["sequence_number"] for key, checkpoint in list(self._checkpoints.items())}

    def list_ownership(self, *place: str, **_: Any) -> list[dict[str, Any]]:
        return self._list(self._owners, place)

    def list_checkpoints(self, *place: str, **_: Any) -> list[dict[str, Any]]:
        return self._list(self._checkpoints, place)

    def _list(self, rows: _Rows, place: tuple[str, ...]) -> list[dict[str, Any]]:
        with self._lock:
            return [dict(row) for key, row in rows.items() if key[:3] == place]

    def claim_ownership(self, ownership_list: Any, **_: Any) -> list[dict[str, Any]]:
        with self._lock:
            return [claim for claim in map(self._claim, ownership_list) if claim]

    def _claim(self, wanted: dict[str, Any]) -> dict[str, Any] | None:
        key = tuple(wanted[name] for name in _KEY)
        current = self._owners.get(key)
        if current and current["etag"] != wanted.get("etag"):
            return None
        self._owners[key] = {**wanted, "etag": str(uuid.uuid4()), "last_modified_time": time.time()}
        return dict(self._owners[key])

    def update_checkpoint(self, checkpoint: dict[str, Any], **_: Any) -> None:
        with self._lock:
            self._checkpoints[tuple(checkpoint[name] for name in _KEY)] = dict(checkpoint)


class AioCheckpoints(AioCheckpointStore):
    """A sync store for aio consumers."""

    def __init__(self, store: MemoryCheckpoints) -> None:
        self._store = store

    async def list_ownership(self, *place: str, **_: Any) -> list[dict[str, Any]]:
        return self._store.list_ownership(*place)

    async def list_checkpoints(self, *place: str, **_: Any) -> list[dict[str, Any]]:
        return self._store.list_checkpoints(*place)

    async def claim_ownership(self, ownership_list: Any, **_: Any) -> list[dict[str, Any]]:
        return self._store.claim_ownership(ownership_list)

    async def update_checkpoint(self, checkpoint: Any, **_: Any) -> None:
        self._store.update_checkpoint(checkpoint)
