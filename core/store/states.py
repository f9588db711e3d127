"""The states of a commit: of each key the newest, and no key that two engines compare in different ways."""

from collections.abc import Iterable, Sequence
from typing import Any

from core.model.rows import PlacedRow, RowTable
from core.store.columns import Values, ValuesOf


def newest_of_each(table: RowTable, values_of: ValuesOf) -> ValuesOf:
    """Return a function from placed states to values: for each key, only the newest.

    The function raises ValueError for a key that ends with a space, in every engine: SQL Server ignores that space.
    """

    def newest(rows: Sequence[PlacedRow], stream_id: int, partition_id: str, commit_number: int) -> list[Values]:
        last = {table.key_of(placed[2]): placed for placed in rows}  # rows come in order, so the last one stays
        _refuse_padded(table, last)
        return values_of(list(last.values()), stream_id, partition_id, commit_number)

    return newest


def _refuse_padded(table: RowTable, keys: Iterable[tuple[Any, ...]]) -> None:
    for key in keys:
        for name, part in zip(table.key, key, strict=True):
            if isinstance(part, str) and part.endswith(" "):
                raise ValueError(
                    f"the key {table.name}.{name} ends with a space, which SQL Server ignores: it takes the key for the"
                    f" one without the space; remove the space in the transform: {part[-40:]!r}"
                )
