"""Row classes and aggregates that a test declares in a line, and that are forgotten after it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import make_dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

from core.model import aggregates, rows
from core.model.aggregates import Aggregate, Count, Key, Least, Most, Sum, aggregate_of, aggregate_table
from core.model.rows import Text, appended_to, state_of

LONGER = (Annotated[str, Text(20)], Annotated[str, Text(40)])
CHOSEN = ("order", "group", "index", "größe", "select")  # words of SQL, and letters that are not of ASCII


def state(table: str, key: tuple[str, ...], /, **fields: Any) -> type:
    newest_by = fields.pop("newest_by", "")
    return state_of(table, key, newest_by=newest_by)(_class(table, fields))


def appended(table: str, /, **fields: Any) -> type:
    return appended_to(table)(_class(table, fields))


def windows(source: type, name: str, at: str, /, **fields: Any) -> Aggregate:
    window, rollups = fields.pop("window", timedelta(days=1)), fields.pop("rollups", None)
    declared: type = aggregate_of(source, name, at=at, window=window, rollups=rollups)(_class(name, fields))
    return aggregate_table(declared)


def every_type() -> tuple[type, type]:
    """Return a class of states and one of appended rows with every type of a field, with and without None."""
    kinds: dict[str, Any] = {"text": LONGER[0], "long": str, "code": Annotated[str, Text(3, ascii=True)], "number": int}
    kinds |= {"claim": bool, "share": float, "price": Decimal, "at": datetime, "day": date}
    optional = {f"{name}_or_none": kind | None for name, kind in kinds.items()}
    words = dict.fromkeys(CHOSEN, int | None)
    key = ("text", "number", "claim", "at", "day")
    return state("all_states", key, **kinds, **optional, **words), appended("all_rows", **kinds, **optional, **words)


def named_by_words() -> tuple[type, type, Aggregate]:
    key, user = Annotated[str, Text(20)], Annotated[str, Text(20, ascii=True)]
    fields = {"key": key, "user": user, "order": int, "group": str | None, "index": float, "select": bool}
    fields |= {"end": datetime, "open": date, "größe": int | None}
    state_of_words = state("plain", ("key", "user", "end", "open"), **fields)
    line: type = appended_to("line", subject="user")(_class("line", fields))
    keys = {"user": Annotated[str, Key(20, ascii=True)], "key": Annotated[str, Key(20)], "window_start": datetime}
    measures = {"count": Annotated[int, Count()], "order": Annotated[int, Sum("order")]}
    ends = {"open": Annotated[datetime, Least("end")], "größe": Annotated[int | None, Most("größe")]}
    return state_of_words, line, windows(line, "line_by_day", "end", **keys, **measures, **ends)


@contextmanager
def forgotten() -> Iterator[None]:
    registries: list[dict[Any, Any]] = [rows._TABLES, aggregates._AGGREGATES, aggregates._ROLLUPS]
    before = [dict(each) for each in registries]
    yield
    for registry, known in zip(registries, before, strict=True):
        registry.clear()
        registry.update(known)


def _class(table: str, fields: dict[str, Any]) -> type:
    return make_dataclass(table.title().replace("_", ""), fields.items(), frozen=True, slots=True)
