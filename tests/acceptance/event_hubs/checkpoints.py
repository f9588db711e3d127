"""A checkpoint store in memory that keeps the SDK's rules: claims are compare-and-set on the etag."""

from __future__ import annotations

import threading
import time
import uuid
from typing import Any

from azure.eventhub import CheckpointStore
from azure.eventhub.aio import CheckpointStore as AioCheckpointStore

_OWNERSHIP = ("fully_qualified_namespace", "eventhub_name", "consumer_group", "partition_id")


class MemoryCheckpoints(CheckpointStore):
    """The store of sync consumers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owners: dict[tuple, dict[str, Any]] = {}
        self.checkpoints: dict[str, int] = {}
        self._checkpoints: dict[tuple, dict[str, Any]] = {}

    def list_ownership(self, *place: str, **_: Any) -> list[dict[str, Any]]:
        with self._lock:
            return [dict(owner) for key, owner in self._owners.items() if key[:3] == place]

    def claim_ownership(self, ownership_list: Any, **_: Any) -> list[dict[str, Any]]:
        with self._lock:
            return [claim for claim in map(self._claim, ownership_list) if claim]

    def _claim(self, wanted: dict[str, Any]) -> dict[str, Any] | None:
        key = tuple(wanted[name] for name in _OWNERSHIP)
        current = self._owners.get(key)
        if current and current["etag"] != wanted.get("etag"):
            return None
        self._owners[key] = {**wanted, "etag": str(uuid.uuid4()), "last_modified_time": time.time()}
        return dict(self._owners[key])

    def update_checkpoint(self, checkpoint: dict[str, Any], **_: Any) -> None:
        with self._lock:
            self._checkpoints[tuple(checkpoint[name] for name in _OWNERSHIP)] = dict(checkpoint)
            self.checkpoints[checkpoint["partition_id"]] = checkpoint["sequence_number"]

    def list_checkpoints(self, *place: str, **_: Any) -> list[dict[str, Any]]:
        with self._lock:
            return [dict(checkpoint) for key, checkpoint in self._checkpoints.items() if key[:3] == place]


class AioCheckpoints(AioCheckpointStore):
    """The same for aio consumers."""

    def __init__(self, kept: MemoryCheckpoints) -> None:
        self._kept = kept

    async def list_ownership(self, *place: str, **_: Any) -> list[dict[str, Any]]:
        return self._kept.list_ownership(*place)

    async def claim_ownership(self, ownership_list: Any, **_: Any) -> list[dict[str, Any]]:
        return self._kept.claim_ownership(ownership_list)

    async def update_checkpoint(self, checkpoint: Any, **_: Any) -> None:
        self._kept.update_checkpoint(checkpoint)

    async def list_checkpoints(self, *place: str, **_: Any) -> list[dict[str, Any]]:
        return self._kept.list_checkpoints(*place)
