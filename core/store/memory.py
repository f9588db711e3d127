"""The memory of a process: the state of partitions until a fault, and references for a short, fixed time."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta

from core.model.commits import PartitionState, Settled
from core.model.events import Partition, Stream
from core.model.rows import ReferenceKey, Row, row_table

STREAM_SECONDS = 5.0  # to remember the id of a stream: an operator may open the next incarnation in a different process
SHARES = 64  # of the references, by their hash, each in a dict of its own
MOST_REFERENCES = SHARES * 800  # rows, about 20 MB; the oldest of a share are forgotten first


class Memory:
    """Remembers reads, so that a batch costs one call in the steady state.

    A stale memory is harmless: the compare-and-set refuses the commit, and the partition is read again. `monotonic`
    gives seconds and only lets references and the ids of streams grow old.

    A dict whose keys come and go moves to new memory every few thousand keys. One dict of all references would move
    2.6 MB in whichever thread is at work, and each thread's heap in turn would keep a hole of that size.
    """

    def __init__(self, keep: timedelta, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._keep = keep.total_seconds()
        self._monotonic = monotonic
        self._stream_ids: dict[Stream, tuple[float, int]] = {}
        self._states: dict[Partition, PartitionState] = {}
        self._references: list[dict[ReferenceKey, tuple[float, Row]]] = [{} for _ in range(SHARES)]
        self._lock = threading.Lock()

    def state_of(self, partition: Partition) -> PartitionState | None:
        """Return the remembered state of a partition, or None."""
        return self._states.get(partition)

    def remember(self, state: PartitionState) -> PartitionState:
        """Remember the state of a partition, and return it."""
        self._states[state.partition] = state
        return state

    def stream_id_of(self, stream: Stream) -> int | None:
        """Return the remembered id of a stream, or None when it is unknown or old."""
        read_at, stream_id = self._stream_ids.get(stream, (0.0, None))
        return stream_id if self._monotonic() - read_at < STREAM_SECONDS else None

    def last_stream_id_of(self, stream: Stream) -> int | None:
        """Return the remembered id of a stream, however old: only for a statement that answers nothing when the stream
        is closed."""
        return self._stream_ids.get(stream, (0.0, None))[1]

    def remember_stream(self, stream: Stream, stream_id: int) -> int:
        """Remember the id of a stream for a few seconds, and return it."""
        self._stream_ids[stream] = (self._monotonic(), stream_id)
        return stream_id

    def forget(self, partition: Partition) -> None:
        """Forget the state of a partition and the id of its stream, so that both are read again."""
        self._states.pop(partition, None)
        self.forget_stream(partition.stream)

    def forget_stream(self, stream: Stream) -> None:
        """Forget the id of a stream, so that it is read again."""
        self._stream_ids.pop(stream, None)

    def forget_references(self) -> None:
        """Forget all references: whenever a partition is read again, another process may have written references."""
        with self._lock:
            for share in self._references:
                share.clear()

    def known(self, keys: Iterable[ReferenceKey]) -> tuple[dict[ReferenceKey, Row], list[ReferenceKey]]:
        """Return the remembered rows, and the keys without a remembered row."""
        since = self._monotonic() - self._keep
        rows: dict[ReferenceKey, Row] = {}
        unknown: list[ReferenceKey] = []
        for key in keys:
            read_at, row = self._share_of(key).get(key, (since, None))
            if row is not None and read_at > since:
                rows[key] = row
            else:
                unknown.append(key)
        return rows, unknown

    def remember_references(self, found: Mapping[ReferenceKey, Row]) -> None:
        """Remember rows, from now on. A key without a row is never remembered."""
        now = self._monotonic()
        with self._lock:
            for key, row in found.items():
                share = self._share_of(key)
                share.pop(key, None)  # moves the key to the end: a dict keeps the order of insertion
                share[key] = (now, row)
                if len(share) > MOST_REFERENCES // SHARES:
                    del share[next(iter(share))]

    def forget_states_of(self, settled: Settled) -> None:
        """Forget the references that a commit overwrites."""
        for row_class, rows in settled.rows.items():
            if row_table(row_class).key:
                with self._lock:
                    for _, _, row in rows:
                        key = ReferenceKey.of(row)
                        self._share_of(key).pop(key, None)

    def _share_of(self, key: ReferenceKey) -> dict[ReferenceKey, tuple[float, Row]]:
        return self._references[hash(key) % SHARES]
