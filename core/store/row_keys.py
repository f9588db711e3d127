"""The keys of rows: none that two engines compare in different ways, and of each state one row alone."""

from collections.abc import Iterable
from operator import itemgetter
from typing import Any

from core.model.rows import row_table
from core.store.columns import Values, ValuesOf
from core.transforms.aggregates import load_aggregates


def keyed(row_class: type, position: int, values_of: ValuesOf) -> ValuesOf:
    """Return a function from placed rows to values; before the columns, the values have a position of this length.

    For states, only the newest of each key, by its `newest_by` or the last one, in the order of the keys: two commits
    lock them in one order. The function raises ValueError for a key that ends with a space, in every engine: SQL Server
    ignores that space. The key of an aggregate of the rows is such a key too.
    """
    table = row_table(row_class)
    places = {name: place for place, name in enumerate(table.columns, position)}
    texts = {f"{table.name}.{name}": places[name] for name in _key_columns(row_class)}
    key_of, ranked_by = [places[name] for name in table.key], places.get(table.newest_by)

    def values_with_keys(*given: Any) -> list[Values]:
        values = values_of(*given)
        for name, place in texts.items():
            if padded := [text for each in values if isinstance(text := each[place], str) and text[-1:] == " "]:
                raise _padded(name, padded[0])
        if ranked_by is not None:  # a stable sort: of equal values, the last one stays
            values.sort(key=itemgetter(ranked_by))
        return _newest(values, key_of) if key_of else values

    return values_with_keys if texts or key_of else values_of


def _key_columns(row_class: type) -> list[str]:
    """Return the columns of a key: that of a state, or those of the aggregates of appended rows."""
    grouped_by = (each.name for one in load_aggregates((row_class,)) for each in one.grouped_by)
    return list(dict.fromkeys((*row_table(row_class).key, *grouped_by)))


def _padded(name: str, text: str) -> ValueError:
    return ValueError(
        f"the key {name} ends with a space, which SQL Server ignores: it takes the key for the one without the space;"
        f" remove the space in the transform: {text[-40:]!r}"
    )


def _newest(values: Iterable[Values], places: list[int]) -> list[Values]:
    newest = {tuple([str(each[place]) for place in places]): each for each in values}  # in order: the last one stays
    return [newest[key] for key in sorted(newest)]
