"""Compile a script to one T-SQL batch, one round trip: a text that all scripts of one shape share, and parameters."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from core.errors import DataRefused
from core.store.queries import ROWS, Param, Query, load_queries
from core.store.script import Named, Script, Step
from core.store.sqlserver.connections import LongText
from core.store.sqlserver.faults import UNMET_WORDS
from core.store.sqlserver.statements import many_json, rows_json, rows_query, rows_values, without_zone

UNMET = 51100  # THROW when step 0 touches a different number of rows than expected; step 1 has 51101
LONG = "nvarchar(max)"
_CONVERTED = {"datetime2(6)": "CONVERT(datetime2(6), ?, 126)", "uniqueidentifier": "CONVERT(uniqueidentifier, ?)"}

Batch = tuple[str, list[Any]]


@dataclass(frozen=True, slots=True)
class _StepShape:
    """The part of a step that decides the text of its batch. The number that a step of many expects is a parameter."""

    statement: Named
    expects: Literal["nothing", "one", "many"]
    keeps: str | None
    counts: str | None
    is_collected: bool


def ask_batch(statement: Named, values: Mapping[str, Any]) -> Batch:
    """Return the batch of a statement that reads."""
    return _ask_text(statement, _left_out(values)), _given(_query_of(statement).declared, values)


def run_batch(script: Script, rehearse: bool) -> Batch:
    """Return the batch of a script. Raises ValueError when two steps give one parameter different values.

    A script of one statement without a condition needs no transaction of ours. A rehearsal collects its answer and
    gives it when everything is rolled back: no row stays locked while a client reads.
    """
    shapes = _shapes(script, rehearse)
    values = _values_of_steps(script.steps, _kept_numbers(shapes))
    text = _run_text(shapes, rehearse, script.gives_way, _left_out(values))
    return text, _given(_params_of(shapes), values)


def _shapes(script: Script, rehearse: bool) -> tuple[_StepShape, ...]:
    shapes = []
    for step in script.steps:
        expects: Literal["nothing", "one", "many"] = "nothing"
        if step.expect is not None:
            expects = "one" if step.expect == 1 and step.many is None else "many"
        shapes.append(_StepShape(step.statement, expects, step.keeps, step.counts, rehearse and step.answers))
    return tuple(shapes)


def run_text(script: Script) -> str:
    """Return the text of the batch of a script. It depends on the steps, and on none of their values."""
    return _run_text(_shapes(script, rehearse=False), False, script.gives_way, frozenset())


def step_text(step: Step) -> str:
    """Return the text of one step in its batch."""
    return _query_of(step.statement).text


@cache
def _ask_text(statement: Named, missing: frozenset[str]) -> str:
    query = _query_of(statement)
    return f"SET NOCOUNT ON;\n{_declare(query.declared, missing)}\n{query.text_without(missing)}"


@cache
def _run_text(shapes: tuple[_StepShape, ...], rehearse: bool, gives_way: bool, missing: frozenset[str]) -> str:
    kept, is_plain = _kept_numbers(shapes), len(shapes) == 1 and shapes[0].expects == "nothing" and not rehearse
    collected = [_query_of(shape.statement) for shape in shapes if shape.is_collected]
    options = ["SET NOCOUNT ON;", *([] if is_plain else ["SET XACT_ABORT ON;"])]
    options += ["SET DEADLOCK_PRIORITY LOW;"] if gives_way else []
    lines = [" ".join(options)]
    lines += [_declare(_params_of(shapes), missing), *map(_declare_answer, collected)]
    lines += [f"DECLARE {', '.join(f'@{name} bigint = 0' for name in kept)};"] if kept else []
    lines += [] if is_plain else ["BEGIN TRANSACTION;"]
    for place, shape in enumerate(shapes):
        query = _query_of(shape.statement)
        lines += [f"INSERT INTO @answer ({_answer_columns(query)})"] if shape.is_collected else []
        lines.append(query.text_without(missing))
        if shape.expects != "nothing":
            expected = "1" if shape.expects == "one" else f"@{_expected(place).name}"
            why = f"{shape.statement} {UNMET_WORDS}"
            lines.append(f"IF @@ROWCOUNT <> {expected} THROW {UNMET + place}, '{why}', 1;")
        elif shape.counts:
            lines.append(f"SET @{shape.counts} = @{shape.counts} + @@ROWCOUNT;")
    lines += [] if is_plain else [f"{'ROLLBACK' if rehearse else 'COMMIT'} TRANSACTION;"]
    lines += [f"SELECT {_answer_columns(query, 'a.')} FROM @answer AS a ORDER BY a.place;" for query in collected]
    lines += [f"SELECT {', '.join(f'@{name} AS {name}' for name in kept)};"] if kept else []
    return "\n".join(lines)


def _declare_answer(query: Query) -> str:
    """Declare a variable for the rows of a statement. No rollback empties a variable."""
    if not query.answers:
        raise ValueError(f"{query.name} cannot be rehearsed: its header has no `-- answers:` with names and types")
    columns = ", ".join(f"{column.name} {column.type}" for column in query.answers)
    return f"DECLARE @answer TABLE (place int IDENTITY PRIMARY KEY, {columns});"


def _answer_columns(query: Query, prefix: str = "") -> str:
    return ", ".join(prefix + column.name for column in query.answers)


def _kept_numbers(shapes: Iterable[_StepShape]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for shape in shapes for name in (shape.keeps, shape.counts) if name))


@cache
def _params_of(shapes: tuple[_StepShape, ...]) -> tuple[Param, ...]:
    """Return the parameters of all steps, each once, without those that the script keeps itself."""
    params: dict[str, Param] = {}
    kept = _kept_numbers(shapes)
    for place, shape in enumerate(shapes):
        expected = (_expected(place),) if shape.expects == "many" else ()
        for param in (*_query_of(shape.statement).declared, *expected):
            if param.name not in kept:
                params.setdefault(param.name, param)
    return tuple(params.values())


def _expected(place: int) -> Param:
    return Param(f"expected_of_step_{place}", "int")


def _values_of_steps(steps: Iterable[Step], kept: tuple[str, ...]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for place, step in enumerate(steps):
        if step.expect is not None:
            values[_expected(place).name] = step.expect
        for param in _query_of(step.statement).declared:
            if param.name in kept:
                continue
            value = _sent(step, param) if param.type == ROWS else step.values[param.name]
            if values.setdefault(param.name, value) != value:
                raise ValueError(f"{step.statement} gives {param.name} a different value than a step before it")
    return values


def _sent(step: Step, param: Param) -> str:
    """Return the JSON of a step of many."""
    if isinstance(step.statement, str):
        return many_json([{**step.values, **each} for each in step.many or ()], param.columns)
    try:
        rows = rows_values(step.statement.row_class)(step.many or (), 0, "", 0)
    except ValueError as error:
        raise DataRefused(f"the rows cannot be written as JSON: {error}") from error
    return rows_json(rows)


def _query_of(statement: Named) -> Query:
    return load_queries("sqlserver")[statement] if isinstance(statement, str) else rows_query(statement)


def _declare(params: Sequence[Param], missing: frozenset[str]) -> str:
    """Declare every parameter, so that each value is sent once. A missing one is NULL."""
    given = {param.name: "" if param.name in missing else f" = {_CONVERTED.get(param.type, '?')}" for param in params}
    types = {param.name: LONG if param.type == ROWS else param.type for param in params}
    declared = [f"@{name} {types[name]}{value}" for name, value in given.items()]
    return f"DECLARE {', '.join(declared)};" if declared else ""


def _left_out(values: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the values to leave out: the driver asks the server for the type of each NULL."""
    return frozenset([name for name, value in values.items() if value is None])


def _given(params: Iterable[Param], values: Mapping[str, Any]) -> list[Any]:
    given = []
    for param in params:
        if (value := values[param.name]) is not None:
            if param.type in (ROWS, LONG):
                value = LongText(value)
            given.append(without_zone(value) if param.type == "datetime2(6)" else value)
    return given
