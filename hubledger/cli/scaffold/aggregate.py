"""The text of the module of an aggregate: the events of one field by the hour."""

import re
from collections.abc import Iterator

from core.model.aggregates import ADDED
from hubledger.cli.scaffold.code import bracketed, module
from hubledger.cli.scaffold.design import Design, camel
from hubledger.cli.scaffold.fields import LONGEST_COLUMN, Field

MOST_SUMS = 5
_NAME = re.compile(
    r"(?:^|_)(?:"
    r"id|ids|uid|pid|key|ref|serial|number|no|nr|num|code|zip|postcode|port|phone|msisdn|imei|imsi|iccid|ean|gtin|sku"
    r"|version|revision|index|idx|seq|sequence|offset|epoch|timestamp|ts|time|at|date|day|month|year|unix"
    r")(?:_(?:number|no|ns|us|ms|s|sec|seconds|millis|micros|nanos|utc))*$"
)


def aggregate_text(design: Design, at: Field, by: Field) -> str:
    """Return the module: the number of events, their first and last time, and the sums of integers."""
    declared = bracketed(
        "@aggregate_of",
        [design.row_class, f'"{design.aggregate}"', f'at="{at.column}"', "window=timedelta(hours=1)"],
    )
    return module(
        "aggregate.py",
        package=design.package,
        row_class=design.row_class,
        declared=declared,
        windows=camel(design.aggregate),
        at=at.column,
        by=by.column,
        type="str" if by.length else "int",
        key=f"Key({by.length}{', ascii=True' if by.kind == 'ascii' else ''})" if by.length else "Key()",
        measures="\n".join(f"    {line}" for line in _measures(design, at, by)),
    )


def _measures(design: Design, at: Field, by: Field) -> Iterator[str]:
    taken = {by.column}
    yield f"{_free('events', taken)}: Annotated[int, Count()]"
    whole = [one for one in design.fields if one.kind == "integer" and one not in design.keys and not _is_name(one)]
    for one in whole[:MOST_SUMS]:
        none = " | None" if one.is_optional else ""
        yield f'{_free(f"sum_of_{one.column}", taken)}: Annotated[int{none}, Sum("{one.column}")]'
    yield f'{_free(f"first_{at.column}", taken)}: Annotated[datetime, Least("{at.column}")]'
    yield f'{_free(f"last_{at.column}", taken)}: Annotated[datetime, Most("{at.column}")]'


def _is_name(one: Field) -> bool:
    """Return True for a number that names a thing, a place in an order or a time, so that its sum says nothing."""
    return _NAME.search(one.column) is not None


def _free(name: str, taken: set[str]) -> str:
    name = name[: LONGEST_COLUMN + 10]
    while name in taken or name in ADDED:
        name += "_"
    taken.add(name)
    return name
