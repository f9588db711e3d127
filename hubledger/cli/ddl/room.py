"""A whole room: the first migration of its row classes and aggregates, and the rights of the roles on their tables."""

from collections.abc import Sequence

from core.errors import InvalidTransform
from core.model.aggregates import Aggregate, Key
from core.model.rows import Text, row_table, texts_of
from hubledger.cli.ddl.tables import Engine, migration_text, table_of

_APP, _JOB = "hubledger_app", "hubledger_job"
_HEADING = """\
-- The rights of the app and of the Spark jobs on the tables of this room, as its classes declare them. Run it after
-- sql/sqlserver/permissions.sql, which creates the roles.
"""


def room_text(row_classes: Sequence[type], aggregates: Sequence[Aggregate], engine: Engine) -> str:
    """Return the statements that create every table of a room, on an empty database.

    Raises InvalidTransform with every class that has no table of its own, or whose key has no length.
    """
    refuse_unfit(row_classes, aggregates)
    rows = [table_of(each).text(engine) for each in row_classes]
    return "\n".join([*rows, *(migration_text(one, engine) for one in aggregates)])


def refuse_unfit(row_classes: Sequence[type], aggregates: Sequence[Aggregate]) -> None:
    """Raise InvalidTransform with every fault of classes that have no tables."""
    levels = [level for one in aggregates for level in one.levels]
    named = [(row_table(each).name, each.__name__) for each in row_classes]
    named += [(name, one.of.__name__) for one in levels for name in (one.name, one.staged)]
    faults, first = list[str](), dict[str, str]()
    for table, who in named:
        if table.lower() in first:
            faults.append(f"{who} and {first[table.lower()]} have one table, {table}: name one differently")
        first.setdefault(table.lower(), who)
    for one in aggregates:  # texts that the index of a source, or the key of an aggregate, cannot hold
        texts = texts_of(one.source)
        for column in (key for key in one.grouped_by if key.kind is str):
            source = f"{one.source.__name__}.{column.name}"
            if column.name not in texts:
                faults.append(
                    f"{source} is in the key of {one.of.__name__} and has no length: write"
                    f" {column.name}: Annotated[str, Text({column.length})], because an index holds it"
                )
            elif texts[column.name].length > column.length or (column.ascii and not texts[column.name].ascii):
                faults.append(
                    f"{one.of.__name__}.{column.name} is {_written(Key(column.length, column.ascii))}, but {source} is"
                    f" {_written(texts[column.name])}: a run could not store every window, so declare both alike"
                )
    for each in row_classes:
        try:
            table_of(each)
        except InvalidTransform as fault:
            faults += fault.faults
    if faults:
        raise InvalidTransform(*faults)


def rights_text(row_classes: Sequence[type], aggregates: Sequence[Aggregate]) -> str:
    """Return the statements that grant the roles their rights on the tables of a room."""
    app, job = list[str](), list[str]()
    for each in row_classes:
        table = row_table(each)
        own = f"SELECT, INSERT, UPDATE{', DELETE' if table.subject else ''}" if table.key else "SELECT, INSERT, DELETE"
        app.append(_grant(own, table.name, _APP))  # replays delete appended rows, and erasures the rows of a subject
        job.append(_grant("SELECT", table.name, _JOB))
    for level in (level for one in aggregates for level in one.levels):
        app.append(_grant("SELECT, INSERT, UPDATE, DELETE", level.name, _APP))
        app.append(_grant("SELECT, DELETE", level.staged, _APP))
        job.append(_grant("SELECT", level.name, _JOB))
        job.append(_grant("SELECT, INSERT", level.staged, _JOB))
    return "\n".join([_HEADING, *app, "", *job, ""])


def _written(one: Text | Key) -> str:
    """Return a length as a class declares it."""
    return f"{type(one).__name__}({one.length}{', ascii=True' if one.ascii else ''})"


def _grant(rights: str, table: str, role: str) -> str:
    return f"GRANT {rights} ON hubledger.{table} TO {role};"
