"""Stores for measuring: one that counts the calls to another, and one that takes every commit at once."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

from core.model.commits import BatchCommit, PartitionState
from core.model.events import Partition
from core.model.rows import ReferenceKey, Row
from core.model.spans import SequenceNumber
from core.store import AppStore


class CountingStore:
    """Counts the calls that reach a store, whatever their name."""

    def __init__(self, store: object) -> None:
        self._store = store
        self.calls = 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._store, name)

        def counted(*given: Any) -> Any:
            self.calls += 1
            return call(*given)

        return counted

    def as_store(self) -> AppStore:
        """The same, for those who ask for a store."""
        return cast(AppStore, self)


class TakesAll:
    """A store that keeps nothing: what it is used by is measured alone."""

    def __init__(self) -> None:
        self._commits = 0

    def read_partition(self, partition: Partition) -> PartitionState:
        return PartitionState(partition, 1, None)

    def read_references(self, keys: Iterable[ReferenceKey]) -> Mapping[ReferenceKey, Row]:
        return {}

    def anchor_partition(self, state: PartitionState, anchor: SequenceNumber, at: datetime) -> PartitionState:
        return replace(state, anchor=anchor)

    def commit_batch(self, commit: BatchCommit) -> int:
        self._commits += 1
        return self._commits
