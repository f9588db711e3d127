"""Stores for measuring: one that counts the calls to a real store, and one that accepts every commit at once."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

from core.model.commits import BatchCommit, PartitionState
from core.model.events import Partition
from core.model.rows import ReferenceKey, Row
from core.model.spans import SequenceNumber
from tests.fakes.store import Store


class CountingStore:
    """A store that counts each call and passes it on to a real one."""

    def __init__(self, store: object) -> None:
        self._store = store
        self.calls = 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._store, name)

        def counted(*given: Any) -> Any:
            self.calls += 1
            return call(*given)

        return counted

    def as_store(self) -> Store:
        """Return this object, typed as a store."""
        return cast(Store, self)


class TakesAll:
    """A store that stores nothing, so that only the code that uses it is measured."""

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
